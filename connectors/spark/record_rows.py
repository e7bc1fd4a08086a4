"""Rows of records that have been converted and transformed one by one."""

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
"""Called with each bad record of a batch."""
_KEY_COLUMN = "key"


class _Shape(NamedTuple):
    """Records with the same schemas, converted together."""

    table: str
    key_schema: Schema | None
    value_schema: Schema | None
    is_empty: bool


class RecordRows:
    """Makes rows of records, grouped by table and schema; records that cannot be rows are refused one by one."""

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
        """The rows of records; `raws` has the place in the batch of each, by topic, partition and offset."""
        shapes: dict[_Shape, list[tuple[int, SinkRecord]]] = {}
        for record in records:
            source = raws[record.original_topic, record.original_partition, record.original_offset]
            if record.value is None and not self._takes_empty(source, refused):
                continue
            is_empty = record.value is None
            value_schema = None if is_empty else record.value_schema
            shape = _Shape(self._names.of(record.topic), record.key_schema, value_schema, is_empty)
            shapes.setdefault(shape, []).append((source, record))
        return [rows for shape, members in shapes.items() for rows in self._convert(shape, members, batch, refused)]

    def _takes_empty(self, source: int, refused: Refused) -> bool:
        """Whether a record without a value becomes a row."""
        if self._config.deletes or self._config.behavior_on_null_values == "write":
            return True
        if self._config.behavior_on_null_values == "fail":
            refused(source, DataError("The record has no value, and behavior.on.null.values is fail"))
        return False

    def _convert(
        self, shape: _Shape, members: list[tuple[int, SinkRecord]], batch: Sequence[IncomingRecord], refused: Refused
    ) -> Iterable[Rows]:
        try:
            yield self._rows(shape, members, batch)
            return
        except (DataError, pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            failure = error
        if len(members) == 1:
            is_known = isinstance(failure, DataError)
            refused(members[0][0], failure if is_known else DataError(f"The record cannot be a row: {failure}"))
            return
        middle = len(members) // 2
        yield from self._convert(shape, members[:middle], batch, refused)
        yield from self._convert(shape, members[middle:], batch, refused)

    def _rows(self, shape: _Shape, members: list[tuple[int, SinkRecord]], batch: Sequence[IncomingRecord]) -> Rows:
        records = [record for _, record in members]
        value: Columns = {}
        if not shape.is_empty:
            value = flat(array_of(shape.value_schema, [record.value for record in records]), self._config.value_column)
        key: Columns = {}
        if self._config.pk_mode == "record_key":
            key = key_columns(array_of(shape.key_schema, [record.key for record in records]), self._config)
        elif self._config.pk_mode == "record_value":
            key = value_key_columns(value, self._config)
        is_guessed = shape.value_schema is None and not shape.is_empty
        columns = merged(key, value, self._metadata(members, batch))
        if self._config.deletes:
            columns[DELETED] = pa.array([record.value is None for record in records])
        return Rows(
            shape.table, columns, np.array([source for source, _ in members], dtype=np.int64), tuple(key), is_guessed
        )

    def _metadata(self, members: list[tuple[int, SinkRecord]], batch: Sequence[IncomingRecord]) -> Columns:
        made: dict[str, Callable[[], pa.Array]] = {
            "topic": lambda: pa.array([r.original_topic for _, r in members], pa.string()),
            "partition": lambda: pa.array([r.original_partition for _, r in members], pa.int32()),
            "offset": lambda: pa.array([r.original_offset for _, r in members], pa.int64()),
            "timestamp": lambda: pa.array(
                [None if r.timestamp_ms is None else r.timestamp_ms * 1000 for _, r in members], pa.int64()
            ).cast(TIMESTAMP),
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
    """Values as a column, by their schema or by their Python types."""
    return pa.array(values) if schema is None else table_array(connect_columns.array_of(schema, values))


def key_columns(key: pa.Array, config: SparkSinkConfig) -> Columns:
    """The columns of a record's key. DataError if there is none, or a field is missing."""
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
