"""Resolve the references of schemas to versions and their texts."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from sqlalchemy import Connection

from core_broker.web_access.rules import Operation
from schema_registry.errors import RegistryError, invalid_schema
from schema_registry.formats.schema import ResolvedReference
from schema_registry.models import Reference
from schema_registry.registry import subject_names
from schema_registry.registry.access import Access
from schema_registry.registry.subject_names import SubjectName
from schema_registry.store import versions
from schema_registry.store.schemas import StoredReference, StoredSchema
from schema_registry.store.versions import StoredVersion

_LATEST = -1
_VERSION_MAX = 2**31 - 1
_REFERENCES_MAX = 1000
"""Maximum number of references of a schema, including those of its references."""
_REFERENCED_CHARS_MAX = 2 << 20
"""Maximum total length of their texts, all of which are parsed with the schema."""


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """The resolved references of a schema."""

    direct: tuple[StoredReference, ...]
    """The schema's own references."""
    every: tuple[ResolvedReference, ...]
    """The schema's own and all transitive references, each before those that use it."""


def targets(subject: SubjectName, references: Sequence[Reference]) -> list[SubjectName]:
    """The subjects of references."""
    return [_parse_target(subject, reference.subject) for reference in references]


def require_readable(access: Access, subject: SubjectName, references: Sequence[Reference]) -> None:
    """Raise 40301 unless the caller may read the subjects of references."""
    if access.is_limited:
        for target in dict.fromkeys(targets(subject, references)):
            access.require(Operation.READ, target)


def resolve(
    connection: Connection, subject: SubjectName, references: Sequence[Reference], *, allow_deleted: bool
) -> Resolution:
    """Resolve the references of a schema under a subject; raises 42201."""
    if not references:
        return Resolution(direct=(), every=())
    if len(references) > _REFERENCES_MAX:
        raise invalid_schema(f"Schema has {len(references)} references, but at most {_REFERENCES_MAX} are allowed")
    walk = _Walk(connection)
    direct: list[StoredReference] = []
    for reference in references:
        _check_reference(reference)
        target = _parse_target(subject, reference.subject)
        found = _find(connection, target, reference.version, allow_deleted=allow_deleted)
        stored = StoredReference(
            name=reference.name,
            subject=reference.subject,
            version=found.version,
            context=target.context,
            target=target.name,
        )
        walk.follow(stored, found.schema)
        direct.append(stored)
    return Resolution(direct=tuple(direct), every=tuple(walk.found.values()))


def resolve_stored(connection: Connection, schema: StoredSchema) -> tuple[ResolvedReference, ...]:
    """Resolve the references of a stored schema."""
    walk = _Walk(connection)
    for reference in schema.references:
        walk.follow(reference, walk.schema_of(reference))
    return tuple(walk.found.values())


class _Walk:
    """Follows references to references, each once, without recursion: chains may be deep.

    A name means one text in the whole schema: the first one found, even if others use the name for another version.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._schemas: dict[tuple[str, str, int], StoredSchema] = {}
        self._names: set[str] = set()
        self.found: dict[StoredReference, ResolvedReference] = {}
        self._chars = 0

    def follow(self, reference: StoredReference, schema: StoredSchema) -> None:
        """Add a reference, after the references of its own schema."""
        if reference.name in self._names:
            return
        self._names.add(reference.name)
        # A depth-first walk with an explicit stack: each entry is a reference whose own references are being added.
        stack: list[tuple[StoredReference, StoredSchema, Iterator[StoredReference]]] = []
        stack.append((reference, schema, iter(schema.references)))
        while stack:
            current, its_schema, inner = stack[-1]
            following = next(inner, None)
            if following is None:
                self._add(current, its_schema)
                stack.pop()
            elif following.name not in self._names:
                self._names.add(following.name)
                next_schema = self.schema_of(following)
                stack.append((following, next_schema, iter(next_schema.references)))

    def schema_of(self, reference: StoredReference) -> StoredSchema:
        """The schema of a stored reference."""
        key = (reference.context, reference.target, reference.version)
        if key not in self._schemas:
            found = _find(
                self._connection,
                SubjectName(reference.context, reference.target),
                reference.version,
                allow_deleted=True,
            )
            self._schemas[key] = found.schema
        return self._schemas[key]

    def _add(self, reference: StoredReference, schema: StoredSchema) -> None:
        if len(self.found) >= _REFERENCES_MAX:
            raise invalid_schema(
                f"Schema has more than {_REFERENCES_MAX} references, including those of its references"
            )
        self._chars += len(schema.text)
        if self._chars > _REFERENCED_CHARS_MAX:
            raise invalid_schema(f"The schema's references have more than {_REFERENCED_CHARS_MAX} characters in total")
        self.found[reference] = ResolvedReference(
            name=reference.name, subject=reference.subject, version=reference.version, text=schema.text
        )


def require_stored_readable(connection: Connection, access: Access, schema: StoredSchema) -> None:
    """Raise 40301 unless the caller may read what a schema refers to: a format may show the texts of all of it."""
    if not access.is_limited or not schema.references:
        return
    access.forget_shown()
    walk = _Walk(connection)
    for reference in schema.references:
        walk.follow(reference, walk.schema_of(reference))
    for reference in walk.found:
        access.require(Operation.READ, SubjectName(reference.context, reference.target))


def as_given(references: Iterable[StoredReference]) -> list[Reference]:
    """References as the client wrote them."""
    return [Reference(name=item.name, subject=item.subject, version=item.version) for item in references]


def with_contexts(references: Iterable[StoredReference]) -> list[Reference]:
    """References with qualified subject names."""
    return [
        Reference(name=item.name, subject=SubjectName(item.context, item.target).qualified, version=item.version)
        for item in references
    ]


def _find(connection: Connection, target: SubjectName, version: int, *, allow_deleted: bool) -> StoredVersion:
    if version == _LATEST:
        found = versions.latest(connection, *target.key)
    else:
        found = versions.get(connection, *target.key, version)
    if found is None or (found.is_deleted and not allow_deleted):
        raise invalid_schema(
            f'Invalid schema, details: No schema reference found for subject "{target.qualified}" and version {version}'
        )
    return found


def _parse_target(subject: SubjectName, text: str) -> SubjectName:
    try:
        return subject_names.parse_beside(subject, text)
    except RegistryError as error:
        raise invalid_schema(f"Invalid reference: {error.message}") from error


def _check_reference(reference: Reference) -> None:
    if reference.version != _LATEST and not 1 <= reference.version <= _VERSION_MAX:
        raise invalid_schema(f"Invalid reference: {reference.name} has the invalid version {reference.version}")
    if not reference.name or "\x00" in reference.name:
        raise invalid_schema("Invalid reference: the name is empty or contains a NUL character")
