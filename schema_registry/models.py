"""The bodies of requests and responses, with the property names of Confluent's clients.

Unknown properties are ignored, because newer clients send more than older registries know. Null and empty values are
left out of responses.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic.alias_generators import to_camel


def _none_if_empty(value: object) -> object:
    return None if value in ([], {}) else value


def _as_text(value: object) -> object:
    """Property values as text: clients also send numbers and booleans."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


class Model(BaseModel):
    """The base of all bodies."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True
    )

    def to_json(self) -> bytes:
        """The body of a response."""
        return self.model_dump_json(exclude_none=True).encode()


class Reference(Model):
    """A reference from a schema to another one."""

    name: str
    subject: str
    version: int


PropertyText = Annotated[str, BeforeValidator(_as_text)]


class Metadata(Model):
    """Information that a schema's owner attaches to it."""

    tags: Annotated[dict[str, list[str]] | None, BeforeValidator(_none_if_empty)] = None
    properties: Annotated[dict[str, PropertyText] | None, BeforeValidator(_none_if_empty)] = None
    sensitive: Annotated[list[str] | None, BeforeValidator(_none_if_empty)] = None


class Rule(Model):
    """A rule that clients apply to records: a condition or a transformation."""

    name: str | None = None
    """Required, but checked with the rules: a missing name must be error 42210, not an invalid request."""
    doc: str | None = None
    kind: str | None = None
    mode: str | None = None
    type: str | None = None
    tags: Annotated[list[str] | None, BeforeValidator(_none_if_empty)] = None
    params: Annotated[dict[str, PropertyText] | None, BeforeValidator(_none_if_empty)] = None
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool = False


class RuleSet(Model):
    """The rules of a schema."""

    migration_rules: Annotated[list[Rule] | None, BeforeValidator(_none_if_empty)] = None
    domain_rules: Annotated[list[Rule] | None, BeforeValidator(_none_if_empty)] = None
    encoding_rules: Annotated[list[Rule] | None, BeforeValidator(_none_if_empty)] = None
    enable_at: str | None = None


class SchemaEntity(Model):
    """A record, message or field inside a schema."""

    entity_path: str
    entity_type: str


class SchemaTags(Model):
    """The tags of a record, message or field inside a schema."""

    schema_entity: SchemaEntity
    tags: list[str]


class SchemaBody(Model):
    """A schema that a client wants to register, look up or check."""

    schema_: str | None = None
    schema_type: str | None = None
    references: list[Reference] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    version: int | None = None
    id: int | None = None
    schema_tags_to_add: list[SchemaTags] | None = None
    schema_tags_to_remove: list[SchemaTags] | None = None
    propagate_schema_tags: bool = False

    model_config = ConfigDict(alias_generator=lambda name: "schema" if name == "schema_" else to_camel(name))


class TagBody(Model):
    """Tags to add to a registered schema or to remove from it; the result becomes a new version."""

    new_version: int | None = None
    tags_to_add: list[SchemaTags] | None = None
    tags_to_remove: list[SchemaTags] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    rules_to_merge: RuleSet | None = None
    rules_to_remove: list[str] | None = None


class SchemaResponse(Model):
    """A schema as the registry returns it; each call leaves out what it does not return."""

    subject: str | None = None
    version: int | None = None
    id: int | None = None
    guid: str | None = None
    schema_type: str | None = None
    references: Annotated[list[Reference] | None, BeforeValidator(_none_if_empty)] = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    schema_: str | None = None
    schema_tags: list[Mapping[str, Any]] | None = None
    ts: int | None = None
    deleted: bool | None = None
    max_id: int | None = None
    aliases: list[str] | None = None

    model_config = ConfigDict(alias_generator=lambda name: "schema" if name == "schema_" else to_camel(name))


class SubjectVersion(Model):
    """A version that has a schema."""

    subject: str
    version: int


class ContextId(Model):
    """The id of a schema in a context."""

    context: str
    id: int


class ConfigKeys(Model):
    """The config of a subject, a context or all subjects, without the compatibility level."""

    alias: str | None = None
    alias_for_deks: str | None = None
    normalize: bool | None = None
    validate_fields: bool | None = None
    validate_new_schemas: bool | None = None
    validate_rules: bool | None = None
    compatibility_policy: str | None = None
    compatibility_group: str | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rule_set: RuleSet | None = None
    override_rule_set: RuleSet | None = None


class Config(ConfigKeys):
    """The config of a subject, a context or all subjects; a key that is not set is inherited."""

    compatibility_level: str | None = None


class ConfigUpdate(ConfigKeys):
    """A change of a config: absent keys stay as they are, null clears a key (`model_fields_set` has those present)."""

    compatibility: str | None = None


class ModeBody(Model):
    """A mode; null means that it is inherited."""

    mode: str | None = None


class Compatibility(Model):
    """The result of a compatibility check."""

    is_compatible: bool
    messages: list[str] | None = None

    model_config = ConfigDict(alias_generator=None)
