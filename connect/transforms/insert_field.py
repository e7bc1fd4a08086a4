"""Adds fields with the place and time of a record, or with fixed text."""

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
from connect.transforms.options import PathConfig, as_given
from connect.transforms.sides import BySchema, Side, SideTransform
from connect.transforms.structs import (
    Defaults,
    Struct,
    copied,
    defaults_of,
    rebuilt,
    require_map,
    require_struct,
    require_struct_schema,
)

_PURPOSE: Final = "field insertion"


class InsertFieldConfig(PathConfig):
    """Options of InsertField."""

    topic_field: str | None = option(optional(STRING), default=None)
    """The field for the topic. Add ! to the name for a field that is not optional, ? (or nothing) for one that is."""
    partition_field: str | None = option(optional(STRING), default=None)
    """The field for the partition; ! and ? as above."""
    offset_field: str | None = option(optional(STRING), default=None)
    """The field for the offset, in sinks only; ! and ? as above."""
    timestamp_field: str | None = option(optional(STRING), default=None)
    """The field for the time of the record; ! and ? as above."""
    static_field: str | None = option(optional(STRING), default=None)
    """The field for static.value; ! and ? as above."""
    static_value: str | None = option(optional(STRING), default=None)
    """What to put there."""

    @override
    def problems(self) -> Iterable[Problem]:
        """Something must be added."""
        given = (self.topic_field, self.partition_field, self.offset_field, self.timestamp_field)
        if not any(given) and not (self.static_field and self.static_value is not None):
            yield Problem("topic.field", "No field insertion configured")
        if self.static_field and self.static_value is None:
            told = "Invalid value null for configuration static.value: No value specified for static field"
            yield Problem("static.value", f"{told}: {self.static_field}")


class _Insertion(NamedTuple):
    path: Path
    schema: Schema
    value: Callable[[Record], Value]


class _Plan(NamedTuple):
    schema: Schema
    defaults: Defaults


class InsertField(SideTransform):
    """Adds fields with the place and time of a record, or with fixed text; null passes."""

    config_class = InsertFieldConfig

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        options = InsertFieldConfig.parse(config)
        self._typed = tuple(_insertions(options, timestamp=_timestamp))
        self._untyped = tuple(_insertions(options, timestamp=lambda record: record.timestamp_ms))
        self._replace_null = options.replace_null_with_default
        self._plans = BySchema(self._plan)

    @override
    def change(self, record: Record, schema: Schema | None, *, value: Value) -> Side:
        if value is None:
            return schema, value
        if schema is None:
            return None, _inserted(require_map(value, _PURPOSE).copy(), self._untyped, record=record)
        struct_value = require_struct(value, _PURPOSE)
        updated, defaults = self._plans[schema]
        copy = copied(struct_value, defaults) if defaults else struct_value.copy()
        return updated, _inserted(copy, self._typed, record=record)

    def _plan(self, schema: Schema) -> _Plan:
        require_struct_schema(schema, _PURPOSE)
        updated = rebuilt(schema, schema.fields)
        for insertion in self._typed:
            updated = _with_field(updated, insertion.path, added=insertion.schema)
        return _Plan(updated, defaults_of(schema, replace_null=self._replace_null))


class InsertFieldKey(InsertField):
    """Adds fields to keys."""

    is_key = True
    aliases = ("org.apache.kafka.connect.transforms.InsertField$Key",)


class InsertFieldValue(InsertField):
    """Adds fields to values."""

    aliases = ("org.apache.kafka.connect.transforms.InsertField$Value",)


def _insertions(options: InsertFieldConfig, *, timestamp: Callable[[Record], Value]) -> Iterable[_Insertion]:
    static = as_given(options, "static.value", default="")
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


def _timestamp(record: Record) -> Value:
    return None if record.timestamp_ms is None else timestamp_at(record.timestamp_ms)


def _inserted(value: Struct, insertions: tuple[_Insertion, ...], *, record: Record) -> Struct:
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
    """Put a value at a nested place, on copies of what is on the way; into a field that is null nothing is put."""
    for step in path[:-1]:
        inner = value.get(step, {})
        if inner is None:
            return
        value[step] = value = require_map(inner, _PURPOSE).copy()
    value[path[-1]] = item


def _with_field(schema: Schema, path: Path, *, added: Schema) -> Schema:
    """A STRUCT with one field more; structs on the way that are not there are made."""
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
