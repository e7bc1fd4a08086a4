"""Describe stored schemas to clients."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from schema_registry.errors import invalid_schema
from schema_registry.formats.schema import InvalidSchema
from schema_registry.models import Metadata, RuleSet, SchemaResponse
from schema_registry.registry import references, tags
from schema_registry.registry.candidates import CandidateReader
from schema_registry.registry.subject_names import SubjectName
from schema_registry.store.schemas import StoredSchema
from schema_registry.store.versions import StoredVersion, Usage

_LOGICAL = "logical"
"""A schema language of Confluent's own. Returning another text in its place would mislead the client."""


def describe_version(found: StoredVersion, *, text: str | None = None, reference_style: str = "") -> SchemaResponse:
    """A version of a subject, with its schema."""
    text = found.schema.text if text is None else text
    qualified = SubjectName(found.context, found.subject).qualified
    answer = describe_schema(found.schema, found, text=text, reference_style=reference_style)
    return answer.model_copy(update={"subject": qualified, "version": found.version, "id": found.schema.id})


def describe_schema(
    schema: StoredSchema, usage: StoredVersion | Usage | None, *, text: str, reference_style: str = ""
) -> SchemaResponse:
    """A schema by itself, with the time and the state of one of its versions."""
    is_qualified = reference_style.strip().lower() == "qualified"
    found = references.with_contexts(schema.references) if is_qualified else references.as_given(schema.references)
    return SchemaResponse(
        guid=schema.guid,
        schema_type=schema.schema_type,
        references=found or None,
        metadata=read_metadata(schema),
        rule_set=read_rules(schema),
        schema_=text,
        ts=usage.created_ms if usage is not None else None,
        deleted=usage.is_deleted if usage is not None else None,
    )


def format_text(connection: Connection, reader: CandidateReader, schema: StoredSchema, style: str) -> str:
    """The text in the style of `?format=`; unknown styles are ignored."""
    if not style.strip():
        return schema.text
    if style.strip().lower() == _LOGICAL:
        raise invalid_schema("format=logical is not supported: leave it out to get the schema as it was registered")
    try:
        return reader.read_stored(connection, schema).format(style.strip())
    except InvalidSchema as error:
        raise invalid_schema(f"Invalid schema of type {schema.schema_type}, details: {error}") from error


def find_tags(
    connection: Connection, reader: CandidateReader, schema: StoredSchema, wanted: Sequence[str]
) -> list[Mapping[str, object]] | None:
    """The records and fields with one of the wanted tags; None if none are wanted or found."""
    if not wanted:
        return None
    found = tags.found_in(reader.read_stored(connection, schema), schema.text, wanted=wanted)
    return [item.model_dump(by_alias=True) for item in found] or None


def read_metadata(schema: StoredSchema) -> Metadata | None:
    """The metadata stored with a schema."""
    return None if schema.metadata is None else Metadata.model_validate_json(schema.metadata)


def read_rules(schema: StoredSchema) -> RuleSet | None:
    """The rules stored with a schema."""
    return None if schema.rule_set is None else RuleSet.model_validate_json(schema.rule_set)
