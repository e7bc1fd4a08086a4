"""Read the schemas that clients send: text, references, metadata and rules in the form in which they are stored."""

from collections.abc import Sequence
from typing import Self

import msgspec
from sqlalchemy import Connection

from schema_registry.errors import invalid_schema, schema_too_large
from schema_registry.formats.schema import InvalidSchema, Schema
from schema_registry.models import Config, Metadata, Reference, RuleSet, SchemaBody, SchemaTags
from schema_registry.registry import data_contracts, references
from schema_registry.registry.guid import Content
from schema_registry.registry.parsing import Parser, parse_schema_type
from schema_registry.registry.subject_names import SubjectName
from schema_registry.store.schemas import StoredSchema

_INT_MAX = 2**31 - 1


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A schema as the client sent it, completed step by step by a registration."""

    text: str
    schema_type: str | None
    references: Sequence[Reference]
    metadata: Metadata | None
    rule_set: RuleSet | None
    version: int
    """The version asked for: 0 for any, -1 for the next one, which the metadata then states."""
    id: int | None
    """The id that an import asks for."""
    tags_to_add: Sequence[SchemaTags] = ()
    tags_to_remove: Sequence[SchemaTags] = ()
    propagate_tags: bool = False
    """Whether to keep the tags of the latest version."""

    @property
    def is_empty(self) -> bool:
        """Whether there is no text."""
        return not self.text.strip()

    @property
    def has_tag_changes(self) -> bool:
        """Whether the request asks for tags to be written into the text."""
        return bool(self.tags_to_add or self.tags_to_remove or self.propagate_tags)

    def with_contract(self, previous: StoredSchema | None, config: Config, *, version: int | None) -> Self:
        """The draft with the metadata and rules of a new version: its own or its predecessor's, merged with the
        config's defaults and overrides. With a `version`, the metadata may state it.
        """
        metadata, rules = self.metadata, self.rule_set
        if previous is not None and metadata is None and previous.metadata is not None:
            metadata = Metadata.model_validate_json(previous.metadata)
        if previous is not None and rules is None and previous.rule_set is not None:
            rules = RuleSet.model_validate_json(previous.rule_set)
        metadata = data_contracts.merge_metadata(config.default_metadata, metadata)
        metadata = data_contracts.merge_metadata(metadata, config.override_metadata)
        rules = data_contracts.merge_rules(config.default_rule_set, rules)
        rules = data_contracts.merge_rules(rules, config.override_rule_set)
        if version is not None and (self.version != 0 or data_contracts.stated_version(metadata) is not None):
            metadata = data_contracts.with_version(metadata, version)
        if metadata is None and rules is None:
            return self
        return msgspec.structs.replace(self, metadata=metadata, rule_set=rules)


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed schema that could be stored."""

    content: Content
    schema: Schema

    @property
    def meaning_hash(self) -> str:
        """A hash that is equal for schemas with the same meaning."""
        try:
            return self.content.meaning_hash(self.schema.meaning)
        except InvalidSchema as error:
            raise invalid_schema(f"Invalid schema of type {self.schema.schema_type}, details: {error}") from error


class CandidateReader:
    """Reads drafts and stored schemas."""

    def __init__(self, parser: Parser, *, schema_bytes_max: int) -> None:
        self._parser = parser
        self._schema_bytes_max = schema_bytes_max

    def draft(self, body: SchemaBody) -> Draft:
        """The draft in a request, checked for size and characters."""
        text = body.schema_ or ""
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            raise invalid_schema("Invalid schema, details: the text contains an unpaired surrogate") from None
        if size > self._schema_bytes_max:
            raise schema_too_large(size, self._schema_bytes_max)
        if "\x00" in text:
            raise invalid_schema("Invalid schema, details: the text contains a NUL character")
        schema_id = None if body.id is None or body.id < 0 else body.id
        version = body.version or 0
        if not -1 <= version <= _INT_MAX or (schema_id or 0) > _INT_MAX:
            raise invalid_schema("Invalid schema, details: the id or the version is out of range")
        return Draft(
            text=text,
            schema_type=body.schema_type,
            references=body.references or (),
            metadata=data_contracts.tidy_metadata(body.metadata),
            rule_set=data_contracts.tidy_rules(body.rule_set),
            version=version,
            id=schema_id,
            tags_to_add=body.schema_tags_to_add or (),
            tags_to_remove=body.schema_tags_to_remove or (),
            propagate_tags=bool(body.propagate_schema_tags),
        )

    def read(
        self, connection: Connection, subject: SubjectName, draft: Draft, *, normalize: bool, is_new: bool, strict: bool
    ) -> Candidate:
        """Parse a draft; a new schema must not reference deleted versions."""
        schema_type = parse_schema_type(draft.schema_type)
        resolution = references.resolve(connection, subject, draft.references, allow_deleted=not is_new)
        schema = self._parser.parse(schema_type, draft.text, resolution.every, strict=strict)
        direct = resolution.direct
        if normalize:
            direct = tuple(sorted(set(direct), key=lambda item: (item.name, item.subject, item.version)))
        content = Content(
            schema_type=schema_type,
            text=schema.normalized if normalize else schema.canonical,
            references=direct,
            metadata=draft.metadata,
            rule_set=draft.rule_set,
        )
        return Candidate(content=content, schema=schema)

    def read_stored(self, connection: Connection, stored: StoredSchema) -> Schema:
        """Parse a schema from the store; it was accepted before, so the lenient rules apply."""
        every = references.resolve_stored(connection, stored) if stored.references else ()
        return self._parser.parse(parse_schema_type(stored.schema_type), stored.text, every, strict=False)
