"""The bodies of requests and answers, by the names that Confluent's clients send and read.

Unknown properties are ignored (newer clients send more than any registry knows), and what is null or empty is left out
of answers.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic.alias_generators import to_camel


def _none_if_empty(value: object) -> object:
    return None if value in ([], {}) else value


def _as_text(value: object) -> object:
    """Property values as text: clients send numbers and booleans too."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


class Model(BaseModel):
    """What all bodies share."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True
    )

    def to_json(self) -> bytes:
        """The body of an answer."""
        return self.model_dump_json(exclude_none=True).encode()


class Reference(Model):
    """Another schema that a schema mentions."""

    name: str
    subject: str
    version: int


PropertyText = Annotated[str, BeforeValidator(_as_text)]


class Metadata(Model):
    """What a schema's owner says about it."""

    tags: Annotated[dict[str, list[str]] | None, BeforeValidator(_none_if_empty)] = None
    properties: Annotated[dict[str, PropertyText] | None, BeforeValidator(_none_if_empty)] = None
    sensitive: Annotated[list[str] | None, BeforeValidator(_none_if_empty)] = None


class Rule(Model):
    """One rule that clients run on records: a condition to hold, or a change to make."""

    name: str | None = None
    """Every rule needs one; that it is missing is told as a mistake in the rules (42210), not in the request."""
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
    """A record, message or field inside of a schema."""

    entity_path: str
    entity_type: str


class SchemaTags(Model):
    """Tags of one thing inside of a schema."""

    schema_entity: SchemaEntity
    tags: list[str]


class SchemaBody(Model):
    """A schema as a client sends it, to register it, look it up or check it."""

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
    """Tags to write into a registered schema or to take out of it; the result becomes a new version."""

    new_version: int | None = None
    tags_to_add: list[SchemaTags] | None = None
    tags_to_remove: list[SchemaTags] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    rules_to_merge: RuleSet | None = None
    rules_to_remove: list[str] | None = None


class SchemaAnswer(Model):
    """A schema as the registry returns it; what a call does not tell is left out."""

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
    """Where a schema is used."""

    subject: str
    version: int


class ContextId(Model):
    """Which id a schema has in a context."""

    context: str
    id: int


class ConfigKeys(Model):
    """What can be set for a subject, a context or all subjects, beside the level."""

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
    """What holds for a subject, a context or all subjects; a key that is not set is inherited."""

    compatibility_level: str | None = None


class ConfigUpdate(ConfigKeys):
    """A change of a config: an absent key stays as it is, a null clears it (`model_fields_set` tells which came)."""

    compatibility: str | None = None


class ModeBody(Model):
    """A mode, asked for or told; none means that it is inherited."""

    mode: str | None = None


class Compatibility(Model):
    """Whether a schema may follow others, and why not."""

    is_compatible: bool
    messages: list[str] | None = None

    model_config = ConfigDict(alias_generator=None)
