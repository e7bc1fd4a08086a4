"""One way in which two schemas differ, and how it is told."""

import msgspec


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One change that was found between a reader's and a writer's schema."""

    type: str
    """Confluent's name of the kind of change, e.g. READER_FIELD_MISSING_DEFAULT_VALUE."""
    path: str
    """Where: `/fields/0/type` for Avro, `#/properties/x` for JSON Schema, `#/Message/3` for Protobuf."""
    is_compatible: bool
    """Whether the reader can still read everything that was written."""
    description: str
    """What a person reads; `{reader}` and `{writer}` stand for "new" and "old", whichever way the check goes."""
    detail: str = ""
    """Names and values at fault, for a program to show beside the path."""
