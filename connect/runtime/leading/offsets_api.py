"""Shows and changes offsets of connectors: those of sources in the offsets topic, those of sinks in their group."""

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from connect.api.connector import Connector
from connect.api.engine import EngineFacts, EngineSinkConnector
from connect.api.errors import ConnectError, DataError, RetriableError
from connect.api.sink import SinkConnector
from connect.api.source import SourceConnector
from connect.runtime.configuration.client_overrides import admin_properties, consumer_group
from connect.runtime.configuration.connector_config import SourceConnectorConfig
from connect.runtime.errors import BadRequest, Failed
from connect.runtime.leading.connector_host import make_connector
from connect.runtime.leading.fencing import fence
from connect.runtime.leading.services import LeaderServices, ParsedConnector
from connect.stores.offsets import OffsetStore, check_fields
from core_broker.client.admin import Admin
from core_broker.client.consumer import TopicPartition
from core_broker.client.errors import ClientError, NotFound

Entry = Mapping[str, Any]
"""`{"partition": {…}, "offset": {…}}`; an offset of None deletes it."""
SourceChanges = list[tuple[dict[str, Any], dict[str, Any] | None]]
SinkChanges = dict[TopicPartition, int | None]

TOPIC, PARTITION, OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"
_INTEGER: Final = re.compile(r"[+-]?\d{1,19}")
_GROUP_IS_USED: Final = (
    "Failed to {what} consumer group offsets for connector {name} either because its tasks haven't stopped completely "
    "yet or the connector was resumed before the request to {what} its offsets could be successfully completed. If the "
    "connector is in a stopped state, this operation can be safely retried."
)
_NON_EMPTY_GROUP: Final = 68
_UNKNOWN_MEMBER_ID: Final = 25


class OffsetsApi:
    """Reads and changes offsets; the caller makes sure that this is allowed now. May take a while."""

    def __init__(self, services: LeaderServices) -> None:
        self._services = services
        self._opening = threading.Lock()
        self._store: OffsetStore | None = None

    def close(self) -> None:
        """Close the offset store."""
        if self._store is not None:
            self._store.stop()

    def show(self, name: str, parsed: ParsedConnector) -> list[dict[str, Any]]:
        """The offsets of a connector."""
        if issubclass(parsed.connector, SinkConnector):
            committed = self._admin(parsed).group_offsets(group_of(name, self._services, parsed))
            return [
                {"partition": {TOPIC: topic, PARTITION: partition}, "offset": {OFFSET: offset}}
                for (topic, partition), offset in sorted(committed.items())
            ]
        with self._stores(parsed) as stores:
            return [{"partition": part, "offset": offset} for part, offset in _merge(name, stores)]

    def alter(self, name: str, parsed: ParsedConnector, entries: Sequence[Entry]) -> str:
        """Set or delete some offsets; returns the message for the response."""
        if not entries:
            raise BadRequest("Partitions / offsets need to be provided for an alter offsets request")
        if issubclass(parsed.connector, SinkConnector):
            sink_changes = parse_sink_offsets(entries)
            is_complete = self._ask(name, parsed, lambda it: _alter_sink(it, parsed.facts(name), sink_changes))
            self._alter_group(name, parsed, sink_changes)
            return message("altered", is_complete=is_complete)
        return self._change_source(name, parsed, parse_source_offsets(entries), what="altered")

    def reset(self, name: str, parsed: ParsedConnector) -> str:
        """Delete all offsets; returns the message for the response."""
        if issubclass(parsed.connector, SinkConnector):
            return self._reset_group(name, parsed)
        with self._stores(parsed) as stores:
            changes: SourceChanges = [(partition, None) for partition, _ in _merge(name, stores)]
        return self._change_source(name, parsed, changes, what="reset")

    def _ask(self, name: str, parsed: ParsedConnector, ask: Callable[[Connector], bool]) -> bool:
        """Let the connector check the changes; BadRequest when it rejects them."""
        try:
            return ask(make_connector(name, parsed.connector, parsed.resolved))
        except RetriableError as error:
            raise Failed(f"Failed to alter offsets for connector {name}: {error}") from error
        except ConnectError as error:
            raise BadRequest(f"Failed to alter offsets for connector {name}: {error}") from error

    # --- sources ---

    def _change_source(self, name: str, parsed: ParsedConnector, changes: SourceChanges, *, what: str) -> str:
        is_complete = self._ask(name, parsed, lambda it: isinstance(it, SourceConnector) and it.alter_offsets(changes))
        desired = self._services.configs.desired(name)
        if parsed.traits.is_exactly_once and desired is not None and desired.fenced_tasks:
            # A task that still runs somewhere must not write its offsets after ours.
            fence(self._services.settings, parsed.resolved, connector=name, tasks=desired.fenced_tasks)
        with self._stores(parsed) as stores:
            for store in stores:
                # The separate topic comes first; in the worker's, only existing partitions have to change.
                known = {str(sorted(part.items())) for part, _ in store.all(name)}
                is_first = store is stores[0]
                chosen = [item for item in changes if is_first or str(sorted(item[0].items())) in known]
                if chosen:
                    store.put_all(name, chosen)
                    store.refresh()
        return message(what, is_complete=is_complete)

    @contextmanager
    def _stores(self, parsed: ParsedConnector) -> Iterator[list[OffsetStore]]:
        """The stores of a source's offsets: its separate topic, if it has one, and the worker's."""
        settings, common = self._services.settings, parsed.common
        with self._opening:  # on the first use: most workers never need it
            if self._store is None:
                store = OffsetStore(settings)
                store.start()
                self._store = store
            workers = self._store
        own_topic = common.offsets_storage_topic if isinstance(common, SourceConnectorConfig) else None
        if own_topic is None or own_topic == workers.topic:
            workers.refresh()
            yield [workers]
            return
        own = OffsetStore(settings, own_topic)
        own.start()
        try:
            workers.refresh()
            yield [own, workers]
        finally:
            own.stop()

    # --- sinks ---

    def _admin(self, parsed: ParsedConnector) -> Admin:
        properties = admin_properties(self._services.settings, parsed.resolved)
        return Admin(self._services.settings.kafka(tuple(properties.items())))

    def _alter_group(self, name: str, parsed: ParsedConnector, changes: SinkChanges) -> None:
        group, admin = group_of(name, self._services, parsed), self._admin(parsed)
        deleted = [place for place, offset in changes.items() if offset is None]
        try:
            kept = {place: offset for place, offset in changes.items() if offset is not None}
            if kept:
                admin.set_group_offsets(group, kept)
            if deleted:
                admin.delete_group_offsets(group, deleted)
        except NotFound as error:
            raise BadRequest(f"Failed to alter offsets for connector {name}: {error}") from error
        except ClientError as error:
            raise _failure("alter", name, error) from error

    def _reset_group(self, name: str, parsed: ParsedConnector) -> str:
        group, admin = group_of(name, self._services, parsed), self._admin(parsed)
        committed = admin.group_offsets(group)
        is_complete = self._ask(name, parsed, lambda it: _reset_sink(it, parsed.facts(name), committed))
        outcome = admin.delete_groups([group])[group]
        if outcome is not None and not isinstance(outcome, NotFound):
            raise _failure("reset", name, outcome) from outcome
        return message("reset", is_complete=is_complete)


