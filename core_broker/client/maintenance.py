"""What operators of a cluster do beyond the library's requests: the quorum and its voters, disks, elections, moving
replicas, and forgetting brokers.

Requests go to the controller, or to any other broker if that one does not respond: brokers forward them.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version as version_of
from typing import Final, TypeVar

from core_broker.client.connection import Connection
from core_broker.client.errors import ClientError, Unreachable, from_code
from core_broker.client.models import Broker, Cluster, ControllerListener, LogDir, Quorum, QuorumReplica, Reassignment
from core_broker.client.settings import ClientSettings
from core_broker.client.software import Software, software_of
from core_broker.errors import ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.messages import add_raft_voter, describe_cluster, describe_quorum, elect_leaders
from core_broker.protocol.messages import alter_partition_reassignments as reassignments
from core_broker.protocol.messages import describe_log_dirs as log_dirs
from core_broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from core_broker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from core_broker.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from core_broker.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

R = TypeVar("R", bound=Message)
Outcome = dict[tuple[str, int], ClientError | None]
"""The error of each partition, None where the request succeeded."""

_METADATA_TOPIC: Final = "__cluster_metadata"
_FIRST_ANSWER_MS: Final = 2_000
_PREFERRED, _UNCLEAN = 0, 1
_FEATURES_SINCE, _ALL_FEATURES_SINCE = 3, 4
"""Versions of ApiVersions: the first with features, and the first with those that begin at level 0 (KAFKA-17011)."""


class Maintenance:
    """Sends requests to a broker of a cluster over connections of its own."""

    def __init__(self, settings: ClientSettings, cluster: Callable[[], Cluster]) -> None:
        self._settings = settings
        self._cluster = cluster

    def registered_brokers(self) -> tuple[Broker, ...]:
        """Every broker that the cluster knows, by id, the fenced among them.

        Clusters older than Kafka 4.0 do not list fenced brokers.
        """
        request = describe_cluster.DescribeClusterRequest(include_fenced_brokers=True)
        response = self.send(request, (2, 1), describe_cluster.DescribeClusterResponse)
        _raise_error(response.error_code, response.error_message)
        return tuple(
            Broker(id=item.broker_id, host=item.host, port=item.port, rack=item.rack, is_fenced=item.is_fenced)
            for item in sorted(response.brokers, key=lambda item: item.broker_id)
        )

    def quorum(self) -> Quorum:
        """The voters and observers of the metadata log; only clusters without ZooKeeper have them."""
        topic = describe_quorum.TopicData(_METADATA_TOPIC, [describe_quorum.PartitionData(0)])
        request = describe_quorum.DescribeQuorumRequest([topic])
        response = self.send(request, (2, 1), describe_quorum.DescribeQuorumResponse)
        _raise_error(response.error_code, response.error_message)
        (partition,) = response.topics[0].partitions
        _raise_error(partition.error_code, partition.error_message)
        return Quorum(
            leader_id=partition.leader_id,
            leader_epoch=partition.leader_epoch,
            high_watermark=partition.high_watermark,
            voters=tuple(_quorum_replica(item, response.nodes) for item in partition.current_voters),
            observers=tuple(_quorum_replica(item, ()) for item in partition.observers),
        )

    def log_dirs(self, broker: Broker) -> list[LogDir]:
        """The data folders of one broker, and the size of each partition in them."""
        with self._open(broker) as connection:
            response = connection.send(log_dirs.DescribeLogDirsRequest(None), 4, log_dirs.DescribeLogDirsResponse)
        _raise_error(response.error_code, None)
        return [
            LogDir(
                path=found.log_dir,
                total_bytes=found.total_bytes,
                usable_bytes=found.usable_bytes,
                is_online=not found.error_code,
                partition_bytes={
                    (topic.name, partition.partition_index): partition.partition_size
                    for topic in found.topics
                    for partition in topic.partitions
                    if not partition.is_future_key
                },
            )
            for found in response.results
        ]

    def software(self, broker: Broker) -> Software:
        """What a broker runs, as far as its features show it."""
        with self._open(broker) as connection:
            known = connection.send(ApiVersionsRequest(), 0, ApiVersionsResponse)
            newest = max(
                (api.max_version for api in known.api_keys if api.api_key == ApiVersionsRequest.API_KEY), default=0
            )
            if newest < _FEATURES_SINCE:
                return Software()
            request = ApiVersionsRequest(client_software_name="caudal", client_software_version=version_of("caudal"))
            response = connection.send(request, min(newest, _ALL_FEATURES_SINCE), ApiVersionsResponse)
        _raise_error(response.error_code, None)
        return software_of({item.name: (item.min_version, item.max_version) for item in response.supported_features})

    def reassignments(self) -> list[Reassignment]:
        """Every partition with a reassignment in progress, by topic and number."""
        request = ListPartitionReassignmentsRequest(timeout_ms=self._settings.timeout_ms, topics=None)
        response = self.send(request, (0,), ListPartitionReassignmentsResponse)
        _raise_error(response.error_code, response.error_message)
        moving = [
            Reassignment(
                topic=topic.name,
                partition=partition.partition_index,
                replicas=tuple(partition.replicas),
                adding=tuple(partition.adding_replicas),
                removing=tuple(partition.removing_replicas),
            )
            for topic in response.topics
            for partition in topic.partitions
        ]
        return sorted(moving, key=lambda item: (item.topic, item.partition))

    def reassign(self, replicas: Mapping[tuple[str, int], Sequence[int] | None]) -> Outcome:
        """Start to move partitions to these brokers; None cancels the move of a partition."""
        topics: dict[str, list[reassignments.ReassignablePartition]] = {}
        for (topic, index), brokers in replicas.items():
            wanted = None if brokers is None else list(brokers)
            topics.setdefault(topic, []).append(reassignments.ReassignablePartition(index, wanted))
        request = reassignments.AlterPartitionReassignmentsRequest(
            timeout_ms=self._settings.timeout_ms,
            topics=[reassignments.ReassignableTopic(name, partitions) for name, partitions in topics.items()],
        )
        response = self.send(request, (0,), reassignments.AlterPartitionReassignmentsResponse)
        _raise_error(response.error_code, response.error_message)
        return {
            (topic.name, item.partition_index): _error(item.error_code, item.error_message)
            for topic in response.responses
            for item in topic.partitions
        }

    def elect_leaders(
        self, partitions: Iterable[tuple[str, int]] | None = None, *, is_unclean: bool = False
    ) -> Outcome:
        """Elect the preferred leaders of partitions, or of all; partitions that need no election are left out.

        An unclean election makes any live replica the leader of a partition that has none, and may lose records.
        """
        topics: dict[str, list[int]] = {}
        for topic, index in partitions or ():
            topics.setdefault(topic, []).append(index)
        wanted = [elect_leaders.TopicPartitions(topic, indexes) for topic, indexes in topics.items()]
        request = elect_leaders.ElectLeadersRequest(
            election_type=_UNCLEAN if is_unclean else _PREFERRED,
            topic_partitions=None if partitions is None else wanted,
            timeout_ms=self._settings.timeout_ms,
        )
        response = self.send(request, (2,), elect_leaders.ElectLeadersResponse)
        _raise_error(response.error_code, None)
        return {
            (found.topic, item.partition_id): _error(item.error_code, item.error_message)
            for found in response.replica_election_results
            for item in found.partition_result
            if item.error_code != ErrorCode.ELECTION_NOT_NEEDED
        }

    def unregister_broker(self, broker_id: int) -> None:
        """Remove a broker that will not return from the metadata."""
        response = self.send(UnregisterBrokerRequest(broker_id), (0,), UnregisterBrokerResponse)
        _raise_error(response.error_code, response.error_message)

    def add_voter(self, voter_id: int, directory_id: str, *, listener: str, host: str, port: int) -> None:
        """Let an observer vote in the quorum; the address is that of its controller listener."""
        request = add_raft_voter.AddRaftVoterRequest(
            cluster_id=None,
            timeout_ms=self._settings.timeout_ms,
            voter_id=voter_id,
            voter_directory_id=urlsafe_b64decode(directory_id + "=="),
            listeners=[add_raft_voter.Listener(listener, host, port)],
        )
        response = self.send(request, (0,), add_raft_voter.AddRaftVoterResponse)
        _raise_error(response.error_code, response.error_message)

    def remove_voter(self, voter_id: int, directory_id: str) -> None:
        """Let a node no longer vote in the quorum."""
        request = RemoveRaftVoterRequest(None, voter_id, urlsafe_b64decode(directory_id + "=="))
        response = self.send(request, (0,), RemoveRaftVoterResponse)
        _raise_error(response.error_code, response.error_message)

    def send(self, request: Message, versions: Sequence[int], response: type[R]) -> R:
        """The answer of the first broker that responds, the controller first.

        Older versions are tried after newer ones: a broker closes the connection of a version that it does not know.
        """
        found = self._cluster()
        brokers = sorted(found.brokers, key=lambda broker: broker.id != found.controller_id)
        failure = Unreachable("the cluster has no brokers at the moment")
        for version in versions:
            for broker in brokers:
                try:
                    with self._open(broker) as connection:
                        return connection.send(request, version, response)
                except Unreachable as error:
                    failure = error
        raise failure

    @contextmanager
    def _open(self, broker: Broker) -> Iterator[Connection]:
        """A connection to a broker that answers: one that does not respond is abandoned soon for the next one."""
        quick = replace(self._settings, timeout_ms=min(self._settings.timeout_ms, _FIRST_ANSWER_MS))
        with Connection(quick, broker.host, broker.port) as connection:
            connection.send(ApiVersionsRequest(), 0, ApiVersionsResponse)
            connection.set_timeout(self._settings.timeout_seconds)
            yield connection


def _quorum_replica(found: describe_quorum.ReplicaState, nodes: Iterable[describe_quorum.Node]) -> QuorumReplica:
    return QuorumReplica(
        id=found.replica_id,
        directory_id=urlsafe_b64encode(found.replica_directory_id).rstrip(b"=").decode(),
        end_offset=found.log_end_offset,
        caught_up_ms=found.last_caught_up_timestamp,
        listeners=tuple(
            ControllerListener(name=listener.name, host=listener.host, port=listener.port)
            for node in nodes
            if node.node_id == found.replica_id
            for listener in node.listeners
        ),
    )


def _error(code: int, message: str | None) -> ClientError | None:
    return from_code(code, message) if code else None


def _raise_error(code: int, message: str | None) -> None:
    if code:
        raise from_code(code, message)
