"""Administration of a cluster: topics, configs, offsets and groups."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import (
    OFFSET_INVALID,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    Node,
    TopicCollection,
)
from confluent_kafka import (
    TopicPartition as KafkaTopicPartition,
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
from core_broker.client.consumer import TopicPartition
from core_broker.client.direct import DirectAdmin
from core_broker.client.errors import (
    ClientError,
    NotAllowed,
    NotFound,
    Rejected,
    Retriable,
    Unreachable,
    from_kafka,
    map_errors,
)
from core_broker.client.group_consumer import Commit
from core_broker.client.maintenance import Maintenance
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
from core_broker.client.security import Security
from core_broker.client.settings import ClientSettings

T = TypeVar("T")
Outcome = dict[str, ClientError | None]
"""The error for each name, None where the call succeeded."""

_INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")
"""Kafka's internal topics; the metadata response of the library has no such flag."""
_TOPICS_PER_REQUEST = 250
"""The library parses a response while holding the GIL, so responses must not be too long."""
_STALE = (
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError._NOENT,
)
"""Errors that mean the library's cached leader or leader epoch is out of date."""
_WATCH_SECONDS = 0.15
_PAUSE_SECONDS = 0.1
_FIRST_ATTEMPT_SECONDS = 3.0
"""How long a broker may take to answer a question before another one is asked."""
_FIRST_METADATA_SECONDS = 0.15
_STUCK_SECONDS = 1.0
"""A client whose broker did not answer for this long is replaced."""
_RECONNECT_MS_MAX = 500
"""Reconnect soon after a cluster comes back: the library's default back-off grows to ten seconds."""


