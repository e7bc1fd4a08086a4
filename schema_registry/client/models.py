"""What a registry tells, and what it is told."""

from typing import Any

import msgspec

from schema_registry.formats.schema import SchemaType


class Reference(msgspec.Struct, frozen=True):
    """Another schema that a schema mentions."""

    name: str
    subject: str
    version: int
    """-1 means the latest."""


class SchemaDefinition(msgspec.Struct, frozen=True, rename={"text": "schema", "schema_type": "schemaType"}):
    """A schema's text, format and references: all that data depends on, and what caches are keyed by."""

    text: str
    schema_type: SchemaType = SchemaType.AVRO
    references: tuple[Reference, ...] = ()


class RegisteredSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A schema with its place in the registry; what the answer did not tell is None."""

    definition: SchemaDefinition
    id: int | None = None
    guid: str | None = None
    subject: str | None = None
    version: int | None = None
    metadata: dict[str, Any] | None = None
    rule_set: dict[str, Any] | None = None


class SubjectVersion(msgspec.Struct, frozen=True):
    """A place where a schema is registered."""

    subject: str
    version: int


class Compatibility(msgspec.Struct, frozen=True):
    """Whether a schema may follow others, and why not."""

    is_compatible: bool
    messages: tuple[str, ...] = ()


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A schema as the registry sends it; older registries leave out most of it."""

    schema: str | None = None
    schema_type: SchemaType = SchemaType.AVRO
    references: tuple[Reference, ...] = ()
    id: int | None = None
    guid: str | None = None
    subject: str | None = None
    version: int | None = None
    metadata: dict[str, Any] | None = None
    rule_set: dict[str, Any] | None = None

    def registered(self, asked: SchemaDefinition | None = None) -> RegisteredSchema:
        """As a value; `asked` stands in for the text when the answer does not repeat it."""
        definition = asked or SchemaDefinition("")
        if self.schema is not None:
            definition = SchemaDefinition(self.schema, self.schema_type, self.references)
        return RegisteredSchema(
            definition=definition,
            id=self.id,
            guid=self.guid,
            subject=self.subject,
            version=self.version,
            metadata=self.metadata,
            rule_set=self.rule_set,
        )
