"""Lists of subjects, versions, schemas and contexts, page by page."""

from collections.abc import Iterable
from itertools import islice
from typing import TypeVar

import msgspec
from sqlalchemy import Connection

from core_broker.web_access.rules import Operation
from schema_registry.errors import subject_not_found
from schema_registry.models import SchemaResponse, SubjectVersion
from schema_registry.registry import answers, data_contracts, lookups, subject_names
from schema_registry.registry.access import EVERYTHING, Access
from schema_registry.registry.subject_names import WILDCARD, SubjectName
from schema_registry.store import associations, contexts, references, subjects, versions
from schema_registry.store import scopes as scope_rows
from schema_registry.store.associations import Filter
from schema_registry.store.subjects import DeletionFilter
from schema_registry.store.versions import StoredVersion

T = TypeVar("T")


class SchemaFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects schemas in a search."""

    deleted: bool = False
    latest_only: bool = False
    rule_type: str = ""
    """Only schemas with a rule of this type, unless it is empty."""
    associated: Filter | None = None
    """Only schemas of subjects with such an association."""


def subject_list(
    connection: Connection,
    prefix: str,
    *,
    which: DeletionFilter,
    offset: int,
    limit: int,
    access: Access = EVERYTHING,
) -> list[str]:
    """The subjects with a prefix, in the context that it names; `:*:` means all contexts."""
    wanted = subject_names.parse(prefix)
    within = _contexts(connection, wanted)
    if not access.is_limited:
        found = subjects.names(connection, within, wanted.name, which=which, offset=offset, limit=limit)
        return [SubjectName(*name).qualified for name in found]
    every = (
        SubjectName(*key) for key in subjects.names(connection, within, wanted.name, which=which, offset=0, limit=-1)
    )
    return page(
        (name.qualified for name in every if access.allows(Operation.DESCRIBE, name)), offset=offset, limit=limit
    )


def version_list(
    connection: Connection,
    subject: SubjectName,
    *,
    which: DeletionFilter,
    deleted_as_negative: bool,
    offset: int,
    limit: int,
) -> list[int]:
    """The version numbers of a subject, oldest first; raises 40401. Deleted ones may be returned as negatives."""
    which = DeletionFilter.ALL if deleted_as_negative else which
    found = versions.numbers(connection, *subject.key, which=which, offset=offset, limit=limit)
    if not found and not subjects.exists(connection, *subject.key, deleted=which is not DeletionFilter.ALIVE):
        raise subject_not_found(subject.qualified)
    return [-number if deleted_as_negative and is_deleted else number for number, is_deleted in found]


def usages(
    connection: Connection,
    schema_id: int,
    subject: SubjectName | None,
    *,
    deleted: bool,
    access: Access = EVERYTHING,
) -> list[SubjectVersion]:
    """The versions that have a schema, sorted by subject and version. Raises 40403."""
    schema, _ = lookups.find_by_id(connection, schema_id, subject, access)
    found = versions.usages(connection, schema.context, schema.id, which=DeletionFilter.of(deleted=deleted))
    return [
        SubjectVersion(subject=SubjectName(schema.context, used.subject).qualified, version=used.version)
        for used in found
        if access.allows(Operation.READ, SubjectName(schema.context, used.subject))
    ]


def referrer_list(
    connection: Connection,
    target: tuple[str, str, int],
    *,
    deleted: bool,
    offset: int,
    limit: int,
    access: Access = EVERYTHING,
) -> list[int]:
    """The ids of the schemas that reference a version."""
    if not access.is_limited:
        return references.referrers(connection, *target, deleted=deleted, offset=offset, limit=limit)
    users = references.referring_subjects(connection, *target, deleted=deleted)
    visible = (schema_id for schema_id, *key in users if access.allows(Operation.READ, SubjectName(*key)))
    return page(dict.fromkeys(visible), offset=offset, limit=limit)


def schema_list(
    connection: Connection,
    prefix: str,
    wanted: SchemaFilter,
    *,
    offset: int,
    limit: int,
    access: Access = EVERYTHING,
) -> list[SchemaResponse]:
    """The versions of the subjects with a prefix, sorted by name and version."""
    start = subject_names.parse(prefix)
    within = _contexts(connection, start)
    found = versions.search(connection, within, start.name, deleted=wanted.deleted, latest_only=wanted.latest_only)
    if (associated := wanted.associated) is not None:
        found = found.where(lambda context, subject: associations.has(context, subject, associated))
    if access.is_limited:
        found = found.only(lambda context, subject: access.allows(Operation.READ, SubjectName(context, subject)))
    if not wanted.rule_type:
        return [answers.describe_version(version) for version in found.part(offset=offset, limit=limit)]
    matching = (version for version in found.with_rules() if _has_rule(version, wanted.rule_type))
    return [answers.describe_version(version) for version in page(matching, offset=offset, limit=limit)]


def schema_list_with_aliases(
    connection: Connection,
    prefix: str,
    wanted: SchemaFilter,
    *,
    offset: int,
    limit: int,
    access: Access = EVERYTHING,
) -> list[SchemaResponse]:
    """As `schema_list`, with the aliases of each subject, and with the subjects of all aliases with the prefix."""
    start = subject_names.parse(prefix)
    within = _contexts(connection, start)
    aliases = _aliases(connection, within, start.name, access)
    names = set(subjects.names(connection, within, start.name, which=DeletionFilter.ALL, offset=0, limit=-1))
    names |= {target.key for target in aliases}
    if access.is_limited:
        names = {name for name in names if access.allows(Operation.READ, SubjectName(*name))}
    if wanted.associated is not None:
        names = {name for name in names if associations.of_subject(connection, *name, wanted.associated)}
    matching = (
        answers.describe_version(version).model_copy(update={"aliases": aliases.get(SubjectName(*name))})
        for name in sorted(names, key=lambda name: SubjectName(*name).qualified)
        for version in versions.of_subject(connection, name, deleted=wanted.deleted, latest_only=wanted.latest_only)
        if not wanted.rule_type or _has_rule(version, wanted.rule_type)
    )
    return page(matching, offset=offset, limit=limit)


def context_list(
    connection: Connection, prefix: str, *, offset: int, limit: int, access: Access = EVERYTHING
) -> list[str]:
    """The contexts with a prefix, the default one first; to some callers only those in which they see a subject."""
    start = prefix.strip(":")
    found = [name for name in contexts.names(connection) if name.startswith(start)]
    if not access.allows_whole(Operation.DESCRIBE):
        found = [name for name in found if _has_visible_subject(connection, name, access)]
    return page(found, offset=offset, limit=limit)


def page(values: Iterable[T], *, offset: int, limit: int) -> list[T]:
    """One page of a list: `limit` values after the first `offset`; a negative limit means all."""
    return list(islice(values, offset, None if limit < 0 else offset + limit))


def _contexts(connection: Connection, wanted: SubjectName) -> list[str]:
    return contexts.names(connection) if wanted.context == WILDCARD else [wanted.context]


def _has_visible_subject(connection: Connection, context: str, access: Access) -> bool:
    names = subjects.names(connection, [context], "", which=DeletionFilter.ALL, offset=0, limit=-1)
    return any(access.allows(Operation.DESCRIBE, SubjectName(*name)) for name in names)


def _has_rule(version: StoredVersion, rule_type: str) -> bool:
    return data_contracts.has_rule_of_type(answers.read_rules(version.schema), rule_type)


def _aliases(connection: Connection, within: list[str], prefix: str, access: Access) -> dict[SubjectName, list[str]]:
    """The aliases with a prefix that the caller may see, by the subject that they stand for."""
    found: dict[SubjectName, list[str]] = {}
    for (context, name), alias in scope_rows.aliases(connection):
        if context in within and name.startswith(prefix) and name:
            subject = SubjectName(context, name)
            if not access.allows(Operation.DESCRIBE_CONFIGS, subject):
                continue
            found.setdefault(subject_names.parse_beside(subject, alias), []).append(subject.qualified)
    return found
