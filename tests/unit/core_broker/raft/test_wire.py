import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import decode, encode
from core_broker.protocol.messages.vote import TopicData
from core_broker.protocol.messages.vote import VoteRequest as StoredVoteRequest
from core_broker.raft import wire
from core_broker.raft.messages import (
    BeginEpochRequest,
    EndEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    LogPosition,
    Request,
    Response,
    SnapshotResponse,
    VoteRequest,
    VoteResponse,
)
from core_broker.raft.voters import Endpoint, ReplicaKey

ONE, TWO = ReplicaKey(1, b"1" * 16), ReplicaKey(2, b"2" * 16)
LEADER = {2: Endpoint("two", 9093)}

PAIRS: list[tuple[Request, Response]] = [
    (VoteRequest(7, ONE, TWO, LogPosition(6, 100), True), VoteResponse(epoch=7, leader_id=-1, is_granted=True)),
    (
        BeginEpochRequest(7, 1, TWO, (("CONTROLLER", Endpoint("one", 9093)),)),
        Response(error=ErrorCode.FENCED_LEADER_EPOCH, epoch=8, leader_id=2),
    ),
    (EndEpochRequest(7, 1, (TWO, ONE)), Response(epoch=7, leader_id=2)),
    (
        FetchRequest(7, ONE, 100, 6, 90, 500),
        FetchResponse(epoch=7, leader_id=2, high_watermark=95, log_start=3, records=b"batches"),
    ),
    (FetchRequest(7, ONE, 100, 6, 90), FetchResponse(epoch=7, leader_id=2, diverging=LogPosition(5, 80))),
    (FetchRequest(7, ONE, 100, 6, 90), FetchResponse(epoch=7, leader_id=2, snapshot=LogPosition(5, 80))),
    (
        FetchSnapshotRequest(7, ONE, LogPosition(5, 80), 10),
        SnapshotResponse(epoch=7, leader_id=2, snapshot=LogPosition(5, 80), size=30, position=10, data=b"bytes"),
    ),
]


@pytest.mark.parametrize(("request_", "response"), PAIRS)
def test_requests_and_responses_survive_the_wire(request_: Request, response: Response) -> None:
    sent = wire.to_wire(request_, "cluster")
    version = sent.VERSIONS[1]
    assert wire.from_wire(decode(type(sent), version, bytes(encode(sent, version)), 0)) == request_
    answer = wire.response_to_wire(request_, response, LEADER)
    received, endpoints = wire.response_from_wire(decode(type(answer), version, bytes(encode(answer, version)), 0))
    assert received == response
    assert endpoints == (LEADER if response.leader_id == 2 else {})


def test_other_partitions_are_refused() -> None:
    with pytest.raises(wire.WrongPartition):
        wire.from_wire(StoredVoteRequest(topics=[TopicData("other", [])]))


def test_an_error_of_the_whole_request_is_raised() -> None:
    response = wire.response_to_wire(PAIRS[0][0], PAIRS[0][1], {})
    response.error_code = int(ErrorCode.INCONSISTENT_CLUSTER_ID)  # type: ignore[attr-defined]
    with pytest.raises(BrokerError) as refusal:
        wire.response_from_wire(response)
    assert refusal.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID


def test_an_error_code_of_a_newer_node_is_an_error_all_the_same() -> None:
    response = wire.response_to_wire(PAIRS[0][0], PAIRS[0][1], {})
    response.topics[0].partitions[0].error_code = 9999  # type: ignore[attr-defined]
    received, _ = wire.response_from_wire(response)
    assert received.error is ErrorCode.UNKNOWN_SERVER_ERROR
