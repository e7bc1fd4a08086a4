"""The data source `delta` for sessions without Delta's jars: Arrow batches of a table, by delta-rs and pyarrow.

The catalog's entry of a table sends its columns to a Python data source and nothing else, so that the table's folder
stands in the metadata of the first column (see `Catalog.set_columns`); `load(path)` works as well. Each query sees the
version there is when it begins.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from streams.errors import WrongOption
from streams.spark.tables.catalog import LOCATION_KEY, PUSHDOWN_KEY
from streams.spark.tables.delta_filters import file_predicate
from streams.spark.tables.delta_table import arrow_schema, delta_uri
from streams.spark.types import conformed

_BYTES_PER_TASK: Final = 64 << 20
_BATCH_ROWS: Final = 64 * 1024


class DeltaSource(DataSource):
    """Delta tables to read; they are written by their sinks."""

    @classmethod
    def name(cls) -> str:
        """As Delta's own source is called, which takes precedence where its jars are."""
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
            raise WrongOption("path", "", "the folder of a delta table")
        return str(path)


class Part(InputPartition):
    """Files for one task, each with the values of its partition columns; without any: all of the table."""

    def __init__(self, version: int, files: Sequence[tuple[str, dict[str, Any]]] | None) -> None:
        super().__init__(version)
        self.files = files


class DeltaReader(DataSourceReader):
    """Reads one version of a table."""

    def __init__(self, path: str, schema: StructType) -> None:
        self._path = path
        self._schema = schema
        self._predicate: str | None = None

    def partitions(self) -> Sequence[InputPartition]:
        """Files in about equal shares; all at once where only delta-rs knows how to read them."""
        from deltalake import DeltaTable

        table = DeltaTable(self._path)
        if table.protocol().reader_features:
            return [Part(table.version(), None)]
        wanted = None
        if self._predicate is not None:
            wanted = {
                unquote(uri).rpartition("/")[2] for uri in table.file_uris(file_pruning_predicate=self._predicate)
            }
        return [Part(table.version(), share) for share in _shares(table, wanted)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of some files in the query's columns."""
        wanted = to_arrow_schema(self._schema, timezone="UTC")
        if not isinstance(partition, Part):
            raise TypeError(f"{partition} is no part of a delta table")
        batches = self._all(partition.value) if partition.files is None else self._files(partition.files, wanted)
        for batch in batches:
            yield from conformed(pa.Table.from_batches([batch]), wanted).to_batches()

    def _all(self, version: int) -> Iterator[pa.RecordBatch]:
        from deltalake import DeltaTable

        yield from pa.RecordBatchReader.from_stream(DeltaTable(self._path, version=version).scan())

    def _files(self, files: Iterable[tuple[str, dict[str, Any]]], wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
        for path, values in files:
            content = ds.dataset(path, format="parquet")
            columns = [name for name in wanted.names if name in content.schema.names]
            for batch in content.to_batches(columns=columns, batch_size=_BATCH_ROWS):
                yield _with_values(batch, values, wanted)


class FilteringReader(DeltaReader):
    """Reads no files that a query's filters rule out; Spark looks at the rows itself.

    For tables of a catalog whose sessions have spark.sql.python.filterPushdown.enabled: others refuse such a reader.
    """

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 -- Spark's name
        """Take what the log's statistics can answer, and give all back."""
        self._predicate = file_predicate(filters, to_arrow_schema(self._schema, timezone="UTC"))
        return filters


def _shares(table: Any, wanted: set[str] | None) -> list[list[tuple[str, dict[str, Any]]]]:
    """Files with their partitions' values, in shares of about one task's size; one empty share when there are none."""
    # The log spells paths as URIs; files are called otherwise.
    folder = unquote(table.table_uri.removeprefix("file://")).rstrip("/")
    shares: list[list[tuple[str, dict[str, Any]]]] = [[]]
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


def _with_values(batch: pa.RecordBatch, values: dict[str, Any], wanted: pa.Schema) -> pa.RecordBatch:
    for name, value in values.items():
        if name in wanted.names and name not in batch.schema.names:
            column = pa.repeat(pa.scalar(value, wanted.field(name).type), batch.num_rows)
            batch = batch.append_column(name, column)
    return batch
