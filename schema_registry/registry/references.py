"""References between schemas: which versions they lead to, and their texts."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from sqlalchemy import Connection

from schema_registry.errors import RegistryError, invalid_schema
from schema_registry.formats.schema import ResolvedReference
from schema_registry.models import Reference
from schema_registry.registry import subject_names
from schema_registry.registry.subject_names import SubjectName
from schema_registry.store import versions
from schema_registry.store.schemas import StoredReference, StoredSchema
from schema_registry.store.versions import StoredVersion

_LATEST = -1
_VERSION_MAX = 2**31 - 1
_REFERENCES_MAX = 1000
"""How many references a schema may have, with those of its references."""
_REFERENCED_CHARS_MAX = 2 << 20
"""How long their texts may be together: all of them are read to read the schema."""


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """Where the references of a schema lead."""

    direct: tuple[StoredReference, ...]
    """The schema's own, with the versions that were found."""
    every: tuple[ResolvedReference, ...]
    """With those of its references, each before whatever mentions it."""


def targets(subject: SubjectName, references: Sequence[Reference]) -> list[SubjectName]:
    """The subjects that references lead to."""
    return [_target(subject, reference.subject) for reference in references]


def resolve(
    connection: Connection, subject: SubjectName, references: Sequence[Reference], *, allow_deleted: bool
) -> Resolution:
    """Find what the references of a schema that is to be stored under a subject lead to; refuses with 42201."""
    if not references:
        return Resolution(direct=(), every=())
    if len(references) > _REFERENCES_MAX:
        raise invalid_schema(f"Schema has {len(references)} references, allowed are {_REFERENCES_MAX}")
    walk = _Walk(connection)
    direct: list[StoredReference] = []
    for reference in references:
        _check(reference)
        target = _target(subject, reference.subject)
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
    """The references of a stored schema."""
    walk = _Walk(connection)
    for reference in schema.references:
        walk.follow(reference, walk.schema_of(reference))
    return tuple(walk.found.values())


class _Walk:
    """Follows references to references, each once; deep chains need no stack.

    A name stands for one text in all of a schema: the first that is met, whatever versions others mention by it.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._schemas: dict[tuple[str, str, int], StoredSchema] = {}
        self._names: set[str] = set()
        self.found: dict[StoredReference, ResolvedReference] = {}
        self._chars = 0

    def follow(self, reference: StoredReference, schema: StoredSchema) -> None:
        """Add a reference after those of its schema."""
        if reference.name in self._names:
            return
        self._names.add(reference.name)
        open_ones: list[tuple[StoredReference, StoredSchema, Iterator[StoredReference]]] = []
        open_ones.append((reference, schema, iter(schema.references)))
        while open_ones:
            current, its_schema, inner = open_ones[-1]
            following = next(inner, None)
            if following is None:
                self._add(current, its_schema)
                open_ones.pop()
            elif following.name not in self._names:
                self._names.add(following.name)
                next_schema = self.schema_of(following)
                open_ones.append((following, next_schema, iter(next_schema.references)))

    def schema_of(self, reference: StoredReference) -> StoredSchema:
        """What a stored reference leads to."""
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
            raise invalid_schema(f"Schema has more than {_REFERENCES_MAX} references with those of its references")
        self._chars += len(schema.text)
        if self._chars > _REFERENCED_CHARS_MAX:
            raise invalid_schema(f"Schema's references have more than {_REFERENCED_CHARS_MAX} characters in all")
        self.found[reference] = ResolvedReference(
            name=reference.name, subject=reference.subject, version=reference.version, text=schema.text
        )


def as_given(references: Iterable[StoredReference]) -> list[Reference]:
    """References as they were registered."""
    return [Reference(name=item.name, subject=item.subject, version=item.version) for item in references]


def qualified(references: Iterable[StoredReference]) -> list[Reference]:
    """References with the contexts of their subjects."""
    return [
        Reference(name=item.name, subject=SubjectName(item.context, item.target).qualified, version=item.version)
        for item in references
    ]


def _find(connection: Connection, target: SubjectName, version: int, *, allow_deleted: bool) -> StoredVersion:
    if version == _LATEST:
        found = versions.latest(connection, *target.key)
    else:
        found = versions.one(connection, *target.key, version)
    if found is None or (found.is_deleted and not allow_deleted):
        raise invalid_schema(
            f'Invalid schema, details: No schema reference found for subject "{target.qualified}" and version {version}'
        )
    return found


def _target(subject: SubjectName, text: str) -> SubjectName:
    try:
        return subject_names.parse_beside(subject, text)
    except RegistryError as error:
        raise invalid_schema(f"Invalid reference: {error.message}") from error


def _check(reference: Reference) -> None:
    if reference.version != _LATEST and not 1 <= reference.version <= _VERSION_MAX:
        raise invalid_schema(f"Invalid reference: {reference.name} has the version {reference.version}")
    if not reference.name or "\x00" in reference.name:
        raise invalid_schema("Invalid reference: its name is empty or has a NUL")
