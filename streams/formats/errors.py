"""Errors of the formats, grouped by what the caller does about them.

FormatError
├── DecodeError      this key or value is not what its source declares: the record is skipped or a dead letter
├── EncodeError      these values cannot be written in the format of the sink
├── SchemasMissing   a format needs the schema registry, but none is configured
└── SchemaProblem    the registry has no schema that would do, or does not take ours; the message says why

Errors of reaching the registry are those of its client, `schema_registry.client.errors.ClientError`.
"""

from typing import Literal

from streams.errors import StreamsError

Part = Literal["key", "value"]


class FormatError(StreamsError):
    """Root of the errors of formats."""


class DecodeError(FormatError):
    """A key or a value is not what its source declares."""

    def __init__(self, part: Part, message: str) -> None:
        super().__init__(message)
        self.part: Part = part
        self.message = message


class EncodeError(FormatError):
    """Values cannot be written in the format of the sink."""

    def __init__(self, part: Part, message: str) -> None:
        super().__init__(message)
        self.part: Part = part
        self.message = message


class SchemasMissing(FormatError):
    """A format needs the schema registry, but none is configured."""


class SchemaProblem(FormatError):
    """The registry has no schema that would do, or does not take ours."""
