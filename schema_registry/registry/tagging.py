"""Write the tags of a request into the schema that is registered."""

from msgspec.structs import replace
from sqlalchemy import Connection

from schema_registry.models import SchemaBody, TagBody
from schema_registry.registry import answers, data_contracts, lookups, references, tags
from schema_registry.registry.candidates import CandidateReader, Draft
from schema_registry.registry.parsing import parse_schema_type
from schema_registry.registry.subject_names import SubjectName
from schema_registry.store import versions
from schema_registry.store.versions import StoredVersion


def apply_tag_changes(connection: Connection, reader: CandidateReader, subject: SubjectName, draft: Draft) -> Draft:
    """Write into a draft the tags that its request adds or removes, and those of the latest version if asked to."""
    tags.check_number([*draft.tags_to_add, *draft.tags_to_remove])
    latest = versions.latest(connection, *subject.key)
    if draft.is_empty and latest is not None:
        draft = _with_schema_of(draft, latest)
    if draft.is_empty:
        return draft
    # Parse the text before editing it: only a valid schema can be edited.
    read = reader.read(connection, subject, draft, normalize=False, is_new=False, strict=False)
    schema_type = parse_schema_type(draft.schema_type)
    add = list(draft.tags_to_add)
    if draft.propagate_tags and latest is not None and latest.schema.schema_type == schema_type:
        before = tags.found_in(reader.read_stored(connection, latest.schema), latest.schema.text)
        add += tags.present_in(read.schema, draft.text, before)
    text = tags.edit(read.schema, draft.text, add=add, remove=draft.tags_to_remove)
    asks_for_new_version = bool(draft.tags_to_add or draft.tags_to_remove) and draft.version == 0
    return replace(draft, text=text, version=lookups.LATEST if asks_for_new_version else draft.version)


def edit_version(
    connection: Connection, reader: CandidateReader, subject: SubjectName, found: StoredVersion, body: TagBody
) -> Draft:
    """The draft that a stored version becomes with other tags, metadata or rules."""
    tags.check_number([*(body.tags_to_add or ()), *(body.tags_to_remove or ())])
    metadata = data_contracts.tidy_metadata(body.metadata) or answers.read_metadata(found.schema)
    schema = reader.read_stored(connection, found.schema)
    text = tags.edit(schema, found.schema.text, add=body.tags_to_add or (), remove=body.tags_to_remove or ())
    new_version = body.new_version or 0
    if body.rules_to_merge is None and body.rules_to_remove is None:
        rules = data_contracts.tidy_rules(body.rule_set)
    else:
        # Rules are merged into those of the latest version, whichever version is tagged.
        latest = versions.latest(connection, *subject.key)
        rules = answers.read_rules(latest.schema) if latest is not None else None
        rules = data_contracts.merge_rules(rules, body.rules_to_merge)
        rules = data_contracts.without_rules(rules, body.rules_to_remove or ())
    data_contracts.check_rules(rules)
    edited = _with_schema_of(reader.draft(SchemaBody(version=new_version)), found)
    return replace(edited, text=text, metadata=data_contracts.with_version(metadata, new_version), rule_set=rules)


def _with_schema_of(draft: Draft, found: StoredVersion) -> Draft:
    schema = found.schema
    return replace(
        draft, text=schema.text, schema_type=schema.schema_type, references=references.as_given(schema.references)
    )
