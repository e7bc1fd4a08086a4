"""A replica with records that the leader, of the other kind, never had: it removes them and follows."""

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.admin import eventually
from tests.support.clients.confluent import read_to_end
from tests.support.clients.model import TIMEOUT_S
from tests.support.mixed_cluster import MixedCluster, needs_kafka

pytestmark = needs_kafka

ANY_LEADER = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}


def send(mixed: MixedCluster, topic: str, value: str) -> bool:
    """Write a record; whether it was acknowledged."""
    failed: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": mixed.bootstrap, "acks": "all", "message.timeout.ms": 3000})
    producer.produce(topic, value.encode(), on_delivery=lambda error, _: failed.append(error))
    producer.flush(TIMEOUT_S)
    return failed == [None]


@pytest.mark.parametrize(("diverged", "leader"), [(1, 4), (4, 1)])
def test_a_diverged_follower_truncates_to_a_leader_of_the_other_kind(
    mixed: MixedCluster, diverged: int, leader: int
) -> None:
    admin = AdminClient({"bootstrap.servers": mixed.bootstrap})
    topic = f"diverged-{diverged}"
    new = NewTopic(topic, 1, replica_assignment=[[diverged, leader]], config=ANY_LEADER)
    admin.create_topics([new])[topic].result(TIMEOUT_S)

    def state() -> tuple[int, set[int]]:
        partition = admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions[0]
        return partition.leader, set(partition.isrs)

    eventually(state, lambda found: found == (diverged, {diverged, leader}))
    assert send(mixed, topic, "kept")
    mixed.nodes[leader].kill()
    eventually(state, lambda found: found == (diverged, {diverged}))
    assert all(send(mixed, topic, f"only on the replica that diverges {number}") for number in range(5))
    mixed.nodes[diverged].kill()
    mixed.nodes[leader].start()
    eventually(state, lambda found: found == (leader, {leader}))
    assert all(send(mixed, topic, f"later {number}") for number in range(2))
    mixed.nodes[diverged].start()
    eventually(lambda: state()[1], lambda in_sync: in_sync == {diverged, leader})
    eventually(lambda: mixed.stored(topic), lambda found: found[diverged] == found[leader])
    values = [record.value for record in read_to_end(mixed.bootstrap, topic)]
    assert values == [b"kept", b"later 0", b"later 1"]
