"""Errors of the catalog.

CatalogError
├── TakenOver      another server has written since this one read the definitions: plan again with what it wrote
└── LogProblem     the log cannot be read or written: the message says why
"""

from streams.errors import StreamsError


class CatalogError(StreamsError):
    """Root of the errors of the catalog."""


class TakenOver(CatalogError):
    """Another server has written since this one took over the log; nothing was written."""


class LogProblem(CatalogError):
    """The log cannot be read or written."""
