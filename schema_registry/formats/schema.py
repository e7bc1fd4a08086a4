"""What the three formats share: a parsed schema, its references, and how a text is refused."""

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
    """The text is no valid schema; the message tells where and why."""


class ResolvedReference(msgspec.Struct, frozen=True, kw_only=True):
    """Another schema that a schema mentions, with its text."""

    name: str
    """How the schema mentions it: Avro's full name, JSON Schema's `$ref`, Protobuf's import path."""
    subject: str
    version: int
    text: str


References = Sequence[ResolvedReference]
"""All references of a schema, those of its references included, each before whatever mentions it."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a schema is read before it is refused."""

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
        """The text that is stored and returned: same meaning and order as given, one layout."""
        ...

    @property
    def normalized(self) -> str:
        """The text in normal form: equal for schemas that differ only in what has no meaning."""
        ...

    @property
    def meaning(self) -> str:
        """The normal form with references inline, if the format can do that."""
        ...

    @property
    def name(self) -> str | None:
        """What RecordNameStrategy calls it: Avro's full name, JSON Schema's title, Protobuf's first message."""
        ...

    @property
    def field_names(self) -> tuple[str, ...]:
        """The fields at the top level: of the record, the object or the first message."""
        ...

    def formatted(self, style: str) -> str:
        """The text for `?format=`: Avro `resolved`, Protobuf `serialized`, …; unknown styles give `canonical`."""
        ...
