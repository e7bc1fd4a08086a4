import pytest

from core_broker.client.models import ControllerListener, Quorum, QuorumReplica
from deploy.views.join_settings import UnknownControllersError, join_settings

CONFIGS = {"inter.broker.listener.name": "INTERNAL", "min.insync.replicas": "2", "log.dirs": "/elsewhere"}


def quorum(*hosts: str, directory_id: str) -> Quorum:
    """Voters from 1 on, on these hosts."""
    voters = [
        QuorumReplica(
            id=number,
            directory_id=directory_id,
            end_offset=0,
            caught_up_ms=0,
            listeners=(ControllerListener(name="CTRL", host=host, port=9093),) if host else (),
        )
        for number, host in enumerate(hosts, 1)
    ]
    return Quorum(leader_id=1, leader_epoch=1, high_watermark=1, voters=tuple(voters), observers=())


def settings(found: Quorum, *, for_kafka: bool = False) -> list[str]:
    return join_settings(4, cluster_id="the-id", quorum=found, configs=CONFIGS, for_kafka=for_kafka)


def test_a_broker_asks_the_voters_where_they_may_change() -> None:
    lines = settings(quorum("a", "b", directory_id="dGhlIGRpcmVjdG9yeSBpZA"))
    assert [line for line in lines if not line.startswith("#")] == [
        "process.roles=broker",
        "node.id=4",
        "listeners=INTERNAL://HOST:9092",
        "inter.broker.listener.name=INTERNAL",
        "controller.listener.names=CTRL",
        "controller.quorum.bootstrap.servers=a:9093,b:9093",
        "log.dirs=FOLDER",
        "min.insync.replicas=2",
    ]


def test_a_broker_lists_the_voters_of_a_fixed_quorum() -> None:
    assert "controller.quorum.voters=1@a:9093,2@b:9093" in settings(quorum("a", "b", directory_id="A" * 22))


def test_kafka_formats_its_folder_with_the_id_of_the_cluster() -> None:
    lines = settings(quorum("a", directory_id="A" * 22), for_kafka=True)
    assert "#   kafka-storage.sh format --config FILE --cluster-id the-id" in lines


def test_controllers_that_are_not_told_are_not_guessed() -> None:
    with pytest.raises(UnknownControllersError):
        settings(quorum("a", "", directory_id="A" * 22))
