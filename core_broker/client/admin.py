"""Topics, groups and the cluster: what an operator asks and changes."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    Node,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    ClusterMetadata,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from core_broker.client.access import Access
from core_broker.client.config_entries import changes_of, read_configs
from core_broker.client.consumer import Place
from core_broker.client.direct import DirectAdmin
from core_broker.client.errors import ClientError, NotAllowed, NotFound, Unreachable, from_kafka, mapped
from core_broker.client.group_consumer import Commit
from core_broker.client.models import (
    Broker,
    Cluster,
    Config,
    Group,
    GroupSummary,
    Member,
    Partition,
    Reassignment,
    Topic,
)
from core_broker.client.settings import ClientSettings

T = TypeVar("T")
Outcome = dict[str, ClientError | None]
"""What became of each named thing: None when it worked."""

_INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")
"""Topics that Kafka calls internal; a listing does not say so itself."""
_TOPICS_PER_REQUEST = 250
"""The library reads an answer in one go, and no other thread runs meanwhile: an answer must not be too long."""
_STALE = (
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError._NOENT,
)
"""What is told when a partition has another leader, or epoch, than the library knows of."""
_WATCH_SECONDS = 0.15
_PAUSE_SECONDS = 0.1
_FIRST_ATTEMPT_SECONDS = 0.15
_RECONNECT_MS_MAX = 500
"""A cluster that comes back is to be found at once, not after the ten seconds to which the library's pauses grow."""


