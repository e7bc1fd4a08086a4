"""Stored schemas as clients see them."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from schema_registry.errors import invalid_schema
from schema_registry.formats.schema import InvalidSchema
from schema_registry.models import Metadata, Reference, RuleSet, SchemaResponse
from schema_registry.registry import references, tags
from schema_registry.registry.candidates import CandidateReader
from schema_registry.registry.subject_names import SubjectName
from schema_registry.store.schemas import StoredSchema
from schema_registry.store.versions import StoredVersion, Usage

_LOGICAL = "logical"
"""A language of Confluent's own for schemas of all formats. To answer with another text in its place would mislead."""


def of_version(found: StoredVersion, *, text: str | None = None, reference_style: str = "") -> SchemaResponse:
    """All about a version of a subject."""
    schema = found.schema
    return SchemaResponse(
        subject=SubjectName(found.context, found.subject).qualified,
        version=found.version,
        id=schema.id,
        guid=schema.guid,
        schema_type=schema.schema_type,
        references=_references(schema, reference_style) or None,
        metadata=metadata_of(schema),
        rule_set=rules_of(schema),
        schema_=schema.text if text is None else text,
        ts=found.created_ms,
        deleted=found.is_deleted,
    )


def of_schema(
    schema: StoredSchema,
    usage: StoredVersion | Usage | None,
    *,
    text: str,
    reference_style: str = "",
    max_id: int | None = None,
) -> SchemaResponse:
    """All about a schema, with the time and state of one of its uses."""
    return SchemaResponse(
        guid=schema.guid,
        schema_type=schema.schema_type,
        references=_references(schema, reference_style) or None,
        metadata=metadata_of(schema),
        rule_set=rules_of(schema),
        schema_=text,
        ts=usage.created_ms if usage is not None else None,
        deleted=usage.is_deleted if usage is not None else None,
        max_id=max_id,
    )


def text_in(connection: Connection, reader: CandidateReader, schema: StoredSchema, style: str) -> str:
    """The text in the style of `?format=`; unknown styles change nothing."""
    if not style.strip():
        return schema.text
    if style.strip().lower() == _LOGICAL:
        raise invalid_schema("format=logical is not supported: leave it out to get the schema as it was registered")
    try:
        return reader.read_stored(connection, schema).formatted(style.strip())
    except InvalidSchema as error:
        raise invalid_schema(f"Invalid schema of type {schema.schema_type}, details: {error}") from error


def tags_in(
    connection: Connection, reader: CandidateReader, schema: StoredSchema, wanted: Sequence[str]
) -> list[Mapping[str, object]] | None:
    """What in a schema has one of the wanted tags; None when nothing was asked for or found."""
    if not wanted:
        return None
    found = tags.found_in(reader.read_stored(connection, schema), schema.text, wanted=wanted)
    return [item.model_dump(by_alias=True) for item in found] or None


def metadata_of(schema: StoredSchema) -> Metadata | None:
    """The metadata that is stored with a schema."""
    return None if schema.metadata is None else Metadata.model_validate_json(schema.metadata)


def rules_of(schema: StoredSchema) -> RuleSet | None:
    """The rules that are stored with a schema."""
    return None if schema.rule_set is None else RuleSet.model_validate_json(schema.rule_set)


def _references(schema: StoredSchema, style: str) -> list[Reference]:
    if style.strip().lower() == "qualified":
        return references.qualified(schema.references)
    return references.as_given(schema.references)
