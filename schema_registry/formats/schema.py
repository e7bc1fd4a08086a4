"""What the three formats have in common: parsed schemas, references, limits and errors."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

import msgspec


class SchemaType(StrEnum):
    """The formats, by the names that clients send."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


class InvalidSchema(ValueError):
    """The text is not a valid schema; the message says where and why."""


class ResolvedReference(msgspec.Struct, frozen=True, kw_only=True):
    """A reference to another schema, with its text."""

    name: str
    """The name that the schema uses for it: Avro's full name, JSON Schema's `$ref`, Protobuf's import path."""
    subject: str
    version: int
    text: str


References = Sequence[ResolvedReference]
"""All references of a schema, including those of its references, each before those that use it."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The maximum size of a schema."""

    max_depth: int = 100
    """Levels of nesting in the text."""
    max_elements: int = 20_000
    """JSON values, or Protobuf messages, fields and enum values."""


DEFAULT_LIMITS = Limits()


class Schema(Protocol):
    """One parsed schema, of any format. Immutable; equality is identity."""

    @property
    def schema_type(self) -> SchemaType:
        """The format."""
        ...

    @property
    def canonical(self) -> str:
        """The text that is stored and returned: the client's names and order, in a uniform layout."""
        ...

    @property
    def normalized(self) -> str:
        """The text in normal form: equal for schemas whose differences mean nothing."""
        ...

    @property
    def meaning(self) -> str:
        """The normal form with references inline, if the format allows it."""
        ...

    @property
    def name(self) -> str | None:
        """The name for RecordNameStrategy: Avro's full name, JSON Schema's title, Protobuf's first message."""
        ...

    @property
    def field_names(self) -> tuple[str, ...]:
        """The fields at the top level: of the record, the object or the first message."""
        ...

    def format(self, style: str) -> str:
        """The text for `?format=`: Avro `resolved`, Protobuf `serialized`, …; `canonical` for unknown styles."""
        ...
