"""Tags that come with requests, worked into what is registered."""

from msgspec.structs import replace
from sqlalchemy import Connection

from schema_registry.models import RuleSet, SchemaBody, TagBody
from schema_registry.registry import answers, data_contracts, lookups, references, tags
from schema_registry.registry.candidates import CandidateReader, Draft
from schema_registry.registry.parsing import schema_type_of
from schema_registry.registry.subject_names import SubjectName
from schema_registry.store import versions
from schema_registry.store.versions import StoredVersion


def with_tags(
    connection: Connection, reader: CandidateReader, subject: SubjectName, draft: Draft, body: SchemaBody
) -> Draft:
    """A draft with the tags that came beside it, and those of the version before if they are to be kept."""
    tags.check_number([*(body.schema_tags_to_add or ()), *(body.schema_tags_to_remove or ())])
    latest = versions.latest(connection, *subject.key)
    if draft.is_empty and latest is not None:
        draft = _of_stored(draft, latest)
    if draft.is_empty:
        return draft
    # Only what is known to be a schema is edited.
    read = reader.read(connection, subject, draft, normalize=False, is_new=False, strict=False)
    schema_type = schema_type_of(draft.schema_type)
    add = list(body.schema_tags_to_add or ())
    if body.propagate_schema_tags and latest is not None and latest.schema.schema_type == schema_type:
        before = tags.found_in(reader.read_stored(connection, latest.schema), latest.schema.text)
        add += tags.present_in(read.schema, draft.text, before)
    text = tags.edit(read.schema, draft.text, add=add, remove=body.schema_tags_to_remove or ())
    asks = bool(body.schema_tags_to_add or body.schema_tags_to_remove)
    version = lookups.LATEST if asks and draft.version == 0 else draft.version
    return replace(draft, text=text, version=version)


def tagged(
    connection: Connection, reader: CandidateReader, subject: SubjectName, found: StoredVersion, body: TagBody
) -> Draft:
    """What a version becomes with other tags, metadata or rules."""
    tags.check_number([*(body.tags_to_add or ()), *(body.tags_to_remove or ())])
    metadata = data_contracts.tidy_metadata(body.metadata) or answers.metadata_of(found.schema)
    schema = reader.read_stored(connection, found.schema)
    text = tags.edit(schema, found.schema.text, add=body.tags_to_add or (), remove=body.tags_to_remove or ())
    new_version = body.new_version or 0
    rules = _rules(connection, subject, body)
    data_contracts.check_rules(rules)
    edited = _of_stored(reader.draft(SchemaBody(version=new_version)), found)
    return replace(edited, text=text, metadata=data_contracts.with_version(metadata, new_version), rule_set=rules)


def _of_stored(draft: Draft, found: StoredVersion) -> Draft:
    schema = found.schema
    return replace(
        draft,
        text=schema.text,
        schema_type=schema.schema_type,
        references=references.as_given(schema.references),
    )


def _rules(connection: Connection, subject: SubjectName, body: TagBody) -> RuleSet | None:
    """The rules that come with a change of tags, or those of the latest version with some merged and some removed."""
    if body.rules_to_merge is None and body.rules_to_remove is None:
        return data_contracts.tidy_rules(body.rule_set)
    latest = versions.latest(connection, *subject.key)
    rules = answers.rules_of(latest.schema) if latest is not None else None
    return data_contracts.without_rules(
        data_contracts.merge_rules(rules, body.rules_to_merge), body.rules_to_remove or ()
    )
