"""Rows of records that converters and transforms have been through: any record, one by one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from connect.api import columns as connect_columns
from connect.api.data import Schema
from connect.api.errors import DataError
from connect.api.record import SinkRecord
from connectors.spark.config import SparkSinkConfig
from connectors.spark.metadata import HEADERS, column_name, header_values, schema_id
from connectors.spark.naming import TableNames
from connectors.spark.rows import DELETED, Columns, Rows, flat, merged
from core_broker.client.records import IncomingRecord
from schema_registry.serdes.arrow.types import TIMESTAMP
from streams.spark.types import table_array

Refused = Callable[[int, Exception], None]
"""Told which record of a batch is bad."""
_KEY_COLUMN = "key"


class _Shape(NamedTuple):
    """Records that go through the same hands."""

    table: str
    key_schema: Schema | None
    value_schema: Schema | None
    is_empty: bool


class RecordRows:
    """Makes rows of records, grouped by table and schema; those that cannot be rows are refused one by one."""

    def __init__(self, config: SparkSinkConfig, names: TableNames, *, has_transforms: bool) -> None:
        self._config = config
        self._names = names
        self._has_transforms = has_transforms

    def of(
        self,
        records: Sequence[SinkRecord],
        raws: Mapping[tuple[str, int, int], int],
        batch: Sequence[IncomingRecord],
        *,
        refused: Refused,
    ) -> list[Rows]:
        """The rows of records; `raws` tells which of the batch, by place and offset, each of them was."""
        shapes: dict[_Shape, list[tuple[int, SinkRecord]]] = {}
        for record in records:
            source = raws[record.original_topic, record.original_partition, record.original_offset]
            if record.value is None and not self._takes_empty(source, refused):
                continue
            shapes.setdefault(self._shape(record), []).append((source, record))
        return [rows for shape, members in shapes.items() for rows in self._shaped(shape, members, batch, refused)]

    def _takes_empty(self, source: int, refused: Refused) -> bool:
        """Whether a record without a value becomes a row."""
        if self._config.deletes or self._config.behavior_on_null_values == "write":
            return True
        if self._config.behavior_on_null_values == "fail":
            refused(source, DataError("The record has no value, and behavior.on.null.values is fail"))
        return False

    def _shape(self, record: SinkRecord) -> _Shape:
        table = self._names.of(record.topic)
        return _Shape(
            table, record.key_schema, None if record.value is None else record.value_schema, record.value is None
        )

    def _shaped(
        self, shape: _Shape, members: list[tuple[int, SinkRecord]], batch: Sequence[IncomingRecord], refused: Refused
    ) -> Iterable[Rows]:
        try:
            yield self._rows(shape, members, batch)
            return
        except (DataError, pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            failure = error
        if len(members) == 1:
            refused(members[0][0], _told(failure))
            return
        middle = len(members) // 2
        yield from self._shaped(shape, members[:middle], batch, refused)
        yield from self._shaped(shape, members[middle:], batch, refused)

    def _rows(self, shape: _Shape, members: list[tuple[int, SinkRecord]], batch: Sequence[IncomingRecord]) -> Rows:
        records = [record for _, record in members]
        value = {} if shape.is_empty else self._value_columns(shape.value_schema, records)
        key = self._key_columns(shape, records, value)
        is_guessed = shape.value_schema is None and not shape.is_empty
        columns = merged(key, value, self._metadata(members, batch))
        if self._config.deletes:
            columns[DELETED] = pa.array([record.value is None for record in records])
        return Rows(
            shape.table, columns, np.array([source for source, _ in members], dtype=np.int64), tuple(key), is_guessed
        )

    def _value_columns(self, schema: Schema | None, records: Sequence[SinkRecord]) -> Columns:
        return flat(array_of(schema, [record.value for record in records]), self._config.value_column)

    def _key_columns(self, shape: _Shape, records: Sequence[SinkRecord], value: Columns) -> Columns:
        match self._config.pk_mode:
            case "record_key":
                return key_columns(array_of(shape.key_schema, [record.key for record in records]), self._config)
            case "record_value":
                return value_key_columns(value, self._config)
            case _:
                return {}

    def _metadata(self, members: list[tuple[int, SinkRecord]], batch: Sequence[IncomingRecord]) -> Columns:
        made: dict[str, Callable[[], pa.Array]] = {
            "topic": lambda: pa.array([r.original_topic for _, r in members], pa.string()),
            "partition": lambda: pa.array([r.original_partition for _, r in members], pa.int32()),
            "offset": lambda: pa.array([r.original_offset for _, r in members], pa.int64()),
            "timestamp": lambda: _times([r.timestamp_ms for _, r in members]),
            "key": lambda: array_of(members[0][1].key_schema, [r.key for _, r in members]),
            "headers": lambda: pa.array([self._headers(r, batch[source]) for source, r in members], HEADERS),
            "schema_id": lambda: pa.array([schema_id(batch[source].value) for source, _ in members], pa.int32()),
        }
        columns: Columns = {}
        for name in self._config.metadata:
            array = made[name]()
            if not pa.types.is_null(array.type):
                columns[column_name(name)] = array
        return columns

    def _headers(self, record: SinkRecord, raw: IncomingRecord) -> list[dict[str, Any]]:
        if self._has_transforms:
            return header_values(record.headers)
        return [{"key": key, "value": value} for key, value in raw.headers]


def array_of(schema: Schema | None, values: list[Any]) -> pa.Array:
    """Values as a column: by their schema, or by what they are."""
    return pa.array(values) if schema is None else table_array(connect_columns.array_of(schema, values))


def key_columns(key: pa.Array, config: SparkSinkConfig) -> Columns:
    """The columns of a record's key. DataError when there is none, or a field is missing."""
    if key.null_count:
        raise DataError("The record has no key, and pk.mode is record_key")
    if not pa.types.is_struct(key.type):
        return {(config.pk_fields or (_KEY_COLUMN,))[0]: key}
    columns = flat(key, _KEY_COLUMN)
    if not config.pk_fields:
        return columns
    return {name: _present(columns, name, "key") for name in config.pk_fields}


def value_key_columns(value: Columns, config: SparkSinkConfig) -> Columns:
    """The columns of a key that is part of the value."""
    columns = {name: _present(value, name, "value") for name in config.pk_fields}
    for name, column in columns.items():
        if column.null_count:
            raise DataError(f"Field {name} is part of the key (pk.fields) and null")
    return columns


def _present(columns: Columns, name: str, what: str) -> pa.Array:
    if name not in columns:
        raise DataError(f"The record's {what} has no field {name}, which pk.fields names; it has {', '.join(columns)}")
    return columns[name]


def _times(milliseconds: list[int | None]) -> pa.Array:
    known = [None if time is None else time * 1000 for time in milliseconds]
    return pa.array(known, pa.int64()).cast(TIMESTAMP)


def _told(error: Exception) -> DataError:
    return error if isinstance(error, DataError) else DataError(f"The record cannot be a row: {error}")
