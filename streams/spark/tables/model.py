"""Specifications of tables, files staged for them, and results of their upkeep."""

from typing import Literal, Self

import msgspec
import pyarrow as pa

TableFormat = Literal["parquet", "delta"]


class TableSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A table as its writer wants it; an existing table keeps its format, partitions and location."""

    name: str
    """`table` or `database.table`."""
    format: TableFormat = "parquet"
    partition_by: tuple[str, ...] = ()
    location: str | None = None
    """A folder of the user's; None for one in the warehouse."""


class StagedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A parquet file, without its partition columns, that is to become part of a table."""

    path: str
    rows: int
    size: int
    partition: dict[str, str | None]
    """Every partition column's value as text, as in Spark's folder names; None for null."""
    schema_bytes: bytes
    """The file's schema as an Arrow IPC message."""

    @classmethod
    def of(cls, path: str, schema: pa.Schema, *, rows: int, size: int, partition: dict[str, str | None]) -> Self:
        """A staged file with this schema."""
        return cls(path=path, rows=rows, size=size, partition=partition, schema_bytes=pack_schema(schema))

    @property
    def schema(self) -> pa.Schema:
        """The file's columns."""
        return unpack_schema(self.schema_bytes)


def pack_schema(schema: pa.Schema) -> bytes:
    """A schema as an Arrow IPC message."""
    packed: bytes = schema.serialize().to_pybytes()
    return packed


def unpack_schema(packed: bytes) -> pa.Schema:
    """The schema in an Arrow IPC message."""
    return pa.ipc.read_schema(pa.py_buffer(packed))


class TableInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A table as an overview shows it."""

    name: str
    format: str
    columns: dict[str, str]
    """Name and type, as in Spark's SQL, in order."""
    partitioned_by: tuple[str, ...]
    location: str
    files: int
    bytes: int
    rows: int | None
    """None if counting them would mean reading the table."""
    changed_ms: int | None


class UpkeepResult(msgspec.Struct, frozen=True, kw_only=True):
    """What upkeep did to a table or, in a dry run, would do."""

    table: str
    dry_run: bool = False
    files_removed: int = 0
    files_added: int = 0
    rows_removed: int = 0
    bytes_removed: int = 0
    partitions_dropped: int = 0
