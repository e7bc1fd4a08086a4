"""The quorum's messages as Kafka's: Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch and FetchSnapshot.

On the wire each could speak of many partitions; there is only one, `__cluster_metadata-0`.
"""

from collections.abc import Mapping
from typing import Any, Final

from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.messages import begin_quorum_epoch as begin
from core_broker.protocol.messages import end_quorum_epoch as end
from core_broker.protocol.messages import fetch, fetch_snapshot, vote
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
from core_broker.raft.voters import NO_NODE, Endpoint, ReplicaKey

TOPIC: Final = "__cluster_metadata"
TOPIC_ID: Final = bytes(15) + b"\x01"

_FETCH_BYTES: Final = 1 << 20

Endpoints = Mapping[int, Endpoint]


class WrongPartition(BrokerError):
    """The request is not about the one partition that the quorum has."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.INVALID_REQUEST, f"expected exactly the partition 0 of {TOPIC}")


# -- requests --


def to_wire(request: Request, cluster_id: str) -> Message:
    """The request to send."""
    match request:
        case VoteRequest():
            asked = vote.PartitionData(
                replica_epoch=request.epoch,
                replica_id=request.candidate.id,
                replica_directory_id=request.candidate.directory,
                voter_directory_id=request.voter.directory,
                last_offset_epoch=request.end.epoch,
                last_offset=request.end.offset,
                pre_vote=request.is_pre_vote,
            )
            topics = [vote.TopicData(TOPIC, [asked])]
            return vote.VoteRequest(cluster_id=cluster_id, voter_id=request.voter.id, topics=topics)
        case BeginEpochRequest():
            begun = begin.PartitionData(
                voter_directory_id=request.voter.directory, leader_id=request.leader_id, leader_epoch=request.epoch
            )
            return begin.BeginQuorumEpochRequest(
                cluster_id=cluster_id,
                voter_id=request.voter.id,
                topics=[begin.TopicData(TOPIC, [begun])],
                leader_endpoints=[begin.LeaderEndpoint(name, *address) for name, address in request.endpoints],
            )
        case EndEpochRequest():
            ended = end.PartitionData(
                leader_id=request.leader_id,
                leader_epoch=request.epoch,
                preferred_successors=[key.id for key in request.successors],
                preferred_candidates=[end.ReplicaInfo(*key) for key in request.successors],
            )
            return end.EndQuorumEpochRequest(cluster_id=cluster_id, topics=[end.TopicData(TOPIC, [ended])])
        case FetchRequest():
            return _fetch_to_wire(request, cluster_id)
        case FetchSnapshotRequest():
            wanted = fetch_snapshot.PartitionSnapshot(
                current_leader_epoch=request.epoch,
                snapshot_id=fetch_snapshot.SnapshotId(request.snapshot.offset, request.snapshot.epoch),
                position=request.position,
                replica_directory_id=request.replica.directory,
            )
            return fetch_snapshot.FetchSnapshotRequest(
                cluster_id=cluster_id,
                replica_id=request.replica.id,
                max_bytes=_FETCH_BYTES,
                topics=[fetch_snapshot.TopicSnapshot(TOPIC, [wanted])],
            )


def _fetch_to_wire(request: FetchRequest, cluster_id: str) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(
        current_leader_epoch=request.epoch,
        fetch_offset=request.offset,
        last_fetched_epoch=request.last_epoch,
        replica_directory_id=request.replica.directory,
        high_watermark=request.high_watermark,
    )
    return fetch.FetchRequest(
        cluster_id=cluster_id,
        replica_id=request.replica.id,
        replica_state=fetch.ReplicaState(request.replica.id),
        max_wait_ms=request.wait_ms,
        max_bytes=_FETCH_BYTES,
        topics=[fetch.FetchTopic(TOPIC, TOPIC_ID, [partition])],
    )


def from_wire(message: Message) -> Request:
    """The request that was received. Raises WrongPartition."""
    match message:
        case vote.VoteRequest():
            voted = _only(message.topics)
            return VoteRequest(
                voted.replica_epoch,
                ReplicaKey(voted.replica_id, voted.replica_directory_id),
                ReplicaKey(message.voter_id, voted.voter_directory_id),
                LogPosition(voted.last_offset_epoch, voted.last_offset),
                voted.pre_vote,
            )
        case begin.BeginQuorumEpochRequest():
            begun = _only(message.topics)
            endpoints = tuple((at.name, Endpoint(at.host, at.port)) for at in message.leader_endpoints)
            voter = ReplicaKey(message.voter_id, begun.voter_directory_id)
            return BeginEpochRequest(begun.leader_epoch, begun.leader_id, voter, endpoints)
        case end.EndQuorumEpochRequest():
            ended = _only(message.topics)
            candidates = [ReplicaKey(at.candidate_id, at.candidate_directory_id) for at in ended.preferred_candidates]
            successors = candidates or [ReplicaKey(node_id) for node_id in ended.preferred_successors]
            return EndEpochRequest(ended.leader_epoch, ended.leader_id, tuple(successors))
        case fetch_snapshot.FetchSnapshotRequest():
            wanted = _only(message.topics)
            return FetchSnapshotRequest(
                wanted.current_leader_epoch,
                ReplicaKey(message.replica_id, wanted.replica_directory_id),
                LogPosition(wanted.snapshot_id.epoch, wanted.snapshot_id.end_offset),
                wanted.position,
            )
        case fetch.FetchRequest():
            return _fetch_from_wire(message)
        case _:
            raise TypeError(f"{type(message).__name__} is not a message of the quorum")


def _fetch_from_wire(message: fetch.FetchRequest) -> FetchRequest:
    if [topic.topic_id for topic in message.topics] != [TOPIC_ID]:
        raise WrongPartition
    partition = _one_partition(message.topics[0].partitions)
    replica_id = message.replica_state.replica_id if message.replica_state.replica_id >= 0 else message.replica_id
    return FetchRequest(
        partition.current_leader_epoch,
        ReplicaKey(replica_id, partition.replica_directory_id),
        partition.fetch_offset,
        partition.last_fetched_epoch,
        partition.high_watermark,
        message.max_wait_ms,
    )


def _only(topics: list[Any]) -> Any:
    """The data of the metadata partition."""
    names = [topic.name if hasattr(topic, "name") else topic.topic_name for topic in topics]
    if names != [TOPIC]:
        raise WrongPartition
    return _one_partition(topics[0].partitions)


def _one_partition(partitions: list[Any]) -> Any:
    indexes = [getattr(item, "partition_index", getattr(item, "partition", 0)) for item in partitions]
    if indexes != [0]:
        raise WrongPartition
    return partitions[0]


# -- responses --


def response_to_wire(request: Request, response: Response, endpoints: Endpoints) -> Message:
    """The response to send; `endpoints` are the leader's, for the listener that the request came in on."""
    leader = (response.leader_id, response.epoch)
    nodes = [(node_id, *address) for node_id, address in endpoints.items() if node_id == response.leader_id]
    match request, response:
        case VoteRequest(), VoteResponse():
            voted = vote.VoteResponsePartitionData(0, response.error, *leader, response.is_granted)
            return vote.VoteResponse(
                topics=[vote.VoteResponseTopicData(TOPIC, [voted])],
                node_endpoints=[vote.NodeEndpoint(*node) for node in nodes],
            )
        case BeginEpochRequest(), _:
            begun = begin.BeginQuorumEpochResponsePartitionData(0, response.error, *leader)
            return begin.BeginQuorumEpochResponse(
                topics=[begin.BeginQuorumEpochResponseTopicData(TOPIC, [begun])],
                node_endpoints=[begin.NodeEndpoint(*node) for node in nodes],
            )
        case EndEpochRequest(), _:
            ended = end.EndQuorumEpochResponsePartitionData(0, response.error, *leader)
            return end.EndQuorumEpochResponse(
                topics=[end.EndQuorumEpochResponseTopicData(TOPIC, [ended])],
                node_endpoints=[end.NodeEndpoint(*node) for node in nodes],
            )
        case FetchRequest(), FetchResponse():
            return fetch.FetchResponse(
                responses=[fetch.FetchableTopicResponse(TOPIC, TOPIC_ID, [_fetched_to_wire(response)])],
                node_endpoints=[fetch.NodeEndpoint(*node) for node in nodes],
            )
        case FetchSnapshotRequest(), SnapshotResponse():
            found = fetch_snapshot.FetchSnapshotResponsePartitionSnapshot(
                error_code=response.error,
                snapshot_id=fetch_snapshot.FetchSnapshotResponseSnapshotId(
                    response.snapshot.offset, response.snapshot.epoch
                ),
                current_leader=fetch_snapshot.LeaderIdAndEpoch(*leader),
                size=response.size,
                position=response.position,
                unaligned_records=response.data,
            )
            return fetch_snapshot.FetchSnapshotResponse(
                topics=[fetch_snapshot.FetchSnapshotResponseTopicSnapshot(TOPIC, [found])],
                node_endpoints=[fetch_snapshot.NodeEndpoint(*node) for node in nodes],
            )
        case _:
            raise TypeError(f"{type(response).__name__} does not answer {type(request).__name__}")


