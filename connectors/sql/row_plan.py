"""Plans how records of one shape become rows of one table; a plan is made once, and applied to each record."""

from collections.abc import Callable, Sequence
from datetime import tzinfo
from operator import itemgetter
from typing import Any, Final

import msgspec

from connect.api import data
from connect.api.data import Schema, Type, Value
from connect.api.errors import DataError
from connect.api.record import SinkRecord
from connectors.sql.binding import Encoder, encoder
from connectors.sql.config import KAFKA_COLUMNS, SqlSinkConfig
from connectors.sql.database import TableDefinition
from connectors.sql.logical import NESTED, logical_of

Row = tuple[Any, ...]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A column, and the part of a record that goes into it."""

    column: str
    part: str
    """`key`, `key.`, `value.`, `topic`, `partition` or `offset`."""
    field: str = ""
    schema: Schema | None = None
    is_key: bool = False


class RowPlan:
    """Turns records of one shape into rows."""

    def __init__(
        self,
        sources: Sequence[Source],
        definition: TableDefinition,
        *,
        config: SqlSinkConfig,
        family: str,
        zone: tzinfo,
    ) -> None:
        self.definition = definition
        known = [(source, definition.column(source.column)) for source in sources]
        used = [(source, column) for source, column in known if column is not None]
        self.columns = tuple(column.name for _, column in used)
        self.keys = tuple(column.name for source, column in used if source.is_key)
        self._unknown = [source.field for source, column in known if column is None]
        if any(source.is_key for source, column in known if column is None):
            missing = ", ".join(source.column for source, column in known if column is None and source.is_key)
            raise DataError(f"table {definition.table} has no column for the key: {missing}")
        self._fails_on_unknown = config.unknown_fields == "fail"
        self._getters = _getters([source for source, _ in used])
        self._changes: list[tuple[int, Encoder | None, Value]] = []
        for index, (source, column) in enumerate(used):
            default = source.schema.default if source.schema is not None and config.replace_null_with_default else None
            write = encoder(source.schema, column.type, family=family, zone=zone)
            if write is not None or default is not None:
                self._changes.append((index, write, default))

    @property
    def has_unknown(self) -> bool:
        """Whether such records have fields without a column."""
        return bool(self._unknown)

    def row(self, record: SinkRecord) -> Row:
        """The row of a record: values in the order of `columns`, keys first. Raises DataError."""
        if self._unknown and self._fails_on_unknown:
            names = [name for name in self._unknown if record.value.get(name) is not None]
            if names:
                missing = f"Table {self.definition.table} is missing fields ({', '.join(names)})"
                raise DataError(f"{missing} and auto-evolution is disabled")
        row = [value for getter in self._getters for value in getter(record)]
        for index, write, default in self._changes:
            value = row[index]
            if value is None:
                value = default
            if value is not None:
                row[index] = value if write is None else self._encode(index, write, value)
        if None in row[: len(self.keys)]:
            column = self.columns[row.index(None)]
            raise DataError(f"column {column} of table {self.definition.table} is part of the key, but is null")
        return tuple(row)

    def _encode(self, index: int, write: Encoder, value: Value) -> Any:
        try:
            return write(value)
        except (DataError, ValueError, TypeError, OverflowError, ArithmeticError, KeyError) as error:
            column = f"column {self.columns[index]} of table {self.definition.table}"
            raise DataError(f"{column} cannot take the value: {error}") from error


def _getters(sources: Sequence[Source]) -> list[Callable[[SinkRecord], Sequence[Any]]]:
    """Functions that together return the values of a record, in the order of the sources."""
    getters: list[Callable[[SinkRecord], Sequence[Any]]] = []
    rest = list(sources)
    while rest:
        part = rest[0].part
        if part.endswith("."):
            count = next((index for index, source in enumerate(rest) if source.part != part), len(rest))
            getters.append(_field_getter(part, [source.field for source in rest[:count]]))
            rest = rest[count:]
        else:
            getters.append(_SINGLE[part])
            rest = rest[1:]
    return getters


def _field_getter(part: str, names: Sequence[str]) -> Callable[[SinkRecord], Sequence[Any]]:
    take = itemgetter(*names) if len(names) > 1 else (lambda struct, name=names[0]: (struct[name],))
    is_value = part == "value."

    def getter(record: SinkRecord) -> Sequence[Any]:
        struct = record.value if is_value else record.key
        try:
            found: Sequence[Any] = take(struct)
        except KeyError:
            found = [struct.get(name) for name in names]
        return found

    return getter


_SINGLE: Final[dict[str, Callable[[SinkRecord], Sequence[Any]]]] = {
    "key": lambda record: (record.key,),
    "topic": lambda record: (record.original_topic,),
    "partition": lambda record: (record.original_partition,),
    "offset": lambda record: (record.original_offset,),
    "value": lambda record: (record.value,),
}


# --- columns that records need ---


def key_sources(record: SinkRecord, config: SqlSinkConfig) -> list[Source]:
    """The key columns for records like this one."""
    match config.pk_mode:
        case "kafka":
            names = config.pk_fields or KAFKA_COLUMNS
            parts = zip(names, ("topic", "partition", "offset"), (data.STRING, data.INT32, data.INT64), strict=True)
            return [Source(column=name, part=part, schema=schema, is_key=True) for name, part, schema in parts]
        case "record_key":
            return _sources_of_key(record, config)
        case "record_value":
            fields = config.pk_fields or _names(record.value_schema, record.value)
            _check_names(fields, record.value_schema, record.value, side="value")
            return [_field_source("value.", name, record.value_schema, is_key=True) for name in fields]
        case _:
            return []


def _sources_of_key(record: SinkRecord, config: SqlSinkConfig) -> list[Source]:
    if record.key is None:
        raise DataError("pk.mode is record_key, but the record has no key")
    schema = record.key_schema
    is_struct = schema.type is Type.STRUCT if schema is not None else isinstance(record.key, dict)
    if not is_struct:
        if schema is not None and not schema.type.is_primitive:
            raise DataError(f"the key must be a struct or a primitive type, not {schema.type.name}")
        if len(config.pk_fields) != 1:
            names = ",".join(config.pk_fields)
            raise DataError(f"pk.fields must name one column for a key that is not a struct, not {names!r}")
        return [Source(column=config.pk_fields[0], part="key", schema=schema, is_key=True)]
    fields = config.pk_fields or _names(schema, record.key)
    _check_names(fields, schema, record.key, side="key")
    return [_field_source("key.", name, schema, is_key=True) for name in fields]


def value_sources(record: SinkRecord, config: SqlSinkConfig, *, keys: Sequence[Source]) -> list[Source]:
    """The other columns for records like this one."""
    if not isinstance(record.value, dict):
        return [Source(column=config.string_output_value_column_name, part="value", schema=record.value_schema)]
    taken = {source.column for source in keys}
    wanted = set(config.fields_whitelist)
    names = [name for name in _names(record.value_schema, record.value) if name not in taken]
    sources = [_field_source("value.", name, record.value_schema) for name in names if not wanted or name in wanted]
    for source in sources if config.nested_mode == "fail" else ():
        schema, value = source.schema, record.value.get(source.field)
        nested = isinstance(value, dict | list) if schema is None else schema.type in NESTED and not logical_of(schema)
        if nested:
            raise DataError(f"field {source.field} is nested, and nested.mode is fail")
    return sources


def _field_source(part: str, name: str, schema: Schema | None, *, is_key: bool = False) -> Source:
    found = None if schema is None else schema.field(name)
    return Source(column=name, part=part, field=name, schema=found, is_key=is_key)


def _names(schema: Schema | None, value: Value) -> Sequence[str]:
    return [field.name for field in schema.fields] if schema is not None else list(value)


def _check_names(names: Sequence[str], schema: Schema | None, value: Value, *, side: str) -> None:
    known = schema.by_name if schema is not None else value
    missing = [name for name in names if name not in known]
    if missing:
        raise DataError(
            f"pk.mode is record_{side} with pk.fields {','.join(names)}, but the {side} has no {missing[0]}"
        )
