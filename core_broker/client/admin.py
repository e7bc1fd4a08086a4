"""Topics, groups and the cluster: what an operator asks and changes."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, Node, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from core_broker.client.access import Access
from core_broker.client.consumer import Place
from core_broker.client.errors import ClientError, NotAllowed, NotFound, from_kafka, mapped
from core_broker.client.models import Broker, Cluster, Config, Group, GroupSummary, Member, Partition, Topic
from core_broker.client.settings import ClientSettings

T = TypeVar("T")
Outcome = dict[str, ClientError | None]
"""What became of each named thing: None when it worked."""


class Admin:
    """Asks and changes a cluster; every call may raise a ClientError."""

    def __init__(self, settings: ClientSettings) -> None:
        self._timeout = settings.timeout_seconds
        with mapped():
            self._client = AdminClient(settings.configuration())

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
        with mapped():
            self._client.list_topics(timeout=self._timeout)

    # --- topics ---

    def topic_names(self) -> dict[str, int]:
        """Every topic and how many partitions it has."""
        with mapped():
            metadata = self._client.list_topics(timeout=self._timeout)
        return {name: len(topic.partitions) for name, topic in metadata.topics.items()}

    def topics(self, names: Iterable[str]) -> list[Topic]:
        """Partitions, leaders and replicas of topics; NotFound when one does not exist."""
        futures = self._client.describe_topics(TopicCollection(list(names)), request_timeout=self._timeout)
        return [_topic(self._wait(future)) for future in futures.values()]

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Create a topic; -1 leaves the number to the cluster."""
        new = NewTopic(name, partitions, replication_factor, config=dict(configs or {}))
        with mapped():
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

    def grow_topic(self, name: str, partitions: int) -> None:
        """Give a topic more partitions."""
        futures = self._client.create_partitions(
            [NewPartitions(name, partitions)], request_timeout=self._timeout, operation_timeout=self._timeout
        )
        self._wait(futures[name])

    def configs(self, name: str) -> list[Config]:
        """The configs of a topic, by key."""
        resource = ConfigResource(ResourceType.TOPIC, name)
        futures = self._client.describe_configs([resource], request_timeout=self._timeout)
        entries = self._wait(next(iter(futures.values())))
        return [_config(entries[key]) for key in sorted(entries)]

    def alter_configs(self, name: str, *, put: Mapping[str, str], remove: Iterable[str] = ()) -> None:
        """Set some configs of a topic and return others to their default; the rest stays as it is."""
        entries = [ConfigEntry(k, v, incremental_operation=AlterConfigOpType.SET) for k, v in put.items()]
        # The library insists on a value even where the operation has none.
        entries += [ConfigEntry(key, "", incremental_operation=AlterConfigOpType.DELETE) for key in remove]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        futures = self._client.incremental_alter_configs([resource], request_timeout=self._timeout)
        self._wait(next(iter(futures.values())))

    def offsets(self, places: Iterable[Place], spec: str | int) -> dict[Place, int]:
        """Offsets by partition: "earliest", "latest", or the first at a time in ms (-1 when there is none)."""
        specs = {"earliest": OffsetSpec.earliest(), "latest": OffsetSpec.latest()}
        wanted = specs[spec] if isinstance(spec, str) else OffsetSpec.for_timestamp(spec)
        request = {TopicPartition(*place): wanted for place in places}
        if not request:
            return {}
        with mapped():
            futures = self._client.list_offsets(request, request_timeout=self._timeout)
        return {(item.topic, item.partition): self._wait(future).offset for item, future in futures.items()}

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
        futures = self._client.describe_consumer_groups([group_id], request_timeout=self._timeout)
        return _group(self._wait(futures[group_id]))

    def described_groups(self, group_ids: Sequence[str]) -> list[Group]:
        """State and members of groups, in one call; those that are gone or not to be seen are left out."""
        if not group_ids:
            return []
        with mapped():
            futures = self._client.describe_consumer_groups(list(group_ids), request_timeout=self._timeout)
        described = []
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
        request = [ConsumerGroupTopicPartitions(group_id)]
        futures = self._client.list_consumer_group_offsets(request, request_timeout=self._timeout)
        found = self._wait(futures[group_id]).topic_partitions or []
        return {(item.topic, item.partition): item.offset for item in found if item.offset >= 0}

    def committed_ends(self, places: Iterable[Place]) -> dict[Place, int]:
        """Where partitions end for those who read committed records only, in one call; without those that are gone."""
        request = {TopicPartition(*place): OffsetSpec.latest() for place in places}
        if not request:
            return {}
        with mapped():
            futures = self._client.list_offsets(
                request, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=self._timeout
            )
        ends = {}
        for item, future in futures.items():
            with suppress(NotFound):
                ends[item.topic, item.partition] = self._wait(future).offset
        return ends

    def set_group_offsets(self, group_id: str, offsets: Mapping[Place, int]) -> None:
        """Commit offsets for a group that has no members."""
        places = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        request = [ConsumerGroupTopicPartitions(group_id, places)]
        futures = self._client.alter_consumer_group_offsets(request, request_timeout=self._timeout)
        for item in self._wait(futures[group_id]).topic_partitions or []:
            if item.error is not None:
                raise from_kafka(item.error)

    def delete_groups(self, group_ids: Iterable[str]) -> Outcome:
        """Delete groups that have no members."""
        return self._outcome(self._client.delete_consumer_groups(list(group_ids), request_timeout=self._timeout))

    # --- access ---

    @property
    def access(self) -> Access:
        """The ACLs of the cluster."""
        return Access(self._client, timeout_seconds=self._timeout)

    # --- waiting ---

    def _wait(self, future: "Future[Any]") -> Any:
        with mapped():
            return future.result(self._timeout + 5)

    def _outcome(self, futures: Mapping[str, "Future[Any]"]) -> Outcome:
        outcome: Outcome = {}
        for name, future in futures.items():
            try:
                self._wait(future)
                outcome[name] = None
            except ClientError as error:
                outcome[name] = error
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
    )


def _ids(nodes: Sequence[Node]) -> tuple[int, ...]:
    return tuple(node.id for node in nodes)


def _config(entry: Any) -> Config:
    return Config(
        key=entry.name,
        value=entry.value,
        is_default=bool(entry.is_default),
        is_read_only=bool(entry.is_read_only),
        is_sensitive=bool(entry.is_sensitive),
    )


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
