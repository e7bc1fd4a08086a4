"""Find schemas: by content under a subject, by version, by id, by guid."""

from collections.abc import Iterator, Mapping
from uuid import UUID

from sqlalchemy import Connection

from core_broker.web_access.rules import Operation
from schema_registry.errors import (
    RegistryError,
    invalid_version,
    schema_not_found,
    subject_not_found,
    version_not_found,
)
from schema_registry.models import Config, Metadata
from schema_registry.registry import data_contracts, references
from schema_registry.registry.access import EVERYTHING, Access
from schema_registry.registry.candidates import Candidate, CandidateReader, Draft
from schema_registry.registry.subject_names import SubjectName
from schema_registry.store import contexts, schemas, subjects, versions
from schema_registry.store.schemas import StoredSchema
from schema_registry.store.subjects import DeletionFilter
from schema_registry.store.versions import StoredVersion

LATEST = -1
_INT_MAX = 2**31 - 1


def parse_version(text: str) -> int:
    """The version number in a path; -1 means the latest."""
    stripped = text.strip()
    if stripped.lower() == "latest":
        return LATEST
    if not stripped.removeprefix("-").isascii() or not stripped.removeprefix("-").isdigit() or len(stripped) > 11:
        raise invalid_version(text)
    number = int(stripped)
    if number != LATEST and not 1 <= number <= _INT_MAX:
        raise invalid_version(text)
    return number


def find_version(connection: Connection, subject: SubjectName, number: int, *, deleted: bool) -> StoredVersion | None:
    """A version of exactly this subject; the latest one is never deleted."""
    if number == LATEST:
        return versions.latest(connection, *subject.key)
    found = versions.get(connection, *subject.key, number)
    return found if found is not None and (deleted or not found.is_deleted) else None


def get_version(
    connection: Connection, subject: SubjectName, number: int, *, deleted: bool, access: Access = EVERYTHING
) -> StoredVersion:
    """A version of the subject, which is searched for in all contexts unless it names one. Raises 40401 or 40402."""
    for possible in _possible_subjects(connection, subject, access):
        found = find_version(connection, possible, number, deleted=deleted)
        if found is not None:
            return found
    if not subjects.exists(connection, *subject.key, deleted=deleted):
        raise subject_not_found(subject.qualified)
    raise version_not_found(number)


def _possible_subjects(connection: Connection, subject: SubjectName, access: Access) -> Iterator[SubjectName]:
    """The subjects that a name may mean: without a context it may be in any of them, the default one first.

    Whether the caller may use the first one has been checked; others exist only if the caller may read them.
    """
    yield subject
    if subject.is_in_default_context:
        for context in contexts.others(connection):
            possible = SubjectName(context, subject.name)
            if access.allows(Operation.READ, possible):
                yield possible


def find_candidate(
    connection: Connection, subject: SubjectName, candidate: Candidate, *, deleted: bool
) -> StoredVersion | None:
    """The newest version of a subject with the candidate's content, else the newest that matches it."""
    alike = versions.find_by_meaning(
        connection,
        *subject.key,
        meaning_hash=candidate.meaning_hash,
        content_hash=candidate.content.content_hash,
        deleted=deleted,
    )
    return next((found for found in alike if is_same(candidate, found)), None)


def is_same(candidate: Candidate, found: StoredVersion) -> bool:
    """Whether a version has the candidate's content, or differs only in ways that a look-up ignores.

    Those are references that the candidate has inline, and a `confluent:version` that only one of the two states.
    """
    if candidate.content.content_hash == found.schema.content_hash:
        return True
    if candidate.meaning_hash != found.schema.meaning_hash:
        return False
    content = candidate.content
    metadata = Metadata.model_validate_json(found.schema.metadata) if found.schema.metadata is not None else None
    ours, theirs = data_contracts.stated_version(content.metadata), data_contracts.stated_version(metadata)
    if ours is not None and theirs is None and ours != str(found.version):
        return False
    if not content.references and found.schema.references:
        return ours != theirs or content.metadata == metadata
    is_same_text = (content.text, content.references) == (found.schema.text, found.schema.references)
    return is_same_text and ours != theirs and None in (ours, theirs)


