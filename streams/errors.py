"""Errors of Spark's parts, grouped by what the caller does about them.

StreamsError
├── EngineUnavailable   Spark cannot be started or reached: the message says what to do
│   └── JavaMissing     there is no Java that Spark can run on
├── EngineError         something that the engine was asked to do failed
├── SchemaConflict      rows of this shape do not fit into a table
├── DataLoss            records are gone that should have been read
└── WrongOption         an option cannot work: key, value and what is allowed
"""


class StreamsError(Exception):
    """Root of what these parts raise on purpose."""


class EngineUnavailable(StreamsError):
    """Spark cannot be started or reached."""


class JavaMissing(EngineUnavailable):
    """There is no Java that Spark can run on."""


class EngineError(StreamsError):
    """Something that the engine was asked to do failed; `kind` is the name of the error's class over there."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class SchemaConflict(StreamsError):
    """Rows of this shape do not fit into a table, and it must not be changed so that they do."""

    def __init__(self, table: str, column: str, *, has: str, given: str) -> None:
        super().__init__(f"Column {column} of table {table} is {has}, and cannot take {given}")
        self.table = table
        self.column = column
        self.has = has
        self.given = given


class DataLoss(StreamsError):
    """Records are gone that should have been read, and nobody said that they may be."""


class WrongOption(StreamsError):
    """An option cannot work."""

    def __init__(self, key: str, value: object, allowed: str) -> None:
        super().__init__(f"Invalid value {value!r} for option {key}: {allowed}")
        self.key = key
