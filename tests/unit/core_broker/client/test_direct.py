import pytest

from core_broker.client.admin import Admin
from core_broker.client.direct import DirectAdmin
from core_broker.client.errors import AlreadyExists, NotAllowed, Rejected, Unreachable
from core_broker.client.models import Broker, Reassignment
from core_broker.client.settings import ClientSettings
from core_broker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from tests.support.scripted_broker import Answer, ScriptedBroker, saying

SETTINGS = ClientSettings(timeout_ms=5000)


def asked_of(answer: Answer) -> list[Reassignment]:
    """What is on the move, according to a broker with this answer."""
    with ScriptedBroker([answer]) as scripted:
        return DirectAdmin(SETTINGS).reassignments(Broker(id=1, host="127.0.0.1", port=scripted.port))


def test_partitions_on_the_move_are_told_in_order() -> None:
    answer = ListPartitionReassignmentsResponse(
        error_message=None,
        topics=[
            OngoingTopicReassignment("b", [OngoingPartitionReassignment(1, [1, 2, 3], [3], [1])]),
            OngoingTopicReassignment("a" * 300, [OngoingPartitionReassignment(7, [1], [], [])]),
        ],
    )
    assert asked_of(saying(answer, 0)) == [
        Reassignment(topic="a" * 300, partition=7, replicas=(1,), adding=(), removing=()),
        Reassignment(topic="b", partition=1, replicas=(1, 2, 3), adding=(3,), removing=(1,)),
    ]


def test_refusal_of_the_broker_is_told_in_its_words() -> None:
    answer = ListPartitionReassignmentsResponse(error_code=31, error_message="not you")
    with pytest.raises(NotAllowed, match="not you"):
        asked_of(saying(answer, 0))


def test_answer_that_cannot_be_read_is_no_crash() -> None:
    with pytest.raises(Rejected, match="cannot be decoded"):
        asked_of(lambda _: b"\0\0\0\0\0\0\0\1\x7f")


def test_broker_that_closes_the_connection_is_unreachable() -> None:
    with (
        ScriptedBroker([]) as scripted,
        pytest.raises(Unreachable, match="closed the connection|reset"),
    ):
        DirectAdmin(SETTINGS).reassignments(Broker(id=1, host="127.0.0.1", port=scripted.port))


def test_broker_that_is_not_there_is_unreachable() -> None:
    with pytest.raises(Unreachable, match="127.0.0.1:1"):
        DirectAdmin(SETTINGS).reassignments(Broker(id=1, host="127.0.0.1", port=1))


@pytest.mark.processes
def test_nothing_moves_in_a_cluster_of_one(cluster: ClientSettings) -> None:
    assert Admin(cluster).reassignments() == []


@pytest.mark.processes
def test_configs_of_the_whole_cluster_are_set_and_forgotten(cluster: ClientSettings) -> None:
    admin = Admin(cluster)
    admin.alter_cluster_configs(put={"log.cleaner.backoff.ms": "16000"}, validate_only=True)
    assert "log.cleaner.backoff.ms" not in [config.key for config in admin.cluster_configs()]
    admin.alter_cluster_configs(put={"log.cleaner.backoff.ms": "16000"})
    found = {config.key: (config.value, config.source) for config in admin.cluster_configs()}
    assert found["log.cleaner.backoff.ms"] == ("16000", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    admin.alter_cluster_configs(put={}, remove=["log.cleaner.backoff.ms"])
    assert "log.cleaner.backoff.ms" not in [config.key for config in admin.cluster_configs()]


@pytest.mark.processes
@pytest.mark.parametrize(
    "put", [{"no.such.config": "1"}, {"log.retention.ms": "x"}, {"log.retention.ms": "9" * 40_000}]
)
def test_wrong_config_of_the_whole_cluster_is_refused(cluster: ClientSettings, put: dict[str, str]) -> None:
    with pytest.raises(Rejected):
        Admin(cluster).alter_cluster_configs(put=put)


@pytest.mark.processes
def test_configs_of_a_new_topic_are_those_that_it_gets(cluster: ClientSettings, name: str) -> None:
    admin = Admin(cluster)
    expected = {config.key: config.value for config in admin.new_topic_configs(name)}
    admin.create_topic(name)
    assert {config.key: config.value for config in admin.configs(name)} == expected
    with pytest.raises(AlreadyExists):
        admin.new_topic_configs(name)
