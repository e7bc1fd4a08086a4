"""The data source `delta` for sessions without Delta's jars: reads a table as Arrow batches with delta-rs and pyarrow.

A Python data source gets only the columns of a table's catalog entry, so the table's folder is in the metadata of the
first column (see `Catalog.set_columns`); `load(path)` works as well. Each query reads the version that is current when
it begins.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from streams.errors import WrongOption
from streams.spark.tables.catalog import LOCATION_KEY, PUSHDOWN_KEY
from streams.spark.tables.delta_table import arrow_schema, delta_uri, identifier
from streams.spark.types import conformed

_BYTES_PER_TASK: Final = 64 << 20
_BATCH_ROWS: Final = 64 * 1024
_OPERATORS: Final[dict[type[Filter], str]] = {
    EqualTo: "=",
    EqualNullSafe: "=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}
FileWithPartition: TypeAlias = tuple[str, dict[str, Any]]
"""A file's path, and the values of its partition columns."""


class DeltaSource(DataSource):
    """Reads Delta tables; their sinks write them."""

    @classmethod
    def name(cls) -> str:
        """The name of Delta's own source, which takes precedence if its jars are there."""
        return "delta"

    def schema(self) -> StructType:
        """The table's columns."""
        from deltalake import DeltaTable

        return from_arrow_schema(arrow_schema(DeltaTable(delta_uri(self._path(None)))))

    def reader(self, schema: StructType) -> "DeltaReader":
        """A reader of the newest version."""
        path = delta_uri(self._path(schema))
        metadata = schema.fields[0].metadata if schema.fields else {}
        return (FilteringReader if metadata.get(PUSHDOWN_KEY) == "true" else DeltaReader)(path, schema)

    def _path(self, schema: StructType | None) -> str:
        path = self.options.get("path")
        if path is None and schema is not None and schema.fields:
            path = schema.fields[0].metadata.get(LOCATION_KEY)
        if path is None:
            raise WrongOption("path", "", "must be the folder of a delta table")
        return str(path)


class DeltaPartition(InputPartition):
    """The files that one task reads; None for the whole table."""

    def __init__(self, version: int, files: Sequence[FileWithPartition] | None) -> None:
        super().__init__(version)
        self.files = files


class DeltaReader(DataSourceReader):
    """Reads one version of a table."""

    def __init__(self, path: str, schema: StructType) -> None:
        self._path = path
        self._schema = schema
        self._predicate: str | None = None

    def partitions(self) -> Sequence[InputPartition]:
        """Files in about equal shares; a single part if only delta-rs can read the table."""
        from deltalake import DeltaTable

        table = DeltaTable(self._path)
        if table.protocol().reader_features:
            return [DeltaPartition(table.version(), None)]
        wanted = None
        if self._predicate is not None:
            wanted = {
                unquote(uri).rpartition("/")[2] for uri in table.file_uris(file_pruning_predicate=self._predicate)
            }
        return [DeltaPartition(table.version(), share) for share in _shares(table, wanted)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of some files in the query's columns."""
        wanted = to_arrow_schema(self._schema, timezone="UTC")
        if not isinstance(partition, DeltaPartition):
            raise TypeError(f"{partition} is not a part of a delta table")
        if partition.files is None:
            from deltalake import DeltaTable

            stream = DeltaTable(self._path, version=partition.value).scan()
            batches: Iterable[pa.RecordBatch] = pa.RecordBatchReader.from_stream(stream)
        else:
            batches = _file_batches(partition.files, wanted)
        for batch in batches:
            yield from conformed(pa.Table.from_batches([batch]), wanted).to_batches()


class FilteringReader(DeltaReader):
    """Skips files that a query's filters rule out; Spark filters the rows itself.

    For tables of a catalog whose sessions have spark.sql.python.filterPushdown.enabled: others refuse such a reader.
    """

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 -- Spark's name
        """Use the filters that the log's statistics can answer, and return all of them."""
        self._predicate = file_predicate(filters, to_arrow_schema(self._schema, timezone="UTC"))
        return filters


def file_predicate(filters: Iterable[Filter], schema: pa.Schema) -> str | None:
    """A query's filters as a predicate over the statistics in Delta's log; None if none can be expressed."""
    found = [text for text in (_predicate(item, schema) for item in filters) if text is not None]
    return " AND ".join(found) or None


def _predicate(item: Filter, schema: pa.Schema) -> str | None:
    attribute: tuple[str, ...] = getattr(item, "attribute", ())
    if len(attribute) != 1 or attribute[0] not in schema.names:
        return None
    kind = schema.field(attribute[0]).type
    name = identifier(attribute[0])
    if isinstance(item, IsNull):
        return f"{name} IS NULL"
    if isinstance(item, IsNotNull):
        return f"{name} IS NOT NULL"
    if isinstance(item, In):
        values = [_literal(value, kind) for value in item.value]
        return None if None in values or not values else f"{name} IN ({', '.join(map(str, values))})"
    operator = _OPERATORS.get(type(item))
    literal = _literal(getattr(item, "value", None), kind)
    return None if operator is None or literal is None else f"{name} {operator} {literal}"


def _literal(value: Any, kind: pa.DataType) -> str | None:
    if pa.types.is_integer(kind) and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if pa.types.is_string(kind) and isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if pa.types.is_date(kind) and isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    return None


def _shares(table: Any, wanted: set[str] | None) -> list[list[FileWithPartition]]:
    """The wanted files in shares of about one task's size; one empty share if there are none."""
    # Paths in the log are URI-encoded, names of files are not.
    folder = unquote(table.table_uri.removeprefix("file://")).rstrip("/")
    shares: list[list[FileWithPartition]] = [[]]
    size = 0
    for action in pa.table(table.get_add_actions()).to_pylist():
        path = unquote(action["path"])
        if wanted is not None and path.rpartition("/")[2] not in wanted:
            continue
        if size and size + action["size_bytes"] > _BYTES_PER_TASK:
            shares.append([])
            size = 0
        shares[-1].append((f"{folder}/{path}", action.get("partition") or {}))
        size += action["size_bytes"]
    return shares


def _file_batches(files: Iterable[FileWithPartition], wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of files, with their partition columns."""
    for path, values in files:
        content = ds.dataset(path, format="parquet")
        columns = [name for name in wanted.names if name in content.schema.names]
        for batch in content.to_batches(columns=columns, batch_size=_BATCH_ROWS):
            for name, value in values.items():
                if name in wanted.names and name not in batch.schema.names:
                    column = pa.repeat(pa.scalar(value, wanted.field(name).type), batch.num_rows)
                    batch = batch.append_column(name, column)
            yield batch