def look_up(
    connection: Connection,
    reader: CandidateReader,
    subject: SubjectName,
    draft: Draft,
    *,
    config: Config,
    normalize: bool,
    deleted: bool,
    access: Access = EVERYTHING,
) -> StoredVersion:
    """The version that has the draft, in all contexts if the subject names none. Raises 40401 or 40403."""

    def find(possible: SubjectName, draft: Draft) -> StoredVersion | None:
        if draft.is_empty:
            return None
        candidate = reader.read(connection, possible, draft, normalize=normalize, is_new=False, strict=False)
        return find_candidate(connection, possible, candidate, deleted=deleted)

    for possible in _possible_subjects(connection, subject, access):
        try:
            references.require_readable(access, possible, draft.references)
            found = find(possible, draft)
            if found is None and (latest := versions.latest(connection, *possible.key)) is not None:
                # A registration would have added metadata and rules.
                completed = draft.with_contract(latest.schema, config, version=None)
                found = find(possible, completed) if completed != draft else None
        except RegistryError:
            if possible == subject:
                raise
            continue  # the references do not exist in that context, or not for this caller
        if found is not None:
            return found
    if not subjects.exists(connection, *subject.key, deleted=deleted):
        raise subject_not_found(subject.qualified)
    raise schema_not_found()


def find_by_id(
    connection: Connection, schema_id: int, subject: SubjectName | None, access: Access = EVERYTHING
) -> tuple[StoredSchema, StoredVersion | None]:
    """The schema with an id and, if the subject has it, its version there. Raises 40403.

    Ids belong to a context. A subject without a context is searched for in all of them; if none has a schema with this
    id under that subject, the id is looked up in the default context. The caller must be able to read that subject, or
    one that uses the schema.
    """
    if not 0 <= schema_id <= _INT_MAX:
        raise schema_not_found(schema_id)
    if subject is not None and subject.name:
        for possible in _possible_subjects(connection, subject, access):
            used = versions.usages(connection, possible.context, schema_id, subject=possible.name)
            if used:
                found = versions.get(connection, *possible.key, used[-1].version)
                if found is not None:
                    access.require_one([possible], lambda: schema_not_found(schema_id))
                    return found.schema, found
        if not subject.is_in_default_context:
            raise schema_not_found(schema_id)
    context = contexts.DEFAULT if subject is None else subject.context
    stored = schemas.by_id(connection, context, schema_id)
    if stored is None:
        raise schema_not_found(schema_id)
    if access.is_limited:
        access.require_one(_users(connection, context, schema_id), lambda: schema_not_found(schema_id))
    return stored, None


def find_ids_by_guid(connection: Connection, guid: str, access: Access = EVERYTHING) -> list[tuple[str, int]]:
    """The contexts and ids of the schema with a guid, where the caller may read a subject with it. Raises 40403."""

    def not_found() -> RegistryError:
        return schema_not_found(guid if guid.isprintable() else None)

    try:
        found = schemas.ids_by_guid(connection, str(UUID(guid)))
    except ValueError:
        found = []
    if access.is_limited:
        users = {place: _users(connection, *place) for place in found}
        found = [place for place in found if any(access.allows(Operation.READ, user) for user in users[place])]
        access.require_one((user for place in found for user in users[place]), not_found)
    if not found:
        raise not_found()
    return found


def _users(connection: Connection, context: str, schema_id: int) -> list[SubjectName]:
    """The subjects that have a schema, in deleted versions too: those are still read by their id."""
    used = dict.fromkeys(usage.subject for usage in versions.usages(connection, context, schema_id))
    return [SubjectName(context, subject) for subject in used]


def find_latest_with_properties(
    connection: Connection, subject: SubjectName, wanted: Mapping[str, str], *, deleted: bool
) -> StoredVersion:
    """The newest version whose metadata has all the properties. Raises 40401 or 40403."""
    for found in versions.newest_first(connection, *subject.key, which=DeletionFilter.of(deleted=deleted)):
        if found.schema.metadata is None:
            continue
        has = data_contracts.properties(Metadata.model_validate_json(found.schema.metadata))
        if wanted.items() <= has.items():
            return found
    if not subjects.exists(connection, *subject.key, deleted=deleted):
        raise subject_not_found(subject.qualified)
    raise schema_not_found()
