"""Lists: of subjects, versions, schemas and contexts, in pieces."""

from collections.abc import Iterable
from itertools import islice
from typing import TypeVar

import msgspec
from sqlalchemy import Connection

from schema_registry.errors import schema_not_found, subject_not_found
from schema_registry.models import SchemaResponse, SubjectVersion
from schema_registry.registry import answers, data_contracts, lookups, scopes, subject_names
from schema_registry.registry.subject_names import WILDCARD, SubjectName
from schema_registry.store import associations, contexts, subjects, versions
from schema_registry.store import scopes as scope_rows
from schema_registry.store.associations import Filter
from schema_registry.store.subjects import Kind
from schema_registry.store.versions import StoredVersion

T = TypeVar("T")


class SchemaFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which schemas a search is for."""

    deleted: bool = False
    latest_only: bool = False
    rule_type: str = ""
    """Only those with a rule of this type, if it is not empty."""
    associated: Filter | None = None
    """Only those of subjects with such an association."""


def subject_list(connection: Connection, prefix: str, *, kind: Kind, offset: int, limit: int) -> list[str]:
    """Subjects by the beginning of their names; `:*:` means all contexts, else it is one."""
    wanted = subject_names.parse(prefix)
    found = subjects.names(
        connection, _contexts(connection, wanted), wanted.name, kind=kind, offset=offset, limit=limit
    )
    return [SubjectName(*name).qualified for name in found]


def version_list(
    connection: Connection, subject: SubjectName, *, kind: Kind, deleted_as_negative: bool, offset: int, limit: int
) -> list[int]:
    """Version numbers, oldest first; 40401 for no such subject. Deleted ones may be told as negative numbers."""
    kind = Kind.ALL if deleted_as_negative else kind
    found = versions.numbers(connection, *subject.key, kind=kind, offset=offset, limit=limit)
    if not found and not subjects.exists(connection, *subject.key, deleted=kind is not Kind.ALIVE):
        raise subject_not_found(subject.qualified)
    return [-number if deleted_as_negative and is_deleted else number for number, is_deleted in found]


def usages(
    connection: Connection, schema_id: int, subject: SubjectName | None, *, deleted: bool
) -> list[SubjectVersion]:
    """Where a schema is used, by subject and version. 40403."""
    schema, _ = lookups.by_id(connection, schema_id, subject)
    found = versions.using(connection, schema.context, schema.id, kind=Kind.of(deleted=deleted))
    return [
        SubjectVersion(subject=SubjectName(schema.context, used.subject).qualified, version=used.version)
        for used in found
    ]


def schema_list(
    connection: Connection, prefix: str, wanted: SchemaFilter, *, offset: int, limit: int
) -> list[SchemaResponse]:
    """Versions of subjects by the beginning of their names, by name and version."""
    start = subject_names.parse(prefix)
    within = _contexts(connection, start)
    found = versions.search(connection, within, start.name, deleted=wanted.deleted, latest_only=wanted.latest_only)
    if (associated := wanted.associated) is not None:
        found = found.where(lambda context, subject: associations.has(context, subject, associated))
    if not wanted.rule_type:
        return [answers.of_version(version) for version in found.part(offset=offset, limit=limit)]
    ruled = (version for version in found.with_rules() if _has_rule(version, wanted.rule_type))
    return [answers.of_version(version) for version in part(ruled, offset=offset, limit=limit)]


def schema_list_with_aliases(
    connection: Connection, prefix: str, wanted: SchemaFilter, *, offset: int, limit: int
) -> list[SchemaResponse]:
    """As `schema_list`, telling the aliases of each subject; subjects that an alias in the prefix means come too."""
    start = subject_names.parse(prefix)
    within = _contexts(connection, start)
    aliases = _aliases(connection, within, start.name)
    names = set(subjects.names(connection, within, start.name, kind=Kind.ALL, offset=0, limit=-1))
    names |= {target.key for target in aliases}
    if wanted.associated is not None:
        names = {name for name in names if associations.of_subject(connection, *name, wanted.associated)}
    told = (
        answers.of_version(version).model_copy(update={"aliases": aliases.get(SubjectName(*name))})
        for name in sorted(names, key=lambda name: SubjectName(*name).qualified)
        for version in versions.of_subject(connection, name, deleted=wanted.deleted, latest_only=wanted.latest_only)
        if not wanted.rule_type or _has_rule(version, wanted.rule_type)
    )
    return part(told, offset=offset, limit=limit)


def context_list(connection: Connection, prefix: str, *, offset: int, limit: int) -> list[str]:
    """Contexts by the beginning of their names, the default one first."""
    start = prefix.strip(":")
    found = (name for name in contexts.names(connection) if name.startswith(start))
    return part(found, offset=offset, limit=limit)


def subjects_of(found: Iterable[SubjectVersion]) -> list[str]:
    """The subjects of usages, each once."""
    return list(dict.fromkeys(used.subject for used in found))


def part(values: Iterable[T], *, offset: int, limit: int) -> list[T]:
    """Some of a list: `limit` after the first `offset`; a negative limit means all."""
    return list(islice(values, offset, None if limit < 0 else offset + limit))


def existing_schema(connection: Connection, guid: str) -> tuple[str, int]:
    """Context and id of a content, in the default context if it is there. 40403."""
    found = lookups.ids_of_guid(connection, guid)
    if not found:
        raise schema_not_found(guid)
    return next((item for item in found if item[0] == contexts.DEFAULT), found[0])


def _contexts(connection: Connection, wanted: SubjectName) -> list[str]:
    return contexts.names(connection) if wanted.context == WILDCARD else [wanted.context]


def _has_rule(version: StoredVersion, rule_type: str) -> bool:
    return data_contracts.has_rule_of_type(answers.rules_of(version.schema), rule_type)


def _aliases(connection: Connection, within: list[str], prefix: str) -> dict[SubjectName, list[str]]:
    """Which subjects stand for which other one."""
    found: dict[SubjectName, list[str]] = {}
    for (context, name), alias in scope_rows.aliases(connection):
        if context in within and name.startswith(prefix) and name:
            subject = SubjectName(context, name)
            found.setdefault(scopes.alias_target(subject, alias), []).append(subject.qualified)
    return found
