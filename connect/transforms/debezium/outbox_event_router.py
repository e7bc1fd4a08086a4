"""Turns rows that a service inserts into its outbox table into events (Debezium's EventRouter)."""

import logging
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from connect.api.config import BOOLEAN, LIST, STRING, Config, Importance, Problem, one_of, option, optional
from connect.api.data import STRING as STRING_SCHEMA
from connect.api.data import Field, Schema, Type, Value
from connect.api.errors import ConfigError, ConnectError, DataError
from connect.api.record import Header, Record
from connect.api.transform import R, Transform
from connect.transforms.debezium.envelope import AFTER, DELETE, OPERATION, UPDATE, is_envelope
from connect.transforms.epoch import ms_of
from connect.transforms.inference import schema_of
from connect.transforms.java.regex import Rename
from connect.transforms.options import problems_of, raw_text
from connect.transforms.sides import Side

log = logging.getLogger(__name__)

_PLACEMENTS: Final = ("header", "envelope", "partition")
_UNITS: Final = {
    "io.debezium.time.Timestamp": 1,
    "io.debezium.time.MicroTimestamp": 1_000,
    "io.debezium.time.NanoTimestamp": 1_000_000,
}


class _Placement(NamedTuple):
    field: str
    place: str
    alias: str


class EventRouterConfig(Config):
    """Options of EventRouter."""

    table_field_event_id: str = option(STRING, default="id")
    """The column with the event's id, which becomes the header `id`."""
    table_field_event_key: str | None = option(STRING, default="aggregateid", aliases=("table.field.payload.id",))
    """The column that becomes the key."""
    table_field_event_payload: str = option(STRING, default="payload", aliases=("table.field.payload",))
    """The column that becomes the value."""
    table_field_event_timestamp: str | None = option(optional(STRING), default=None)
    """The column with the time of the event; not set: when the change was read."""
    table_field_event_schema_version: str | None = option(
        optional(STRING), default=None, aliases=("table.field.schema.version",)
    )
    """The column with the version of the value's schema."""
    table_fields_additional_placement: tuple[str, ...] = option(LIST, default=(), importance=Importance.HIGH)
    """Additional columns and their placement: column:header, column:envelope:alias, column:partition."""
    table_expand_json_payload: bool = option(BOOLEAN, default=False)
    """Whether a payload that is JSON in text becomes a struct."""
    table_op_invalid_behavior: str = option(
        STRING, default="warn", check=one_of("warn", "error", "fatal"), aliases=("debezium.op.invalid.behavior",)
    )
    """What to do when a row of the table was updated: log a warning or an error, or stop the task."""
    route_by_field: str = option(STRING, default="aggregatetype", importance=Importance.HIGH)
    """The column that determines the topic."""
    route_topic_regex: str = option(STRING, default="(?<routedByValue>.*)")
    """A pattern (Java's) on it."""
    route_topic_replacement: str = option(STRING, default="outbox.event.${routedByValue}", importance=Importance.HIGH)
    """The topic to derive from it."""
    route_tombstone_on_empty_payload: bool = option(BOOLEAN, default=False)
    """Whether an empty payload becomes a tombstone."""

    @property
    def placements(self) -> tuple[_Placement, ...]:
        """Where additional columns go."""
        return tuple(map(_parse_placement, self.table_fields_additional_placement))

    @property
    def rename(self) -> Rename:
        """How the topic is derived."""
        replacement = raw_text(self, "route.topic.replacement", default="outbox.event.${routedByValue}")
        keys = ("route.topic.regex", "route.topic.replacement")
        return Rename(self.route_topic_regex, replacement, key=keys[0], replacement_key=keys[1])

    @override
    def problems(self) -> Iterable[Problem]:
        """Placements or patterns that cannot be parsed."""
        yield from problems_of("table.fields.additional.placement", lambda: self.placements)
        yield from problems_of("route.topic.regex", lambda: self.rename)