class Admin:
    """Asks and changes a cluster; every call may raise a ClientError."""

    def __init__(self, settings: ClientSettings, *, watch: Callable[[], None] = lambda: None) -> None:
        """`watch` is called now and then while an answer is awaited; what it raises ends the wait."""
        self._timeout = settings.timeout_seconds
        self._watch = watch
        self._configuration = settings.configuration({"reconnect.backoff.max.ms": _RECONNECT_MS_MAX})
        with mapped():
            self._client = AdminClient(self._configuration)
        self._direct = DirectAdmin(settings)

    # --- cluster ---

    def cluster(self) -> Cluster:
        """Id, brokers and controller."""
        found = self._wait(self._client.describe_cluster(request_timeout=self._timeout))
        return Cluster(
            cluster_id=found.cluster_id or "",
            controller_id=found.controller.id if found.controller else -1,
            brokers=tuple(_broker(node) for node in found.nodes),
        )

    def ping(self) -> None:
        """Raise Unreachable unless some broker answers."""
        self._metadata()

    # --- topics ---

    def topic_names(self) -> dict[str, int]:
        """Every topic and how many partitions it has."""
        metadata = self._metadata()
        return {name: len(topic.partitions) for name, topic in metadata.topics.items()}

    def all_topics(self) -> list[Topic]:
        """Every topic with its partitions, by name, in one request; ids and authorized operations are not told."""
        metadata = self._metadata()
        return [_listed(metadata.topics[name]) for name in sorted(metadata.topics)]

    def topics(self, names: Iterable[str], *, authorized_operations: bool = False) -> list[Topic]:
        """Partitions, leaders and replicas of topics; NotFound when one does not exist."""
        with mapped():
            futures = self._client.describe_topics(
                TopicCollection(list(names)),
                request_timeout=self._timeout,
                include_authorized_operations=authorized_operations,
            )
        return [_topic(self._wait(future)) for future in futures.values()]

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        assignment: Sequence[Sequence[int]] = (),
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Create a topic; -1 leaves the number to the cluster, `assignment` gives each partition's brokers instead."""
        with mapped():
            new = _new_topic(name, partitions, replication_factor, assignment, dict(configs or {}))
            futures = self._client.create_topics(
                [new], request_timeout=self._timeout, operation_timeout=self._timeout, validate_only=validate_only
            )
        self._wait(futures[name])

    def delete_topics(self, names: Iterable[str]) -> Outcome:
        """Delete topics."""
        futures = self._client.delete_topics(
            list(names), request_timeout=self._timeout, operation_timeout=self._timeout
        )
        return self._outcome(futures)

    def grow_topic(self, name: str, partitions: int, *, validate_only: bool = False) -> None:
        """Give a topic more partitions."""
        with mapped():
            futures = self._client.create_partitions(
                [NewPartitions(name, partitions)],
                request_timeout=self._timeout,
                operation_timeout=self._timeout,
                validate_only=validate_only,
            )
        self._wait(futures[name])

    # --- configs ---

    def configs(self, name: str) -> list[Config]:
        """The configs of a topic, by key."""
        (found,) = self._describe([ConfigResource(ResourceType.TOPIC, name)])
        return read_configs(self._wait(found))

    def configs_of_topics(self, names: Iterable[str]) -> dict[str, list[Config]]:
        """The configs of many topics, in few requests; topics that are gone are left out."""
        configs: dict[str, list[Config]] = {}
        wanted = list(names)
        for start in range(0, len(wanted), _TOPICS_PER_REQUEST):
            asked = wanted[start : start + _TOPICS_PER_REQUEST]
            futures = self._describe([ConfigResource(ResourceType.TOPIC, name) for name in asked])
            for name, future in zip(asked, futures, strict=True):
                with suppress(NotFound):
                    configs[name] = read_configs(self._wait(future))
        return configs

    def configs_of_brokers(self, broker_ids: Iterable[int]) -> dict[int, list[Config]]:
        """The configs of brokers; each is asked itself, all at the same time."""
        asked = {id_: self._describe([ConfigResource(ResourceType.BROKER, str(id_))])[0] for id_ in broker_ids}
        return {broker_id: read_configs(self._wait(future)) for broker_id, future in asked.items()}

    def alter_configs(
        self, name: str, *, put: Mapping[str, str], remove: Iterable[str] = (), validate_only: bool = False
    ) -> None:
        """Set some configs of a topic and return others to their default; the rest stays as it is."""
        changes = ConfigResource(ResourceType.TOPIC, name, incremental_configs=changes_of(put, remove))
        (future,) = self._alter([changes], validate_only=validate_only)
        self._wait(future)

    def alter_broker_configs(
        self, broker_id: int, *, put: Mapping[str, str], remove: Iterable[str] = (), validate_only: bool = False
    ) -> None:
        """Set some configs of one broker and return others to what they are without; the rest stays as it is."""
        changes = ConfigResource(ResourceType.BROKER, str(broker_id), incremental_configs=changes_of(put, remove))
        (future,) = self._alter([changes], validate_only=validate_only)
        self._wait(future)

    def alter_configs_of_topics(
        self, changes: Mapping[str, tuple[Mapping[str, str], Iterable[str]]], *, validate_only: bool = False
    ) -> Outcome:
        """Change many topics in one request; by topic what to set, and what to return to its default."""
        resources = [
            ConfigResource(ResourceType.TOPIC, name, incremental_configs=changes_of(put, remove))
            for name, (put, remove) in changes.items()
        ]
        return self._outcome(dict(zip(changes, self._alter(resources, validate_only=validate_only), strict=True)))

    def cluster_configs(self) -> list[Config]:
        """The configs that were set for all brokers, by key."""
        return self._direct.cluster_configs(self._controller())

    def alter_cluster_configs(
        self, *, put: Mapping[str, str], remove: Iterable[str] = (), validate_only: bool = False
    ) -> None:
        """Set some configs for all brokers and forget others; the rest stays as it is."""
        self._direct.alter_cluster_configs(self._controller(), put=put, remove=remove, validate_only=validate_only)

    def new_topic_configs(self, name: str) -> list[Config]:
        """The configs that a topic would get if it were created now; raises what creating it would raise."""
        return self._direct.new_topic_configs(self._controller(), name)

    def reassignments(self) -> list[Reassignment]:
        """Every partition whose replicas are on the move."""
        return self._direct.reassignments(self._controller())

    def _controller(self) -> Broker:
        """The broker that answers for the whole cluster; any will do when the controller is none of them."""
        found = self.cluster()
        chosen = next((broker for broker in found.brokers if broker.id == found.controller_id), None)
        if chosen is None and not found.brokers:
            raise Unreachable("the cluster has no brokers at the moment")
        return chosen or found.brokers[0]

    def _describe(self, resources: list[ConfigResource]) -> list["Future[Any]"]:
        if not resources:
            return []
        with mapped():
            futures = self._client.describe_configs(resources, request_timeout=self._timeout)
        return [futures[resource] for resource in resources]

    def _alter(self, resources: list[ConfigResource], *, validate_only: bool) -> list["Future[Any]"]:
        with mapped():
            futures = self._client.incremental_alter_configs(
                resources, request_timeout=self._timeout, validate_only=validate_only
            )
        return [futures[resource] for resource in resources]

    # --- offsets ---

    def offsets(self, places: Iterable[Place], spec: str | int) -> dict[Place, int]:
        """Offsets by partition: "earliest", "latest", or the first at a time in ms (-1 when there is none)."""
        specs = {"earliest": OffsetSpec.earliest(), "latest": OffsetSpec.latest()}
        wanted = specs[spec] if isinstance(spec, str) else OffsetSpec.for_timestamp(spec)
        found = self._offsets({TopicPartition(*place): wanted for place in places})
        return {place: _given(offset) for place, offset in found.items()}

    def _offsets(self, request: Mapping[TopicPartition, OffsetSpec], **options: Any) -> dict[Place, int | ClientError]:
        """An offset for each partition, or why there is none.

        The library keeps asking the leaders that it once knew, and under their old epochs: it must be made to look.
        """
        found = self._asked_offsets(request, **options)
        if any(isinstance(offset, ClientError) and offset.code in _STALE for offset in found.values()):
            self._metadata()
            found = self._asked_offsets(request, **options)
        return found

    def _asked_offsets(
        self, request: Mapping[TopicPartition, OffsetSpec], **options: Any
    ) -> dict[Place, int | ClientError]:
        if not request:
            return {}
        with mapped():
            futures = self._client.list_offsets(dict(request), request_timeout=self._timeout, **options)
        found: dict[Place, int | ClientError] = {}
        for item, future in futures.items():
            try:
                found[item.topic, item.partition] = self._wait(future).offset
            except ClientError as error:
                found[item.topic, item.partition] = error
        return found

    # --- groups ---

    def groups(self) -> list[GroupSummary]:
        """Every group, by name."""
        found = self._wait(self._client.list_consumer_groups(request_timeout=self._timeout))
        if found.errors and not found.valid:
            raise from_kafka(found.errors[0])
        listed = [
            GroupSummary(group_id=item.group_id, state=_word(item.state), kind=_word(getattr(item, "type", None)))
            for item in found.valid
        ]
        return sorted(listed, key=lambda group: group.group_id)

    def group(self, group_id: str) -> Group:
        """State and members of a group; a group that does not exist is reported as dead."""
        with self._coordinators() as client, mapped():
            futures = client().describe_consumer_groups([group_id], request_timeout=self._timeout)
            return _group(self._wait(futures[group_id]))

    def described_groups(self, group_ids: Sequence[str]) -> list[Group]:
        """State and members of groups, in one call; those that are gone or not to be seen are left out."""
        if not group_ids:
            return []
        described = []
        with self._coordinators() as client, mapped():
            futures = client().describe_consumer_groups(list(group_ids), request_timeout=self._timeout)
            for group_id, future in futures.items():
                try:
                    group = _group(self._wait(future))
                except (NotFound, NotAllowed):
                    continue
                # A name with NUL in it was cut by the library, and another group described.
                if group.group_id == group_id and not (group.is_simple and group.state == "dead"):
                    described.append(group)
        return described

    def group_offsets(self, group_id: str) -> dict[Place, int]:
        """What a group has committed."""
        return {place: commit.offset for place, commit in self.group_commits(group_id).items()}

    def group_commits(self, group_id: str) -> dict[Place, Commit]:
        """The same, with the notes beside the offsets."""
        request = [ConsumerGroupTopicPartitions(group_id)]
        with self._coordinators() as client, mapped():
            futures = client().list_consumer_group_offsets(request, request_timeout=self._timeout)
            found = self._wait(futures[group_id]).topic_partitions or []
        return {
            (item.topic, item.partition): Commit(item.offset, item.metadata or "") for item in found if item.offset >= 0
        }

    def committed_ends(self, places: Iterable[Place]) -> dict[Place, int]:
        """Where partitions end for those who read committed records only, in one call; without those that are gone."""
        request = {TopicPartition(*place): OffsetSpec.latest() for place in places}
        found = self._offsets(request, isolation_level=IsolationLevel.READ_COMMITTED)
        return {place: _given(offset) for place, offset in found.items() if not isinstance(offset, NotFound)}

    def set_group_offsets(self, group_id: str, offsets: Mapping[Place, int]) -> None:
        """Commit offsets for a group that has no members."""
        self.set_group_commits(group_id, {place: Commit(offset) for place, offset in offsets.items()})

    def set_group_commits(self, group_id: str, commits: Mapping[Place, Commit]) -> None:
        """The same, with the notes beside the offsets."""
        places = [TopicPartition(*place, commit.offset, commit.metadata) for place, commit in commits.items()]
        request = [ConsumerGroupTopicPartitions(group_id, places)]
        with self._coordinators() as client, mapped():
            futures = client().alter_consumer_group_offsets(request, request_timeout=self._timeout)
            found = self._wait(futures[group_id]).topic_partitions or []
        for item in found:
            if item.error is not None:
                raise from_kafka(item.error)

    def delete_group_offsets(self, group_id: str, places: Iterable[Place]) -> None:
        """Forget what a group has committed for some partitions; nobody in the group may read their topics."""
        coordinator = self.group(group_id).coordinator
        if coordinator is not None:
            self._direct.delete_offsets(coordinator, group_id, places)

    def remove_member(self, group_id: str, instance_id: str) -> None:
        """Let a member with a name of its own (`group.instance.id`) leave at once, not when it is missed."""
        coordinator = self.group(group_id).coordinator
        if coordinator is not None:
            self._direct.remove_member(coordinator, group_id, instance_id)

    def delete_groups(self, group_ids: Iterable[str]) -> Outcome:
        """Delete groups that have no members."""
        with self._coordinators() as client:
            return self._outcome(client().delete_consumer_groups(list(group_ids), request_timeout=self._timeout))

    @contextmanager
    def _coordinators(self) -> Iterator[Callable[[], AdminClient]]:
        """A client for one request to the coordinators of groups, which is gone at the end of the block.

        When such a request times out, the library still holds on to it, and once the coordinator comes back, it aborts
        the whole process. A client that is gone by then cannot; hence whoever asks must not keep it, as a variable in a
        frame would: an error that is still told of keeps its frames.
        """
        with mapped():
            clients = [AdminClient(self._configuration)]
        try:
            yield lambda: clients[0]
        finally:
            clients.clear()

    # --- access ---

    @property
    def access(self) -> Access:
        """The ACLs of the cluster."""
        return Access(self._client, self._direct, wait=self._wait, timeout_seconds=self._timeout)

    # --- waiting ---

    def _wait(self, future: "Future[Any]") -> Any:
        ends_at = time.monotonic() + self._timeout + 5
        while time.monotonic() < ends_at:
            with mapped(), suppress(TimeoutError):
                return future.result(_WATCH_SECONDS)
            self._watch()
        raise Unreachable(f"no answer came within {self._timeout:g} s")

    def _metadata(self) -> ClusterMetadata:
        """What the cluster tells of all topics.

        Asked again and again, each time with more patience: the library does not let go of a request.
        """
        patience, ends_at = _FIRST_ATTEMPT_SECONDS, time.monotonic() + self._timeout
        while True:
            try:
                with mapped():
                    return self._client.list_topics(timeout=min(patience, self._timeout))
            except Unreachable:
                if time.monotonic() >= ends_at:
                    raise
            self._watch()
            time.sleep(_PAUSE_SECONDS)
            patience *= 2

    def _outcome(self, futures: Mapping[str, "Future[Any]"]) -> Outcome:
        outcome: Outcome = {}
        for name, future in futures.items():
            try:
                self._wait(future)
                outcome[name] = None
            except ClientError as error:
                outcome[name] = error
        return outcome


