"""Adds fields with the topic, partition, offset and time of a record, or with fixed text."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from typing_extensions import override

from connect.api.config import STRING, Problem, option, optional
from connect.api.data import INT32, INT64, TIMESTAMP, Field, Schema, Type, Value, struct
from connect.api.data import STRING as STRING_SCHEMA
from connect.api.errors import DataError
from connect.api.record import Record, SinkRecord
from connect.transforms.epoch import timestamp_at
from connect.transforms.field_path import Path, parse_path
from connect.transforms.options import PathConfig, raw_text
from connect.transforms.sides import Memo, Side, SideTransform
from connect.transforms.structs import (
    Defaults,
    Struct,
    copy_with_defaults,
    defaults_of,
    require_map,
    require_struct,
    require_struct_schema,
    with_fields,
)

_PURPOSE: Final = "field insertion"


class InsertFieldConfig(PathConfig):
    """Options of InsertField."""

    topic_field: str | None = option(optional(STRING), default=None)
    """The field for the topic. Append ! to the name for a required field, ? (or nothing) for an optional one."""
    partition_field: str | None = option(optional(STRING), default=None)
    """The field for the partition; ! and ? as above."""
    offset_field: str | None = option(optional(STRING), default=None)
    """The field for the offset, in sinks only; ! and ? as above."""
    timestamp_field: str | None = option(optional(STRING), default=None)
    """The field for the time of the record; ! and ? as above."""
    static_field: str | None = option(optional(STRING), default=None)
    """The field for static.value; ! and ? as above."""
    static_value: str | None = option(optional(STRING), default=None)
    """The text for it."""

    @override
    def problems(self) -> Iterable[Problem]:
        """At least one field is added, and a static one has a value."""
        given = (self.topic_field, self.partition_field, self.offset_field, self.timestamp_field)
        if not any(given) and not (self.static_field and self.static_value is not None):
            yield Problem("topic.field", "No field insertion configured")
        if self.static_field and self.static_value is None:
            start = "Invalid value null for configuration static.value"
            yield Problem("static.value", f"{start}: No value specified for static field: {self.static_field}")


class _Insertion(NamedTuple):
    path: Path
    schema: Schema
    value: Callable[[Record], Value]


class _Plan(NamedTuple):
    schema: Schema
    defaults: Defaults


class InsertField(SideTransform):
    """Adds fields with the topic, partition, offset and time of a record, or with fixed text; null passes."""

    config_class = InsertFieldConfig
    config: InsertFieldConfig
    aliases = ("org.apache.kafka.connect.transforms.InsertField",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._typed = tuple(
            _insertions(self.config, lambda r: None if r.timestamp_ms is None else timestamp_at(r.timestamp_ms))
        )
        self._untyped = tuple(_insertions(self.config, lambda record: record.timestamp_ms))
        self._plans = Memo(self._plan)

    @override
    def change(self, record: Record, schema: Schema | None, *, value: Value) -> Side:
        if value is None:
            return schema, value
        if schema is None:
            return None, _insert(require_map(value, _PURPOSE).copy(), self._untyped, record=record)
        struct_value = require_struct(value, _PURPOSE)
        updated, defaults = self._plans[schema]
        copy = copy_with_defaults(struct_value, defaults) if defaults else struct_value.copy()
        return updated, _insert(copy, self._typed, record=record)

    def _plan(self, schema: Schema) -> _Plan:
        require_struct_schema(schema, _PURPOSE)
        updated = with_fields(schema, schema.fields)
        for insertion in self._typed:
            updated = _with_field(updated, insertion.path, added=insertion.schema)
        return _Plan(updated, defaults_of(schema, replace_null=self.config.replace_null_with_default))


def _insertions(options: InsertFieldConfig, timestamp: Callable[[Record], Value]) -> Iterable[_Insertion]:
    static = raw_text(options, "static.value", default="")
    wanted: tuple[tuple[str | None, Schema, Callable[[Record], Value]], ...] = (
        (options.topic_field, STRING_SCHEMA, lambda record: record.topic),
        (options.partition_field, INT32, lambda record: record.partition),
        (options.offset_field, INT64, _offset),
        (options.timestamp_field, TIMESTAMP, timestamp),
        (options.static_field, STRING_SCHEMA, lambda _: static),
    )
    for name, schema, value in wanted:
        if name:
            typed = schema if name.endswith("!") else schema.as_optional()
            plain = name[:-1] if name.endswith(("!", "?")) else name
            yield _Insertion(parse_path(plain, options.field_syntax_version), typed, value)


def _offset(record: Record) -> int:
    if not isinstance(record, SinkRecord):
        raise DataError("Offset insertion is only supported for sink connectors, record is of type: SourceRecord")
    return record.offset


def _insert(value: Struct, insertions: tuple[_Insertion, ...], *, record: Record) -> Struct:
    for insertion in insertions:
        item = insertion.value(record)
        if item is None:
            continue
        if len(insertion.path) == 1:
            value[insertion.path[0]] = item
        else:
            _put(value, insertion.path, item=item)
    return value


def _put(value: Struct, path: Path, *, item: Value) -> None:
    """Set a nested field, in copies of the structs around it; nothing is set within a field that is null."""
    for step in path[:-1]:
        inner = value.get(step, {})
        if inner is None:
            return
        value[step] = value = require_map(inner, _PURPOSE).copy()
    value[path[-1]] = item


def _with_field(schema: Schema, path: Path, *, added: Schema) -> Schema:
    """A STRUCT with one more field; missing structs on its path are created."""
    if len(path) == 1:
        return schema.but(fields=(*schema.fields, Field(path[0], added)))
    inner = schema.field(path[0]) or struct({}, optional=True)
    if inner.type is not Type.STRUCT:
        raise DataError(f"Only Struct objects supported for [{_PURPOSE}], found: {inner.type.value}")
    changed = _with_field(inner, path[1:], added=added)
    others = [item for item in schema.fields if item.name != path[0]]
    if len(others) == len(schema.fields):
        return schema.but(fields=(*others, Field(path[0], changed)))
    return schema.but(fields=tuple(Field(f.name, changed) if f.name == path[0] else f for f in schema.fields))
