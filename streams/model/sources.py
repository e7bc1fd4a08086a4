"""Streams and tables as the catalog keeps them: a topic, how its records are written, and its columns."""

from typing import Final, Literal, TypeAlias

import msgspec

from streams.model.types import SqlType, parse_type

FormatName: TypeAlias = Literal["AVRO", "PROTOBUF", "PROTOBUF_NOSR", "JSON", "JSON_SR", "KAFKA", "DELIMITED", "NONE"]
Kind: TypeAlias = Literal["STREAM", "TABLE"]
WindowKind: TypeAlias = Literal["TUMBLING", "HOPPING", "SESSION"]

REGISTRY_FORMATS: Final = frozenset({"AVRO", "PROTOBUF", "JSON_SR"})
"""The formats whose records name a schema of the registry."""
ROWTIME: Final = "ROWTIME"
ROWPARTITION: Final = "ROWPARTITION"
ROWOFFSET: Final = "ROWOFFSET"
WINDOWSTART: Final = "WINDOWSTART"
WINDOWEND: Final = "WINDOWEND"
PSEUDO_COLUMNS: Final = {ROWTIME: "BIGINT", ROWPARTITION: "INTEGER", ROWOFFSET: "BIGINT"}
"""What every source has beside its own columns."""
WINDOW_COLUMNS: Final = {WINDOWSTART: "BIGINT", WINDOWEND: "BIGINT"}
"""What windowed sources have in addition."""


class Column(msgspec.Struct, frozen=True):
    """A column: its name as it is stored, and its type as `str(SqlType)` prints it."""

    name: str
    type: str

    @property
    def sql_type(self) -> SqlType:
        """Its type."""
        return parse_type(self.type)


class HeaderColumn(msgspec.Struct, frozen=True):
    """A column of headers: all of them (`key` is None), or the last one with a key."""

    name: str
    key: str | None = None


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """How keys or values are written."""

    name: FormatName
    delimiter: str = ","
    """Of DELIMITED: one character."""
    wraps_single: bool | None = None
    """Whether a single value column is a record of one field; None for the default of the format."""
    full_name: str | None = None
    """The name of the Avro record or the Protobuf message."""
    schema_id: int | None = None
    """The id of the schema that must be used."""
    nullable_as: Literal["OPTIONAL", "WRAPPER"] | None = None
    """How Protobuf distinguishes null from a default."""


class WindowInfo(msgspec.Struct, frozen=True, kw_only=True):
    """How keys are windowed; the size is known for all but sessions."""

    kind: WindowKind
    size_ms: int | None = None
    retention_ms: int | None = None
    """How long copies keep a window; None for as long as its topic keeps records."""


class TimestampColumn(msgspec.Struct, frozen=True, kw_only=True):
    """The column that ROWTIME is taken from, and its pattern if it is text."""

    column: str
    pattern: str | None = None


OnError: TypeAlias = Literal["dlq", "skip", "fail"]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A stream or a table over a topic."""

    name: str
    kind: Kind
    topic: str
    key_format: Format
    value_format: Format
    key: tuple[Column, ...] = ()
    value: tuple[Column, ...] = ()
    headers: tuple[HeaderColumn, ...] = ()
    window: WindowInfo | None = None
    timestamp: TimestampColumn | None = None
    is_read_only: bool = False
    """CREATE SOURCE STREAM, CREATE SOURCE TABLE."""
    statement: str = ""
    """The statement that made it, with everything that it left out."""
    query_id: str | None = None
    """The query that fills it, if a CREATE ... AS SELECT made it."""
    partitions: int | None = None
    """Of its topic, when it was made."""
    is_materialized: bool = False
    """Whether servers keep a copy of it for pull queries."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """Its key columns, then those of the value; headers are not among them."""
        return (*self.key, *self.value)
