"""Errors of the copies of tables, grouped by what the caller does about them.

CopyError
├── CopyMissing      no copy of this table is kept
├── CopyUnavailable  the copy cannot be read yet: the message says why; try again later
└── CopyDamaged      the file is not what was written; the copy is built anew
"""

from streams.errors import StreamsError


class CopyError(StreamsError):
    """Root of the errors of copies."""


class CopyMissing(CopyError):
    """No copy of this table is kept."""

    def __init__(self, table: str) -> None:
        super().__init__(f"No copy of {table} is kept on this server: it is not a materialized table")


class CopyUnavailable(CopyError):
    """The copy cannot be read yet."""


class CopyDamaged(CopyError):
    """The file is not what was written."""
