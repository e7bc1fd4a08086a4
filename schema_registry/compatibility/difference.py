"""A difference between two schemas."""

import msgspec


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A difference between a reader's and a writer's schema."""

    type: str
    """Confluent's name for this kind of difference, e.g. READER_FIELD_MISSING_DEFAULT_VALUE."""
    path: str
    """Its place: `/fields/0/type` in Avro, `#/properties/x` in JSON Schema, `#/Message/3` in Protobuf."""
    is_compatible: bool
    """Whether the reader can still read all records."""
    description: str
    """A sentence for people; `{reader}` and `{writer}` become "new" and "old", depending on the direction."""
    detail: str = ""
    """The names and values concerned, for programs."""
