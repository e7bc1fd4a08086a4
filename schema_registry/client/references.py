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
    open_references: set[Reference] = set()
    # A stack of iterators instead of calls: how deep references go is for others to decide.
    stack: list[tuple[Reference | None, Iterator[Reference]]] = [(None, iter(definition.references))]
    fetched: dict[Reference, RegisteredSchema] = {}
    while stack:
        parent, rest = stack[-1]
        reference = next(rest, None)
        if reference is None:
            stack.pop()
            if parent is not None:
                open_references.discard(parent)
                resolved[parent] = _resolved(parent, fetched[parent])
        elif reference in open_references:
            raise Refused(f"schema {reference.subject} version {reference.version} mentions itself")
        elif reference not in resolved:
            if len(fetched) >= MAX_REFERENCES:
                raise Refused(f"the schema mentions more than {MAX_REFERENCES} others")
            fetched[reference] = fetch(reference.subject, reference.version)
            open_references.add(reference)
            stack.append((reference, iter(fetched[reference].definition.references)))
    return tuple(resolved.values())


def _resolved(reference: Reference, schema: RegisteredSchema) -> ResolvedReference:
    return ResolvedReference(
        name=reference.name,
        subject=reference.subject,
        version=schema.version or reference.version,
        text=schema.definition.text,
    )