def _given(outcome: int | ClientError) -> int:
    if isinstance(outcome, ClientError):
        raise outcome
    return outcome


def _broker(node: Node) -> Broker:
    return Broker(id=node.id, host=node.host, port=node.port, rack=node.rack)


def _topic(found: Any) -> Topic:
    return Topic(
        name=found.name,
        topic_id=_written_as_kafka_does(str(found.topic_id)) if found.topic_id else "",
        is_internal=bool(found.is_internal),
        partitions=tuple(
            Partition(
                index=item.id,
                leader=item.leader.id if item.leader else -1,
                replicas=_ids(item.replicas),
                in_sync=_ids(item.isr),
            )
            for item in found.partitions
        ),
        authorized_operations=tuple(sorted(item.name for item in found.authorized_operations or ())),
    )


def _listed(found: Any) -> Topic:
    """A topic of a listing, where nodes are told by their ids."""
    return Topic(
        name=found.topic,
        topic_id="",
        is_internal=found.topic in _INTERNAL,
        partitions=tuple(
            Partition(index=index, leader=item.leader, replicas=tuple(item.replicas), in_sync=tuple(item.isrs))
            for index, item in sorted(found.partitions.items())
        ),
    )


def _new_topic(
    name: str,
    partitions: int,
    replication_factor: int,
    assignment: Sequence[Sequence[int]],
    configs: dict[str, str],
) -> NewTopic:
    if not assignment:
        return NewTopic(name, partitions, replication_factor, config=configs)
    replicas = [list(brokers) for brokers in assignment]
    return NewTopic(name, len(replicas), replica_assignment=replicas, config=configs)


def _ids(nodes: Sequence[Node]) -> tuple[int, ...]:
    return tuple(node.id for node in nodes)


def _group(found: Any) -> Group:
    return Group(
        group_id=found.group_id,
        state=_word(found.state),
        kind=_word(getattr(found, "type", None)),
        assignor=found.partition_assignor or "",
        coordinator=_broker(found.coordinator) if found.coordinator else None,
        members=tuple(_member(member) for member in found.members),
        is_simple=bool(found.is_simple_consumer_group),
    )


def _member(found: Any) -> Member:
    assigned = found.assignment.topic_partitions if found.assignment else []
    return Member(
        member_id=found.member_id,
        client_id=found.client_id or "",
        host=found.host or "",
        instance_id=found.group_instance_id or "",
        partitions=tuple(sorted((item.topic, item.partition) for item in assigned)),
    )


def _word(value: Any) -> str:
    """An enum of the library as a plain word: ConsumerGroupState.STABLE → stable."""
    return value.name.lower().replace("_", " ") if value is not None else ""


def _written_as_kafka_does(topic_id: str) -> str:
    """Kafka's tools and files write ids in the URL-safe alphabet; librdkafka's binding in the other one."""
    return topic_id.replace("+", "-").replace("/", "_")