def group_of(name: str, services: LeaderServices, parsed: ParsedConnector) -> str:
    """The consumer group of a sink."""
    return consumer_group(services.settings, parsed.resolved, connector=name)


def _alter_sink(connector: Connector, facts: EngineFacts, changes: SinkChanges) -> bool:
    if isinstance(connector, EngineSinkConnector):
        return connector.alter_engine_offsets(facts, changes)
    return isinstance(connector, SinkConnector) and connector.alter_offsets(changes)


def _reset_sink(connector: Connector, facts: EngineFacts, committed: Mapping[TopicPartition, int]) -> bool:
    if isinstance(connector, EngineSinkConnector):
        return connector.reset_engine_offsets(facts, committed)
    return isinstance(connector, SinkConnector) and connector.alter_offsets(dict.fromkeys(committed))


def message(what: str, *, is_complete: bool) -> str:
    """The response's message when offsets were altered or reset."""
    if is_complete:
        return f"The offsets for this connector have been {what} successfully"
    return (
        f"The Connect framework-managed offsets for this connector have been {what} successfully. However, if this "
        f"connector manages offsets externally, they will need to be manually {what} in the system that the connector "
        "uses."
    )


def parse_source_offsets(entries: Sequence[Entry]) -> SourceChanges:
    """Source partitions and their offsets; BadRequest when one is invalid."""
    changes: SourceChanges = []
    for entry in entries:
        partition, offset = entry.get("partition"), entry.get("offset")
        if not isinstance(partition, Mapping):
            raise BadRequest("The partition for a source connector offset cannot be null or missing")
        if offset is not None and not isinstance(offset, Mapping):
            raise BadRequest("The offset for a source connector should either be null or an object")
        try:
            check_fields(partition)
            check_fields(offset or {})
        except DataError as error:
            raise BadRequest(str(error)) from None
        changes.append((dict(partition), None if offset is None else dict(offset)))
    return changes


def parse_sink_offsets(entries: Sequence[Entry]) -> SinkChanges:
    """Partitions of topics and their offsets; BadRequest when one is invalid."""
    return dict(_parse_sink_offset(entry.get("partition"), entry.get("offset")) for entry in entries)


def _parse_sink_offset(partition: Any, offset: Any) -> tuple[TopicPartition, int | None]:
    if not isinstance(partition, Mapping):
        raise BadRequest("The partition for a sink connector offset cannot be null or missing")
    if TOPIC not in partition or PARTITION not in partition:
        raise BadRequest(f"The partition for a sink connector offset must contain the keys '{TOPIC}' and '{PARTITION}'")
    topic = partition[TOPIC]
    if not isinstance(topic, str) or not topic:
        raise BadRequest("Kafka topic names must be valid strings and may not be null")
    place = topic, _integer(partition[PARTITION], "partition", bits=31)
    if offset is None:
        return place, None
    if not isinstance(offset, Mapping) or OFFSET not in offset:
        raise BadRequest(f"The offset for a sink connector should either be null or contain the key '{OFFSET}'")
    return place, _integer(offset[OFFSET], "offset", bits=63)


def _integer(value: Any, what: str, *, bits: int) -> int:
    text = str(value)
    if isinstance(value, bool) or not _INTEGER.fullmatch(text) or not 0 <= int(text) < 1 << bits:
        shown = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        raise BadRequest(
            f"Failed to parse the following Kafka {what} value in the provided offsets: '{shown}'. "
            f"{what.capitalize()} values for sink connectors need to be integers."
        )
    return int(text)


def _merge(name: str, stores: Sequence[OffsetStore]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Offsets of all stores; the first store takes precedence."""
    merged: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for store in stores:
        for partition, offset in store.all(name):
            merged.setdefault(str(sorted(partition.items())), (partition, offset))
    return list(merged.values())


def _failure(what: str, name: str, error: ClientError) -> Failed:
    if error.code in (_NON_EMPTY_GROUP, _UNKNOWN_MEMBER_ID):
        return Failed(_GROUP_IS_USED.format(what=what, name=name))
    return Failed(f"Failed to {what} offsets for connector {name}: {error}")
