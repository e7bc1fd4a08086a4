"""A partition whose last in-sync replica is gone: it stays offline, unless an operator accepts the loss."""

from collections.abc import Iterator
from typing import Final

import pytest
from confluent_kafka import ElectionType, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from confluent_kafka.cimpl import NewTopic

from tests.support.admin import eventually
from tests.support.cluster import BrokerCluster
from tests.support.cluster_load import read_all
from tests.support.command import Caudal

pytestmark = pytest.mark.timeout(300)

ALLOW: Final = "unclean.leader.election.enable"
NO_LEADER: Final = -1


def send(cluster: BrokerCluster, topic: str, value: str) -> KafkaError | None:
    """Write a record; returns the error if nothing was acknowledged."""
    failed: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "message.timeout.ms": 3000})
    producer.produce(topic, value.encode(), on_delivery=lambda error, _: failed.append(error))
    producer.flush(60)
    return failed[0]


def leader_of(admin: AdminClient, topic: str) -> int:
    return int(admin.list_topics(topic, timeout=60).topics[topic].partitions[0].leader)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    """Topics on brokers 2 and 3. Broker 3 has missed records that broker 2 has, and broker 2 is gone."""
    with BrokerCluster(tmp_path_factory.mktemp("unclean")) as brokers:
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
        names = ("careful", "changed", "elected", "careless")
        topics = [
            NewTopic(
                name,
                1,
                replica_assignment=[[2, 3]],
                config={"min.insync.replicas": "1", ALLOW: "true" if name == "careless" else "false"},
            )
            for name in names
        ]
        for made in admin.create_topics(topics).values():
            made.result(60)
        for name in names:
            assert send(brokers, name, "kept") is None
        brokers[3].kill()
        for name in names:
            eventually(lambda name=name: send(brokers, name, "on broker 2 alone") is None)  # type: ignore[misc]
        brokers[2].kill()
        brokers[3].start()
        eventually(lambda: leader_of(admin, "careless") == 3)
        yield brokers


def test_without_permission_a_partition_stays_offline_and_says_so(
    cluster: BrokerCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    assert leader_of(admin, "careful") == NO_LEADER
    assert send(cluster, "careful", "refused") is not None
    monkeypatch.setenv("CAUDAL_BOOTSTRAP", cluster.bootstrap)
    described = Caudal(monkeypatch).json("cluster")
    assert "careful" in {item["topic"] for item in described["offline"]}


def test_with_permission_a_replica_that_lags_behind_is_elected(cluster: BrokerCluster) -> None:
    assert send(cluster, "careless", "later") is None
    assert {value for value, _ in read_all(cluster.bootstrap, "careless", 1)} == {b"kept", b"later"}


def test_a_topic_that_allows_it_later_gets_a_leader_at_once(cluster: BrokerCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    assert leader_of(admin, "changed") == NO_LEADER
    entry = ConfigEntry(ALLOW, "true", incremental_operation=AlterConfigOpType.SET)
    (changed,) = admin.incremental_alter_configs(
        [ConfigResource(ResourceType.TOPIC, "changed", incremental_configs=[entry])]
    ).values()
    changed.result(60)
    eventually(lambda: leader_of(admin, "changed") == 3)
    assert send(cluster, "changed", "later") is None


def test_an_operator_may_elect_a_leader_that_lags_behind(cluster: BrokerCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    partition = TopicPartition("elected", 0)
    refused = admin.elect_leaders(ElectionType.PREFERRED, [partition]).result(60)
    assert refused[partition].code() == KafkaError.PREFERRED_LEADER_NOT_AVAILABLE
    assert leader_of(admin, "elected") == NO_LEADER
    result = admin.elect_leaders(ElectionType.UNCLEAN, [partition]).result(60)
    assert result[partition] is None
    eventually(lambda: leader_of(admin, "elected") == 3)
    assert send(cluster, "elected", "later") is None


def test_the_last_in_sync_replica_brings_everything_back(cluster: BrokerCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    cluster[2].start()
    eventually(lambda: leader_of(admin, "careful") == 2)
    found = {value for value, _ in read_all(cluster.bootstrap, "careful", 1)}
    assert found == {b"kept", b"on broker 2 alone"}