class EventRouter(Transform):
    """Turns rows inserted into an outbox table into events; drops deletions, and lets other records pass."""

    config_class = EventRouterConfig
    config: EventRouterConfig
    aliases = ("io.debezium.transforms.outbox.EventRouter",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._placements = self.config.placements
        self._envelope = tuple(item for item in self._placements if item.place == "envelope")
        self._rename = self.config.rename

    @override
    def apply(self, record: R) -> R | None:
        if record.value is None:
            return None
        if not is_envelope(record):
            return record
        operation = record.value.get(OPERATION)
        if operation == DELETE:
            return None
        if operation == UPDATE:
            if self.config.table_op_invalid_behavior == "fatal":
                raise ConnectError(f"Unexpected update message received {record.key}, fail.")
            level = logging.WARNING if self.config.table_op_invalid_behavior == "warn" else logging.ERROR
            log.log(level, "update in an outbox table ignored", extra={"topic": record.topic})
            return None
        row = record.value.get(AFTER)
        if not isinstance(row, dict):
            raise DataError("Only Struct objects supported for [Read Outbox Event], found: null")
        schema = None if record.value_schema is None else record.value_schema.field(AFTER)
        return self._event(record, schema, row=row)

    def _event(self, record: R, schema: Schema | None, *, row: dict[str, Value]) -> R:
        options = self.config
        id_schema, event_id = self._column(schema, options.table_field_event_id, row=row)
        route = self._column(schema, options.route_by_field, row=row)[1]
        if not isinstance(route, str) or not route:
            raise DataError(f"the field {options.route_by_field} of an outbox event must be a non-empty text")
        value_schema, value = self._value(schema, row, route=route)
        key_name = options.table_field_event_key
        if not key_name or (key_name not in row and (schema is None or schema.field(key_name) is None)):
            key_schema, key = None if schema is None else STRING_SCHEMA, None
        else:
            key_schema, key = self._column(schema, key_name, row=row)
        headers = [Header("id", event_id, id_schema)]
        for item in self._placements:
            if item.place == "header":
                header_schema, header = self._column(schema, item.field, row=row)
                headers.append(Header(item.alias, header, header_schema))
        return replace(
            record,
            topic=self._rename(route) or route,
            partition=self._partition(row),
            key_schema=key_schema,
            key=key,
            value_schema=value_schema,
            value=value,
            timestamp_ms=self._timestamp_ms(record, schema, row=row),
            headers=(*record.headers, *headers),
        )

    def _column(self, schema: Schema | None, name: str, *, row: dict[str, Value]) -> Side:
        if schema is None:
            if name not in row:
                raise DataError(f"Unable to find field {name} in event")
            return None, row[name]
        found = schema.field(name)
        if found is None:
            raise DataError(f"Unable to find field {name} in event")
        value = row.get(name)
        return found, found.default if value is None else value

    def _value(self, schema: Schema | None, row: dict[str, Value], *, route: str) -> Side:
        options = self.config
        payload_schema, payload = self._column(schema, options.table_field_event_payload, row=row)
        is_empty = payload is None or (isinstance(payload, str | bytes) and not payload.strip())
        if is_empty and options.route_tombstone_on_empty_payload:
            return None, None
        if options.table_expand_json_payload and isinstance(payload, str):
            payload_schema, payload = _expand_json(payload_schema, payload)
        if not self._envelope:
            return payload_schema, payload
        value = {"payload": payload, **{item.alias: row.get(item.field) for item in self._envelope}}
        if schema is None or payload_schema is None:
            return None, value
        columns = [(item.alias, self._column(schema, item.field, row=row)[0]) for item in self._envelope]
        fields = [Field("payload", payload_schema), *(Field(name, found) for name, found in columns if found)]
        before, dot, last = (schema.name or "").rpartition(".")
        name = route if schema.name is None else f"{before}{dot}{route}.{last}"
        version = row.get(options.table_field_event_schema_version or "")
        return Schema(Type.STRUCT, name=name, version=version, fields=tuple(fields)), value

    def _partition(self, row: dict[str, Value]) -> int | None:
        for item in self._placements:
            if item.place == "partition":
                found = row.get(item.field)
                if found is not None and type(found) is not int:
                    raise DataError(f"the field {item.field} of an outbox event must be a number to be a partition")
                return found
        return None

    def _timestamp_ms(self, record: Record, schema: Schema | None, *, row: dict[str, Value]) -> int | None:
        name = self.config.table_field_event_timestamp
        found, value = (None, None) if name is None else self._column(schema, name, row=row)
        if value is None:
            read: int | None = record.value.get("ts_ms")
            return read
        if type(value) is not int:
            try:
                return ms_of(value)
            except (AttributeError, TypeError):
                raise DataError(f"the field {name} of an outbox event is not a time") from None
        unit = 1 if found is None else _UNITS.get(found.name or "")
        if unit is None:
            raise DataError(f"Unsupported field type {found and found.name} for event timestamp")
        return value // unit


def _parse_placement(text: str) -> _Placement:
    field, _, rest = text.partition(":")
    place, _, alias = rest.partition(":")
    if not field or place.strip().lower() not in _PLACEMENTS or ":" in alias:
        raise ConfigError(
            f"Invalid value {text} for configuration table.fields.additional.placement: must be column:place or"
            f" column:place:alias, where place is one of {', '.join(_PLACEMENTS)}"
        )
    return _Placement(field.strip(), place.strip().lower(), alias.strip() or field.strip())


def _expand_json(schema: Schema | None, payload: str) -> Side:
    """JSON as a value; other text is unchanged."""
    try:
        value = msgspec.json.decode(payload) if payload.lstrip()[:1] in {"{", "["} else None
        if value is None:
            return schema, payload
        return (None if schema is None else schema_of(value, narrow=True)), value
    except (msgspec.DecodeError, DataError, RecursionError):
        log.warning("JSON expansion failed")
        return schema, payload
