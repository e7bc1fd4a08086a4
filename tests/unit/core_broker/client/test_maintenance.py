import socket
from dataclasses import replace

import pytest

from core_broker.client.admin import Admin
from core_broker.client.errors import NotAllowed, Rejected, Unreachable
from core_broker.client.maintenance import Maintenance
from core_broker.client.models import Broker, Cluster, Reassignment
from core_broker.client.settings import ClientSettings
from core_broker.client.software import Software
from core_broker.protocol.fields import decode, encode
from core_broker.protocol.messages import alter_partition_reassignments as wire
from core_broker.protocol.messages import describe_quorum, elect_leaders
from core_broker.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse, SupportedFeatureKey
from core_broker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from tests.support.scripted_broker import Answer, ScriptedBroker, saying

SETTINGS = ClientSettings(timeout_ms=5000)
GREETING = saying(ApiVersionsResponse(), 0)
"""The answer to the question whether the broker answers at all."""


def maintenance(*ports: int, controller_id: int = 1, settings: ClientSettings = SETTINGS) -> Maintenance:
    """Of a cluster whose brokers have these ports, and the ids from 1 on."""
    brokers = tuple(Broker(id=number, host="127.0.0.1", port=port) for number, port in enumerate(ports, 1))
    return Maintenance(settings, lambda: Cluster(cluster_id="c", controller_id=controller_id, brokers=brokers))


def reassignments(answer: Answer) -> list[Reassignment]:
    """What is moving, according to a broker with this answer."""
    with ScriptedBroker([GREETING, answer]) as scripted:
        return maintenance(scripted.port).reassignments()


def test_moving_partitions_are_listed_in_order() -> None:
    answer = ListPartitionReassignmentsResponse(
        error_message=None,
        topics=[
            OngoingTopicReassignment("b", [OngoingPartitionReassignment(1, [1, 2, 3], [3], [1])]),
            OngoingTopicReassignment("a" * 300, [OngoingPartitionReassignment(7, [1], [], [])]),
        ],
    )
    assert reassignments(saying(answer, 0)) == [
        Reassignment(topic="a" * 300, partition=7, replicas=(1,), adding=(), removing=()),
        Reassignment(topic="b", partition=1, replicas=(1, 2, 3), adding=(3,), removing=(1,)),
    ]


def test_the_reason_of_a_refusal_is_that_of_the_broker() -> None:
    answer = ListPartitionReassignmentsResponse(error_code=31, error_message="not you")
    with pytest.raises(NotAllowed, match="not you"):
        reassignments(saying(answer, 0))


def test_an_answer_that_cannot_be_decoded_is_no_crash() -> None:
    with pytest.raises(Rejected, match="cannot be decoded"):
        reassignments(lambda _: b"\0\0\0\0\0\0\0\1\x7f")


def test_a_broker_that_closes_the_connection_is_unreachable() -> None:
    with ScriptedBroker([]) as scripted, pytest.raises(Unreachable, match="closed the connection|reset"):
        maintenance(scripted.port).reassignments()


def test_a_cluster_without_brokers_is_unreachable() -> None:
    with pytest.raises(Unreachable, match="no brokers"):
        maintenance().reassignments()


def test_another_broker_is_asked_if_the_controller_does_not_respond() -> None:
    answer = saying(ListPartitionReassignmentsResponse(error_message=None), 0)
    with ScriptedBroker([GREETING, answer]) as scripted:
        assert maintenance(1, scripted.port).reassignments() == []


def test_another_broker_is_asked_if_the_controller_stands_still() -> None:
    answer = saying(ListPartitionReassignmentsResponse(error_message=None), 0)
    # Connections that are never accepted, as those to a process that was stopped.
    with socket.create_server(("127.0.0.1", 0)) as still, ScriptedBroker([GREETING, answer]) as scripted:
        settings = replace(SETTINGS, timeout_ms=60_000)
        assert maintenance(still.getsockname()[1], scripted.port, settings=settings).reassignments() == []