class Admin:
    """Describes and changes a cluster; every call may raise a ClientError."""

    def __init__(self, settings: ClientSettings, *, watch: Callable[[], None] = lambda: None) -> None:
        """`watch` is called repeatedly while waiting for a response; an exception it raises ends the wait."""
        self._timeout = settings.timeout_seconds
        self._watch = watch
        self._configuration = settings.configuration({"reconnect.backoff.max.ms": _RECONNECT_MS_MAX})
        with map_errors():
            self._client = AdminClient(self._configuration)
        self._direct = DirectAdmin(settings)
        self.maintenance = Maintenance(settings, self.cluster)
        """What operators of the cluster do."""
        self.security = Security(self.maintenance.send)
        """Users, ACLs and quotas."""

    # --- cluster ---

    def cluster(self) -> Cluster:
        """Id, brokers and controller."""
        found = self._ask(lambda client, seconds: self._wait(client.describe_cluster(request_timeout=seconds)))
        return Cluster(
            cluster_id=found.cluster_id or "",
            controller_id=found.controller.id if found.controller else -1,
            brokers=tuple(_broker(node) for node in found.nodes),
        )

    def ping(self) -> None:
        """Raise Unreachable unless a broker responds."""
        self._metadata()

    # --- topics ---

    def topic_names(self) -> dict[str, int]:
        """Every topic and its number of partitions."""
        metadata = self._metadata()
        return {name: len(topic.partitions) for name, topic in metadata.topics.items()}

    def all_topics(self) -> list[Topic]:
        """Every topic with its partitions, by name, in one request; without topic ids and authorized operations."""
        metadata = self._metadata()
        return [_topic_in_listing(metadata.topics[name]) for name in sorted(metadata.topics)]

    def topics(self, names: Iterable[str], *, authorized_operations: bool = False) -> list[Topic]:
        """Partitions, leaders and replicas of topics; NotFound when one does not exist."""
        wanted = list(names)

        def describe(client: AdminClient, seconds: float) -> list[Topic]:
            futures = client.describe_topics(
                TopicCollection(wanted),
                request_timeout=seconds,
                include_authorized_operations=authorized_operations,
            )
            return [_topic(self._wait(future)) for future in futures.values()]

        return self._ask(describe)

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
        """Create a topic; -1 means the cluster's default. `assignment` lists the brokers of each partition instead."""
        with map_errors():
            if assignment:
                replicas = [list(brokers) for brokers in assignment]
                new = NewTopic(name, len(replicas), replica_assignment=replicas, config=dict(configs or {}))
            else:
                new = NewTopic(name, partitions, replication_factor, config=dict(configs or {}))
            futures = self._controlling_client().create_topics(
                [new], request_timeout=self._timeout, operation_timeout=self._timeout, validate_only=validate_only
            )
        self._wait(futures[name])

    def create_replicated_topic(
        self, name: str, *, partitions: int, replicas_wanted: int, configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic with as many replicas as wanted, or with one on each broker if the cluster has fewer."""
        try:
            self.create_topic(name, partitions=partitions, replication_factor=replicas_wanted, configs=configs)
        except Rejected as error:
            # Asked only after a refusal, because a broker that is down for a moment takes its replica, too.
            brokers = len(self.cluster().brokers) if error.code == KafkaError.INVALID_REPLICATION_FACTOR else 0
            if not 0 < brokers < replicas_wanted:
                raise
            self.create_topic(name, partitions=partitions, replication_factor=brokers, configs=configs)

    def delete_topics(self, names: Iterable[str]) -> Outcome:
        """Delete topics."""
        futures = self._controlling_client().delete_topics(
            list(names), request_timeout=self._timeout, operation_timeout=self._timeout
        )
        return self._outcome(futures)

    def grow_topic(self, name: str, partitions: int, *, validate_only: bool = False) -> None:
        """Raise the number of partitions of a topic."""
        with map_errors():
            futures = self._controlling_client().create_partitions(
                [NewPartitions(name, partitions)],
                request_timeout=self._timeout,
                operation_timeout=self._timeout,
                validate_only=validate_only,
            )
        self._wait(futures[name])

    # --- configs ---

    def configs(self, name: str) -> list[Config]:
        """The configs of a topic, by key."""
        if name not in (found := self.configs_of_topics([name])):
            raise NotFound(f"topic {name} does not exist", code=KafkaError.UNKNOWN_TOPIC_OR_PART)
        return found[name]

    def configs_of_topics(self, names: Iterable[str]) -> dict[str, list[Config]]:
        """The configs of many topics, in few requests; topics that no longer exist are left out."""
        configs: dict[str, list[Config]] = {}
        wanted = list(names)
        for start in range(0, len(wanted), _TOPICS_PER_REQUEST):
            batch = wanted[start : start + _TOPICS_PER_REQUEST]
            configs |= self._ask(partial(self._describe_topic_configs, batch))
        return configs

    def _describe_topic_configs(
        self, names: Sequence[str], client: AdminClient, seconds: float
    ) -> dict[str, list[Config]]:
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        with map_errors():
            futures = client.describe_configs(resources, request_timeout=seconds)
        configs: dict[str, list[Config]] = {}
        for name, resource in zip(names, resources, strict=True):
            with suppress(NotFound):
                configs[name] = read_configs(self._wait(futures[resource]))
        return configs

    def configs_of_brokers(self, broker_ids: Iterable[int]) -> dict[int, list[Config]]:
        """The configs of brokers; each broker describes its own, and all are queried concurrently."""
        futures = {}
        for broker_id in broker_ids:
            resource = ConfigResource(ResourceType.BROKER, str(broker_id))
            with map_errors():
                described = self._client.describe_configs([resource], request_timeout=self._timeout)
            futures[broker_id] = described[resource]
        return {broker_id: read_configs(self._wait(future)) for broker_id, future in futures.items()}

    def alter_configs(
        self, name: str, *, put: Mapping[str, str], remove: Iterable[str] = (), validate_only: bool = False
    ) -> None:
        """Set some configs of a topic and reset others to their default; the rest is unchanged."""
        changes = ConfigResource(ResourceType.TOPIC, name, incremental_configs=changes_of(put, remove))
        (future,) = self._alter([changes], validate_only=validate_only)
        self._wait(future)

    def alter_broker_configs(
        self, broker_id: int, *, put: Mapping[str, str], remove: Iterable[str] = (), validate_only: bool = False
    ) -> None:
        """Set some dynamic configs of one broker and remove others; the rest is unchanged."""
        changes = ConfigResource(ResourceType.BROKER, str(broker_id), incremental_configs=changes_of(put, remove))
        (future,) = self._alter([changes], validate_only=validate_only)
        self._wait(future)

    def alter_configs_of_topics(
        self, changes: Mapping[str, tuple[Mapping[str, str], Iterable[str]]], *, validate_only: bool = False
    ) -> Outcome:
        """Change many topics in one request: for each topic the configs to set, and those to reset to their default."""
        resources = [
            ConfigResource(ResourceType.TOPIC, name, incremental_configs=changes_of(put, remove))
            for name, (put, remove) in changes.items()
        ]
        return self._outcome(dict(zip(changes, self._alter(resources, validate_only=validate_only), strict=True)))

    def cluster_configs(self) -> list[Config]:
        """The dynamic configs set for the whole cluster, by key."""
        return self._direct.cluster_configs(self._controller())

    def alter_cluster_configs(
        self, *, put: Mapping[str, str], remove: Iterable[str] = (), validate_only: bool = False
    ) -> None:
        """Set some dynamic configs for the whole cluster and remove others; the rest is unchanged."""
        self._direct.alter_cluster_configs(self._controller(), put=put, remove=remove, validate_only=validate_only)

    def new_topic_configs(self, name: str) -> list[Config]:
        """The configs that a topic would get if it were created now; raises what creating it would raise."""
        return self._direct.new_topic_configs(self._controller(), name)

    def reassignments(self) -> list[Reassignment]:
        """Every partition with a reassignment in progress."""
        return self.maintenance.reassignments()

    def _controller(self) -> Broker:
        """The controller, or any broker when the controller is not among the brokers (KRaft)."""
        found = self.cluster()
        chosen = next((broker for broker in found.brokers if broker.id == found.controller_id), None)
        if chosen is None and not found.brokers:
            raise Unreachable("the cluster has no brokers at the moment")
        return chosen or found.brokers[0]

    def _alter(self, resources: list[ConfigResource], *, validate_only: bool) -> list["Future[Any]"]:
        with map_errors():
            futures = self._controlling_client().incremental_alter_configs(
                resources, request_timeout=self._timeout, validate_only=validate_only
            )
        return [futures[resource] for resource in resources]

    # --- offsets ---

    def offsets(self, places: Iterable[TopicPartition], spec: str | int) -> dict[TopicPartition, int]:
        """Offsets by partition: "earliest", "latest", or the first at a time in ms (-1 when there is none)."""
        specs = {"earliest": OffsetSpec.earliest(), "latest": OffsetSpec.latest()}
        wanted = specs[spec] if isinstance(spec, str) else OffsetSpec.for_timestamp(spec)
        found = self._offsets({KafkaTopicPartition(*place): wanted for place in places})
        return {place: _offset_or_raise(offset) for place, offset in found.items()}

    def _offsets(
        self, request: Mapping[KafkaTopicPartition, OffsetSpec], **options: Any
    ) -> dict[TopicPartition, int | ClientError]:
        """An offset or an error for each partition.

        The library keeps using cached leaders and their old epochs, so stale answers force a metadata refresh.
        """
        found = self._list_offsets(request, **options)
        if any(isinstance(offset, ClientError) and offset.code in _STALE for offset in found.values()):
            self._metadata()
            found = self._list_offsets(request, **options)
        return found

    def _list_offsets(
        self, request: Mapping[KafkaTopicPartition, OffsetSpec], **options: Any
    ) -> dict[TopicPartition, int | ClientError]:
        if not request:
            return {}

        def list_offsets(client: AdminClient, seconds: float) -> dict[TopicPartition, int | ClientError]:
            with map_errors():
                futures = client.list_offsets(dict(request), request_timeout=seconds, **options)
            found: dict[TopicPartition, int | ClientError] = {}
            for item, future in futures.items():
                try:
                    found[item.topic, item.partition] = known_offset(self._wait(future).offset)
                except Unreachable:
                    raise
                except ClientError as error:
                    found[item.topic, item.partition] = error
            return found

        return self._ask(list_offsets)

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Delete the records of partitions that are before these offsets."""
        if not before:
            return
        places = [KafkaTopicPartition(*place, offset) for place, offset in before.items()]
        with map_errors():
            futures = self._client.delete_records(places, request_timeout=self._timeout)
        for future in futures.values():
            self._wait(future)

    # --- groups ---

    def groups(self) -> list[GroupSummary]:
        """Every group, by name."""
        found = self._ask(lambda client, seconds: self._wait(client.list_consumer_groups(request_timeout=seconds)))
        if found.errors and not found.valid:
            raise from_kafka(found.errors[0])
        listed = [
            GroupSummary(
                group_id=item.group_id, state=_enum_text(item.state), kind=_enum_text(getattr(item, "type", None))
            )
            for item in found.valid
        ]
        return sorted(listed, key=lambda group: group.group_id)

    def group(self, group_id: str) -> Group:
        """State and members of a group; a group that does not exist is reported as dead."""

        def describe(client: Callable[[], AdminClient], seconds: float) -> Group:
            futures = client().describe_consumer_groups([group_id], request_timeout=seconds)
            return _group(self._wait(futures[group_id]))

        return self._ask_coordinators(describe)

    def describe_groups(self, group_ids: Sequence[str]) -> list[Group]:
        """State and members of groups, in one call; those that are gone or may not be described are left out."""
        if not group_ids:
            return []

        def describe(client: Callable[[], AdminClient], seconds: float) -> list[Group]:
            described = []
            futures = client().describe_consumer_groups(list(group_ids), request_timeout=seconds)
            for group_id, future in futures.items():
                try:
                    group = _group(self._wait(future))
                except (NotFound, NotAllowed):
                    continue
                # The library cuts names at NUL, and then describes another group.
                if group.group_id == group_id and not (group.is_simple and group.state == "dead"):
                    described.append(group)
            return described

        return self._ask_coordinators(describe)

    def group_offsets(self, group_id: str) -> dict[TopicPartition, int]:
        """The committed offsets of a group."""
        return {(item.topic, item.partition): item.offset for item in self._commits(group_id) if item.offset >= 0}

    def group_commits(self, group_id: str) -> dict[TopicPartition, Commit]:
        """The same, with the metadata of each commit.

        Over a connection of our own where it can log in: the library gives out metadata without their end, with
        whatever stands behind them in memory.
        """
        if not self._direct.can_connect:
            found = [one for one in self._commits(group_id) if one.offset >= 0]
            return {(one.topic, one.partition): Commit(one.offset, one.metadata or "") for one in found}

        def fetch(_: AdminClient, __: float) -> dict[TopicPartition, Commit]:
            coordinator = self.group(group_id).coordinator
            try:
                return {} if coordinator is None else self._direct.commits(coordinator, group_id)
            except Retriable as error:
                raise Unreachable(str(error)) from error

        return self._ask(fetch)

    def _commits(self, group_id: str) -> Sequence[Any]:
        request = [ConsumerGroupTopicPartitions(group_id)]

        def list_offsets(client: Callable[[], AdminClient], seconds: float) -> Any:
            futures = client().list_consumer_group_offsets(request, request_timeout=seconds)
            return self._wait(futures[group_id]).topic_partitions or []

        found: Sequence[Any] = self._ask_coordinators(list_offsets)
        return found

    def committed_ends(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The last stable offsets of partitions, in one call; partitions that no longer exist are left out."""
        request = {KafkaTopicPartition(*place): OffsetSpec.latest() for place in places}
        found = self._offsets(request, isolation_level=IsolationLevel.READ_COMMITTED)
        return {place: _offset_or_raise(offset) for place, offset in found.items() if not isinstance(offset, NotFound)}

    def set_group_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets for a group that has no members."""
        self.set_group_commits(group_id, {place: Commit(offset) for place, offset in offsets.items()})

    def set_group_commits(self, group_id: str, commits: Mapping[TopicPartition, Commit]) -> None:
        """The same, with the metadata of each commit."""
        places = [KafkaTopicPartition(*place, commit.offset, commit.metadata) for place, commit in commits.items()]
        request = [ConsumerGroupTopicPartitions(group_id, places)]

        def alter_offsets(client: Callable[[], AdminClient], seconds: float) -> Any:
            futures = client().alter_consumer_group_offsets(request, request_timeout=seconds)
            return self._wait(futures[group_id]).topic_partitions or []

        for item in self._ask_coordinators(alter_offsets):
            if item.error is not None:
                raise from_kafka(item.error)

    def delete_group_offsets(self, group_id: str, places: Iterable[TopicPartition]) -> None:
        """Delete committed offsets of a group; fails while a member is subscribed to one of the topics."""
        coordinator = self.group(group_id).coordinator
        if coordinator is not None:
            self._direct.delete_offsets(coordinator, group_id, places)

    def remove_member(self, group_id: str, instance_id: str) -> None:
        """Remove a static member (`group.instance.id`) at once instead of waiting for its session to expire."""
        coordinator = self.group(group_id).coordinator
        if coordinator is not None:
            self._direct.remove_member(coordinator, group_id, instance_id)

    def delete_groups(self, group_ids: Iterable[str]) -> Outcome:
        """Delete groups that have no members."""
        with self._coordinators() as client:
            return self._outcome(client().delete_consumer_groups(list(group_ids), request_timeout=self._timeout))

    def _ask_coordinators(self, question: Callable[[Callable[[], AdminClient], float], T]) -> T:
        """The same as `_ask`, for group coordinators."""

        def ask(_: AdminClient, seconds: float) -> T:
            with self._coordinators() as client:
                return question(client, seconds)

        return self._ask(ask)

    @contextmanager
    def _coordinators(self) -> Iterator[Callable[[], AdminClient]]:
        """A client for one request to group coordinators, destroyed at the end of the block.

        When such a request times out, the library keeps it, and aborts the whole process once the coordinator comes
        back. A destroyed client cannot do that. Hence a function is yielded rather than the client: a local variable of
        the caller would keep it alive through the traceback of an exception.
        """
        with map_errors():
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
            with map_errors(), suppress(TimeoutError):
                return future.result(_WATCH_SECONDS)
            self._watch()
        raise Unreachable(f"no response within {self._timeout:g} s")

    def _metadata(self) -> ClusterMetadata:
        """The metadata of all topics."""
        return self._ask(lambda client, seconds: client.list_topics(timeout=seconds), _FIRST_METADATA_SECONDS)

    def _ask(self, question: Callable[[AdminClient, float], T], first_seconds: float = _FIRST_ATTEMPT_SECONDS) -> T:
        """The answer to a question that may be asked again: with growing time-outs, and over new connections.

        The library cannot cancel a request that got stuck, and goes on waiting for a broker that has died.
        """
        stuck_seconds = min(_STUCK_SECONDS, self._timeout / 3)
        attempt_seconds, ends_at = min(first_seconds, self._timeout / 3), time.monotonic() + self._timeout
        while True:
            left = max(ends_at - time.monotonic(), _PAUSE_SECONDS)
            try:
                with map_errors():
                    return question(self._client, min(attempt_seconds, left))
            except Unreachable:
                if time.monotonic() >= ends_at:
                    raise
            self._watch()
            time.sleep(_PAUSE_SECONDS)
            if attempt_seconds >= stuck_seconds:
                with map_errors():
                    self._client = AdminClient(self._configuration)
            attempt_seconds *= 2

    def _controlling_client(self) -> AdminClient:
        """The client, once it reaches the controller: what changes something is sent only once."""
        self.cluster()
        return self._client

    def _outcome(self, futures: Mapping[str, "Future[Any]"]) -> Outcome:
        outcome: Outcome = {}
        for name, future in futures.items():
            try:
                self._wait(future)
                outcome[name] = None
            except ClientError as error:
                outcome[name] = error
        return outcome


def known_offset(offset: int) -> int:
    """An offset of a response; raises Retriable for what the library gives, without an error, if a broker was lost."""
    if offset == OFFSET_INVALID:
        raise Retriable("the leader of the partition did not answer", code=KafkaError.LEADER_NOT_AVAILABLE)
    return offset


def _offset_or_raise(outcome: int | ClientError) -> int:
    if isinstance(outcome, ClientError):
        raise outcome
    return outcome


def _broker(node: Node) -> Broker:
    return Broker(id=node.id, host=node.host, port=node.port, rack=node.rack)


def _topic(found: Any) -> Topic:
    # Kafka writes topic ids in URL-safe base64, librdkafka's binding in the standard alphabet.
    return Topic(
        name=found.name,
        topic_id=str(found.topic_id).replace("+", "-").replace("/", "_") if found.topic_id else "",
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


def _topic_in_listing(found: Any) -> Topic:
    """A topic of a metadata response, which gives nodes by their ids."""
    return Topic(
        name=found.topic,
        topic_id="",
        is_internal=found.topic in _INTERNAL,
        partitions=tuple(
            Partition(index=index, leader=item.leader, replicas=tuple(item.replicas), in_sync=tuple(item.isrs))
            for index, item in sorted(found.partitions.items())
        ),
    )


def _ids(nodes: Sequence[Node]) -> tuple[int, ...]:
    return tuple(node.id for node in nodes)


def _group(found: Any) -> Group:
    return Group(
        group_id=found.group_id,
        state=_enum_text(found.state),
        kind=_enum_text(getattr(found, "type", None)),
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


def _enum_text(value: Any) -> str:
    """An enum of the library as plain text: ConsumerGroupState.STABLE → stable."""
    return value.name.lower().replace("_", " ") if value is not None else ""
