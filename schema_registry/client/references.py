"""Resolve the references of a schema, in an order in which they can be parsed."""

from collections.abc import Callable, Iterator

from schema_registry.client.errors import Refused
from schema_registry.client.models import Reference, RegisteredSchema, SchemaDefinition
from schema_registry.formats.schema import ResolvedReference

MAX_REFERENCES = 1_000
"""Maximum number of direct and transitive references of a schema."""

Fetch = Callable[[str, int], RegisteredSchema]
"""Fetches a version of a subject."""


def resolve(definition: SchemaDefinition, fetch: Fetch) -> tuple[ResolvedReference, ...]:
    """All direct and transitive references of a schema, each before those that use it, without duplicates.

    A schema that is referenced by two names is included twice: in JSON Schema, `$ref` may spell an address in many
    ways.
    """
    resolved: dict[Reference, ResolvedReference] = {}
    begun: set[Reference] = set()
    # A stack of iterators instead of recursion, because other people decide how deep references go.
    stack: list[tuple[ResolvedReference | None, Iterator[Reference]]] = [(None, iter(definition.references))]
    while stack:
        parent, rest = stack[-1]
        reference = next(rest, None)
        if reference is None:
            stack.pop()
            if parent is not None:
                resolved[_key(parent)] = parent
        elif reference not in resolved:
            if len(begun) >= MAX_REFERENCES:
                raise Refused(f"the schema has more than {MAX_REFERENCES} references")
            schema = fetch(reference.subject, reference.version)
            found = ResolvedReference(
                name=reference.name,
                subject=reference.subject,
                version=schema.version or reference.version,
                text=schema.definition.text,
            )
            if _key(found) in resolved:  # the number of the latest version is known only now
                continue
            if _key(found) in begun:
                raise Refused(f"schema {found.subject} version {found.version} references itself")
            begun.add(_key(found))
            stack.append((found, iter(schema.definition.references)))
    return tuple(resolved.values())


def _key(found: ResolvedReference) -> Reference:
    return Reference(found.name, found.subject, found.version)
