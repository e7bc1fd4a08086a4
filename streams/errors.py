"""Errors of streams, grouped by what the caller does about them.

StreamsError
├── EngineUnavailable   Spark cannot be started or reached: the message says what to do
│   └── JavaMissing     there is no Java that Spark can run on
├── EngineError         the engine could not do what it was asked to
├── SchemaConflict      rows of this shape do not fit into a table
├── DataLoss            records that should have been read are gone
├── StatementError      the user must change the text of a statement, at the place that the error names
└── WrongOption         an option cannot work: key, value and what is allowed
"""

import re
from typing import Final

_SECRET: Final = re.compile(r"(?i)password|secret|token|jaas|user\.info|keystore\.key|\.pem")
"""Names of options whose values are not shown."""


class StreamsError(Exception):
    """Root of the errors that these parts raise on purpose."""


class EngineUnavailable(StreamsError):
    """Spark cannot be started or reached."""


class JavaMissing(EngineUnavailable):
    """There is no Java that Spark can run on."""


class EngineError(StreamsError):
    """The engine could not do what it was asked to; `kind` is the name of the error's class in the engine."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class SchemaConflict(StreamsError):
    """Rows of this shape do not fit into a table, and the table must not be changed to hold them."""

    def __init__(self, table: str, column: str, *, has: str, given: str) -> None:
        super().__init__(f"Column {column} of table {table} is {has} and cannot hold {given}")
        self.table = table
        self.column = column
        self.has = has
        self.given = given


class DataLoss(StreamsError):
    """Records that should have been read are gone, and the options do not allow that."""


class StatementError(StreamsError):
    """A statement cannot be understood: what to write instead, and where, as offsets into the text."""

    def __init__(self, message: str, *, start: int, end: int) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end


class WrongOption(StreamsError):
    """An option cannot work."""

    def __init__(self, key: str, value: object, allowed: str) -> None:
        shown = "..." if _SECRET.search(key) else repr(value)
        super().__init__(f"Invalid value {shown} for option {key}: {allowed}")
        self.key = key
