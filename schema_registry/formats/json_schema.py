"""JSON Schema: parse and check texts of drafts 4, 6, 7, 2019-09 and 2020-12.

Ours is stricter than Confluent's registry: it refuses duplicate keys, NaN, text after the document, numbers beyond a
double, unpaired surrogates and references that cannot be resolved, since no client could use such a schema.
"""

from functools import cached_property

from referencing import Registry

from schema_registry.formats.json_drafts import Draft, draft_of
from schema_registry.formats.json_references import Node, SchemaGraph, Targets
from schema_registry.formats.json_text import JsonValue, read, write
from schema_registry.formats.schema import DEFAULT_LIMITS, InvalidSchema, Limits, References, SchemaType

RESERVED_PREFIX = "$$"


def parse(
    text: str, references: References = (), *, limits: Limits = DEFAULT_LIMITS, strict: bool = True
) -> "JsonSchema":
    """Parse and check a schema; `strict` adds the checks for new schemas.

    Those refuse duplicate keys and properties whose names begin with `$$`.
    """
    document = _to_node(read(text, limits=limits, strict=strict))
    draft = draft_of(document)
    named = {reference.name: _read_reference(reference.name, reference.text, limits) for reference in references}
    schema = JsonSchema(document, draft, graph=SchemaGraph(document, draft, named))
    try:
        schema.canonical.encode()
    except UnicodeEncodeError:
        raise InvalidSchema("the text contains an unpaired surrogate") from None
    if strict:
        _refuse_reserved_names(document)
    return schema


class JsonSchema:
    """One parsed JSON Schema. Immutable; equality is identity."""

    def __init__(self, document: Node, draft: Draft, *, graph: SchemaGraph) -> None:
        self.document = document
        self.draft = draft
        self._graph = graph

    @property
    def schema_type(self) -> SchemaType:
        """The format."""
        return SchemaType.JSON

    @cached_property
    def canonical(self) -> str:
        """The compact text, with keys in their order and numbers as they were spelled."""
        return write(self.document)

    @cached_property
    def normalized(self) -> str:
        """The canonical text with the keys of every object sorted."""
        return write(self.document, sort_keys=True)

    @property
    def meaning(self) -> str:
        """The text in normal form; references are not inline."""
        return self.normalized

    @property
    def name(self) -> str | None:
        """The title."""
        title = self.document.get("title") if isinstance(self.document, dict) else None
        return title if isinstance(title, str) else None

    @property
    def field_names(self) -> tuple[str, ...]:
        """The properties at the top level."""
        properties = self.document.get("properties") if isinstance(self.document, dict) else None
        return tuple(properties) if isinstance(properties, dict) else ()

    def format(self, style: str) -> str:  # noqa: ARG002 - JSON Schema has one style
        """The canonical text: JSON Schema has no other style."""
        return self.canonical

    @property
    def targets(self) -> Targets:
        """The target of every reference, after the draft's rules for `$id` and anchors."""
        return self._graph.targets

    @property
    def registry(self) -> "Registry[Node]":
        """The document and all its references, for the library `referencing`."""
        return self._graph.registry


def _to_node(value: JsonValue) -> Node:
    if isinstance(value, bool | dict):
        return value
    raise InvalidSchema("a JSON Schema is an object, true or false")


def _read_reference(name: str, text: str, limits: Limits) -> Node:
    try:
        return _to_node(read(text, limits=limits, strict=False))
    except InvalidSchema as error:
        raise InvalidSchema(f"the reference {name!r}: {error}") from None


def _refuse_reserved_names(document: Node) -> None:
    properties = document.get("properties", {}) if isinstance(document, dict) else {}
    for name in properties:
        if name.startswith(RESERVED_PREFIX):
            raise InvalidSchema(f"#/properties/{name}: names of properties cannot start with {RESERVED_PREFIX}")
