"""What tables are told: which table, and which files wait to become part of it."""

from typing import Literal, Self

import msgspec
import pyarrow as pa

TableFormat = Literal["parquet", "delta"]


class TableSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A table as its writer wants it; what is created once stays as it is."""

    name: str
    """`table` or `database.table`."""
    format: TableFormat = "parquet"
    partition_by: tuple[str, ...] = ()
    location: str | None = None
    """A folder of the user's; None for one of the warehouse's."""


class StagedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A parquet file without its partition columns that waits to become part of a table."""

    path: str
    rows: int
    size: int
    partition: dict[str, str | None]
    """Value of every partition column as text, as Spark writes it into a folder's name; None for null."""
    schema_bytes: bytes
    """The file's columns as Arrow's IPC message."""

    @classmethod
    def of(cls, path: str, schema: pa.Schema, *, rows: int, size: int, partition: dict[str, str | None]) -> Self:
        """One whose schema is an object still."""
        return cls(path=path, rows=rows, size=size, partition=partition, schema_bytes=packed_schema(schema))

    @property
    def schema(self) -> pa.Schema:
        """The file's columns."""
        return unpacked_schema(self.schema_bytes)


def packed_schema(schema: pa.Schema) -> bytes:
    """A schema as bytes that `StagedFile` keeps."""
    packed: bytes = schema.serialize().to_pybytes()
    return packed


def unpacked_schema(packed: bytes) -> pa.Schema:
    """A schema of such bytes."""
    return pa.ipc.read_schema(pa.py_buffer(packed))


class TableInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A table as an overview shows it."""

    name: str
    format: str
    columns: dict[str, str]
    """Name and type as Spark's SQL writes it, in order."""
    partitioned_by: tuple[str, ...]
    location: str
    files: int
    bytes: int
    rows: int | None
    """None where counting them would mean reading the table."""
    changed_ms: int | None


class UpkeepResult(msgspec.Struct, frozen=True, kw_only=True):
    """What upkeep has done to a table, or would do."""

    table: str
    dry_run: bool = False
    files_removed: int = 0
    files_added: int = 0
    rows_removed: int = 0
    bytes_removed: int = 0
    partitions_dropped: int = 0
