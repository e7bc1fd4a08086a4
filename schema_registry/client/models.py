"""The values that the client sends to a registry and receives from it."""

from typing import Any

import msgspec

from schema_registry.formats.schema import SchemaType


class Reference(msgspec.Struct, frozen=True):
    """A reference from a schema to another one."""

    name: str
    subject: str
    version: int
    """-1 means the latest."""


class SchemaDefinition(msgspec.Struct, frozen=True, rename={"text": "schema", "schema_type": "schemaType"}):
    """A schema's text, format and references: everything that data depends on, and the key of the caches."""

    text: str
    schema_type: SchemaType = SchemaType.AVRO
    references: tuple[Reference, ...] = ()


class RegisteredSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A schema with its ids and version; values that the response did not have are None."""

    definition: SchemaDefinition
    id: int | None = None
    guid: str | None = None
    subject: str | None = None
    version: int | None = None
    metadata: dict[str, Any] | None = None
    rule_set: dict[str, Any] | None = None


class SubjectVersion(msgspec.Struct, frozen=True):
    """A version that has a schema."""

    subject: str
    version: int


class Compatibility(msgspec.Struct, frozen=True):
    """The result of a compatibility check."""

    is_compatible: bool
    messages: tuple[str, ...] = ()


class SchemaPayload(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A schema as the registry sends it; older registries leave out most fields."""

    schema: str | None = None
    schema_type: SchemaType = SchemaType.AVRO
    references: tuple[Reference, ...] = ()
    id: int | None = None
    guid: str | None = None
    subject: str | None = None
    version: int | None = None
    metadata: dict[str, Any] | None = None
    rule_set: dict[str, Any] | None = None

    def to_registered(self, definition: SchemaDefinition | None = None) -> RegisteredSchema:
        """The registered schema; `definition` is the one in the request, for responses that do not repeat it."""
        definition = definition or SchemaDefinition("")
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