def _fetched_to_wire(response: FetchResponse) -> fetch.PartitionData:
    data = fetch.PartitionData(
        error_code=response.error,
        high_watermark=response.high_watermark,
        log_start_offset=response.log_start,
        current_leader=fetch.LeaderIdAndEpoch(response.leader_id, response.epoch),
        aborted_transactions=None,
        records=response.records,
    )
    if response.diverging is not None:
        data.diverging_epoch = fetch.EpochEndOffset(response.diverging.epoch, response.diverging.offset)
    if response.snapshot is not None:
        data.snapshot_id = fetch.SnapshotId(response.snapshot.offset, response.snapshot.epoch)
    return data


def response_from_wire(message: Any) -> tuple[Response, Endpoints]:
    """The response that was received, and where its leader listens.

    An error of the whole request is raised as BrokerError: it says nothing about the quorum.
    """
    if message.error_code:
        raise BrokerError(ErrorCode(message.error_code))
    endpoints = {node.node_id: Endpoint(node.host, node.port) for node in message.node_endpoints}
    match message:
        case vote.VoteResponse():
            voted = _only(message.topics)
            response: Response = VoteResponse(
                error=ErrorCode(voted.error_code),
                epoch=voted.leader_epoch,
                leader_id=voted.leader_id,
                is_granted=voted.vote_granted,
            )
        case fetch.FetchResponse():
            response = _fetched_from_wire(message)
        case fetch_snapshot.FetchSnapshotResponse():
            found = _only(message.topics)
            response = SnapshotResponse(
                error=ErrorCode(found.error_code),
                epoch=found.current_leader.leader_epoch,
                leader_id=found.current_leader.leader_id,
                snapshot=LogPosition(found.snapshot_id.epoch, found.snapshot_id.end_offset),
                size=found.size,
                position=found.position,
                data=bytes(found.unaligned_records),
            )
        case _:
            data = _only(message.topics)
            response = Response(error=ErrorCode(data.error_code), epoch=data.leader_epoch, leader_id=data.leader_id)
    return response, endpoints


def _fetched_from_wire(message: fetch.FetchResponse) -> FetchResponse:
    if [topic.topic_id for topic in message.responses] != [TOPIC_ID]:
        raise WrongPartition
    data: fetch.PartitionData = _one_partition(message.responses[0].partitions)
    diverging, snapshot = data.diverging_epoch, data.snapshot_id
    return FetchResponse(
        error=ErrorCode(data.error_code),
        epoch=data.current_leader.leader_epoch,
        leader_id=data.current_leader.leader_id if data.current_leader.leader_id >= 0 else NO_NODE,
        high_watermark=data.high_watermark,
        log_start=data.log_start_offset,
        records=bytes(data.records or b""),
        diverging=None if diverging.epoch < 0 else LogPosition(diverging.epoch, diverging.end_offset),
        snapshot=None if snapshot.end_offset < 0 else LogPosition(snapshot.epoch, snapshot.end_offset),
    )