def test_moves_and_cancellations_are_sent_by_topic_and_answered_by_partition() -> None:
    answer = wire.AlterPartitionReassignmentsResponse(
        error_message=None,
        responses=[
            wire.ReassignableTopicResponse(
                "a",
                [
                    wire.ReassignablePartitionResponse(0, 0, None),
                    wire.ReassignablePartitionResponse(1, 85, "nothing to cancel"),
                ],
            )
        ],
    )
    with ScriptedBroker([GREETING, saying(answer, 0)]) as scripted:
        outcome = maintenance(scripted.port).reassign({("a", 0): (1, 2), ("a", 1): None})
        request = decode(wire.AlterPartitionReassignmentsRequest, 0, scripted.requests[1][2], 1)
    assert [(item.partition_index, item.replicas) for item in request.topics[0].partitions] == [(0, [1, 2]), (1, None)]
    assert outcome["a", 0] is None
    assert str(outcome["a", 1]) == "nothing to cancel"


def test_partitions_that_need_no_election_are_left_out() -> None:
    results = [elect_leaders.PartitionResult(0, 0, None), elect_leaders.PartitionResult(1, 84, "not needed")]
    answer = elect_leaders.ElectLeadersResponse(
        replica_election_results=[elect_leaders.ReplicaElectionResult("a", results)]
    )
    with ScriptedBroker([GREETING, saying(answer, 2)]) as scripted:
        assert maintenance(scripted.port).elect_leaders([("a", 0), ("a", 1)], is_unclean=True) == {("a", 0): None}
        request = decode(elect_leaders.ElectLeadersRequest, 2, scripted.requests[1][2], 1)
    assert (request.election_type, request.topic_partitions) == (1, [elect_leaders.TopicPartitions("a", [0, 1])])


def test_an_error_of_the_quorum_is_raised() -> None:
    partition = describe_quorum.DescribeQuorumResponsePartitionData(0, 6, "another node leads")
    answer = describe_quorum.DescribeQuorumResponse(
        error_message=None, topics=[describe_quorum.DescribeQuorumResponseTopicData("__cluster_metadata", [partition])]
    )
    with (
        ScriptedBroker([GREETING, saying(answer, 2)]) as scripted,
        pytest.raises(Exception, match="another node leads"),
    ):
        maintenance(scripted.port).quorum()


@pytest.mark.processes
def test_a_single_broker_is_its_own_quorum_and_nothing_moves(cluster: ClientSettings, topic: str) -> None:
    admin = Admin(cluster)
    (broker,) = admin.maintenance.registered_brokers()
    assert not broker.is_fenced
    quorum = admin.maintenance.quorum()
    assert [item.id for item in quorum.voters] == [broker.id] == [quorum.leader_id]
    (directory,) = admin.maintenance.log_dirs(broker)
    assert directory.is_online
    assert directory.total_bytes >= directory.usable_bytes > 0
    assert {partition for name, partition in directory.partition_bytes if name == topic} == {0, 1, 2, 3}
    assert admin.maintenance.elect_leaders() == {}
    assert admin.reassignments() == []


def software_at(*answers: ApiVersionsResponse, version: int) -> Software:
    """What a broker runs that supports this version of ApiVersions and gives these answers to it."""
    known = saying(ApiVersionsResponse(api_keys=[ApiVersion(18, 0, version)]), 0)
    # The header of this response is never flexible, so that any client can read it.
    script = [GREETING, known, *(lambda _, answer=answer: bytes(encode(answer, version)) for answer in answers)]
    with ScriptedBroker(script) as scripted:
        found = maintenance(scripted.port).software(Broker(id=1, host="127.0.0.1", port=scripted.port))
    assert [asked for _, asked, _ in scripted.requests] == [0, 0, *[version for _ in answers]]
    return found


@pytest.mark.parametrize("version", [3, 4])
def test_the_software_of_a_broker_is_told_by_its_features(version: int) -> None:
    answer = ApiVersionsResponse(supported_features=[SupportedFeatureKey("metadata.version", 1, 20)])
    assert software_at(answer, version=version) == Software("Apache Kafka", "3.8")


def test_a_broker_that_is_too_old_for_features_runs_unknown_software() -> None:
    assert software_at(version=2) == Software("unknown")
