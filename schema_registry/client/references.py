"""References resolved: everything that a schema mentions, in an order in which it can be read."""

from collections.abc import Callable, Iterator

from schema_registry.client.errors import Refused
from schema_registry.client.models import Reference, RegisteredSchema, SchemaDefinition
from schema_registry.formats.schema import ResolvedReference

MAX_REFERENCES = 1_000
"""Schemas that one schema may mention, directly or not."""

Fetch = Callable[[str, int], RegisteredSchema]
"""A version of a subject."""


def resolve(definition: SchemaDefinition, fetch: Fetch) -> tuple[ResolvedReference, ...]:
    """All references of a schema and of its references, each before whatever mentions it, each once.

    One schema that is mentioned by two names is there twice: JSON Schema's `$ref` may spell an address in many ways.
    """
    resolved: dict[Reference, ResolvedReference] = {}
    begun: set[Reference] = set()
    # A stack of iterators instead of calls: how deep references go is for others to decide.
    stack: list[tuple[ResolvedReference | None, Iterator[Reference]]] = [(None, iter(definition.references))]
    while stack:
        parent, rest = stack[-1]
        mentioned = next(rest, None)
        if mentioned is None:
            stack.pop()
            if parent is not None:
                resolved[_key(parent)] = parent
        elif mentioned not in resolved:
            if len(begun) >= MAX_REFERENCES:
                raise Refused(f"the schema mentions more than {MAX_REFERENCES} others")
            schema = fetch(mentioned.subject, mentioned.version)
            found = _resolved(mentioned, schema)
            if _key(found) in resolved:  # as the latest version, whose number was not known before
                continue
            if _key(found) in begun:
                raise Refused(f"schema {found.subject} version {found.version} mentions itself")
            begun.add(_key(found))
            stack.append((found, iter(schema.definition.references)))
    return tuple(resolved.values())


def _key(found: ResolvedReference) -> Reference:
    return Reference(found.name, found.subject, found.version)


def _resolved(reference: Reference, schema: RegisteredSchema) -> ResolvedReference:
    return ResolvedReference(
        name=reference.name,
        subject=reference.subject,
        version=schema.version or reference.version,
        text=schema.definition.text,
    )
