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


def send(mixed: MixedCluster, topic: str, value: str) -> None:
    """Write a record once; the client looks for the new leader itself, and may ask brokers that are down on the way."""
    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": mixed.bootstrap, "enable.idempotence": True})
    producer.produce(topic, value.encode(), on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(TIMEOUT_S) == 0, f"{value!r} was not acknowledged"
    (error,) = errors
    assert error is None, f"{value!r}: {error}"  # not compared: KafkaError == None raises SystemError


@pytest.mark.parametrize(("diverged", "leader"), [(1, 4), (4, 1)])
def test_a_diverged_follower_truncates_to_a_leader_of_the_other_kind(
    mixed: MixedCluster, diverged: int, leader: int
) -> None:
    admin = AdminClient({"bootstrap.servers": mixed.bootstrap})
    topic = f"diverged-{diverged}"
    new = NewTopic(topic, 1, replica_assignment=[[diverged, leader]], config=ANY_LEADER)
    admin.create_topics([new])[topic].result(TIMEOUT_S)

    def state() -> tuple[int, set[int]]:
        partition = admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions.get(0)
        return (partition.leader, set(partition.isrs)) if partition else (-1, set())  # not every broker has it yet

    eventually(state, lambda found: found == (diverged, {diverged, leader}))
    send(mixed, topic, "kept")
    mixed.nodes[leader].kill()
    eventually(state, lambda found: found == (diverged, {diverged}))
    for number in range(5):
        send(mixed, topic, f"only on the replica that diverges {number}")
    mixed.nodes[diverged].kill()
    mixed.nodes[leader].start()
    eventually(state, lambda found: found == (leader, {leader}))
    for number in range(2):
        send(mixed, topic, f"later {number}")
    mixed.nodes[diverged].start()
    eventually(lambda: state()[1], lambda in_sync: in_sync == {diverged, leader})
    eventually(lambda: mixed.stored(topic), lambda found: found[diverged] == found[leader])
    values = [record.value for record in read_to_end(mixed.bootstrap, topic)]
    assert values == [b"kept", b"later 0", b"later 1"]
