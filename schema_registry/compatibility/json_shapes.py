"""Schemas sorted by what they are about: strings, numbers, objects, alternatives, and so on.

The comparison works on shapes, not on keywords, because one schema object can say several things at once: a type,
an enum and a `oneOf` beside each other are three shapes of which all must hold.
"""

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from typing import Any

from schema_registry.formats.json_keywords import TYPE_NAMES
from schema_registry.formats.json_references import REFERENCE_KEYWORDS, Node
from schema_registry.formats.json_schema import JsonSchema
from schema_registry.formats.json_text import JsonObject, JsonValue


class Kind(Enum):
    """What a shape is about."""

    ANYTHING = auto()
    NOTHING = auto()
    STRING = auto()
    NUMBER = auto()
    BOOLEAN = auto()
    NULL = auto()
    OBJECT = auto()
    ARRAY = auto()
    ENUM = auto()
    CONST = auto()
    NOT = auto()
    CONDITION = auto()
    COMBINED = auto()


_KIND_OF_TYPE = {
    "string": Kind.STRING,
    "number": Kind.NUMBER,
    "integer": Kind.NUMBER,
    "boolean": Kind.BOOLEAN,
    "null": Kind.NULL,
    "object": Kind.OBJECT,
    "array": Kind.ARRAY,
}
_STRING_KEYWORDS = frozenset({"minLength", "maxLength", "pattern"})
_NUMBER_KEYWORDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_OBJECT_KEYWORDS = frozenset(
    {"properties", "required", "minProperties", "maxProperties", "patternProperties", "additionalProperties"}
    | {"propertyNames", "dependencies", "dependentRequired", "dependentSchemas", "unevaluatedProperties"}
)
_ARRAY_KEYWORDS = frozenset(
    {"items", "additionalItems", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "unevaluatedItems"}
)
_KIND_OF_KEYWORD = {
    keyword: kind
    for kind, keywords in (
        (Kind.ARRAY, _ARRAY_KEYWORDS),
        (Kind.OBJECT, _OBJECT_KEYWORDS),
        (Kind.NUMBER, _NUMBER_KEYWORDS),
        (Kind.STRING, _STRING_KEYWORDS),
    )
    for keyword in keywords
}
CRITERIA = ("allOf", "anyOf", "oneOf")


class Shape:
    """One thing that a schema says; equality is identity, so that pairs of shapes can be remembered."""

    __slots__ = ("annotations", "criterion", "is_integer", "keywords", "kind", "members", "parts")

    def __init__(self, kind: Kind, keywords: JsonObject, *, is_integer: bool = False) -> None:
        self.kind = kind
        self.keywords = keywords
        """The schema object that says it, other things included."""
        self.annotations: JsonObject = {}
        """The same object if this shape is all that it says, for its title, description, default and id."""
        self.is_integer = is_integer
        self.criterion = ""
        """allOf, anyOf or oneOf."""
        self.parts: Sequence[Shape | Node] = ()
        """What is combined: shapes, or schemas not yet read."""
        self.members: frozenset[Any] | None = None
        """The values of an enum or the names that an object requires, once somebody has asked for them."""


class ShapeReader:
    """Gives the shapes of one schema, each once."""

    def __init__(self, schema: JsonSchema) -> None:
        self._targets = schema.targets
        self._is_modern = schema.draft.is_modern
        self._shapes: dict[int, Shape] = {}
        self.root = schema.document

    def shape(self, node: "Node | Shape") -> Shape:
        """The shape of a schema, references followed."""
        if isinstance(node, Shape):
            return node
        while isinstance(node, dict) and self._is_bare_reference(node):
            node = self._targets[id(node), "$ref"]
        if isinstance(node, bool):
            return _ANYTHING if node else _NOTHING
        known = self._shapes.get(id(node))
        if known is None:
            known = self._shapes[id(node)] = self._read(node)
        return known

    def _is_bare_reference(self, node: JsonObject) -> bool:
        if (id(node), "$ref") not in self._targets:
            return False
        return not self._is_modern or not any(True for _ in self._own_shapes(node))

    def _read(self, node: JsonObject) -> Shape:
        parts: list[Shape | Node] = list(self._own_shapes(node))
        # Alternatives come first, in the order in which Confluent counts them in its paths.
        parts.sort(key=lambda part: isinstance(part, Shape) and part.kind is not Kind.COMBINED)
        references = [
            self._targets[id(node), keyword] for keyword in REFERENCE_KEYWORDS if (id(node), keyword) in self._targets
        ]
        parts = [*references, *parts]
        if not parts:
            shape = Shape(Kind.ANYTHING, node)
        elif len(parts) == 1 and isinstance(parts[0], Shape):
            shape = parts[0]
        else:
            shape = _combined("allOf", parts, node)
        shape.annotations = node
        return shape

    def _own_shapes(self, node: JsonObject) -> Iterator[Shape]:
        if "enum" in node:
            yield Shape(Kind.ENUM, node)
        for criterion in CRITERIA:
            if criterion in node:
                yield _combined(criterion, node[criterion], node)
        if "not" in node:
            yield Shape(Kind.NOT, node)
        if "const" in node:
            yield Shape(Kind.CONST, node)
        if "if" in node and ("then" in node or "else" in node):
            yield Shape(Kind.CONDITION, node)
        yield from self._typed_shapes(node)

    def _typed_shapes(self, node: JsonObject) -> Iterator[Shape]:
        types = node.get("type", [])
        shapes = [_typed(name, node) for name in ([types] if isinstance(types, str) else types) if name in TYPE_NAMES]
        if len(shapes) == 1 and isinstance(types, str):
            yield shapes[0]
        elif shapes:
            yield _combined("anyOf", shapes, node)
        told = {shape.kind for shape in shapes}
        for keyword, kind in _KIND_OF_KEYWORD.items():
            if keyword in node and kind not in told and self._says_something(keyword, node[keyword]):
                told.add(kind)
                yield Shape(kind, node)
        if "format" in node and not self._is_modern and Kind.STRING not in told:
            yield Shape(Kind.STRING, node)

    def _says_something(self, keyword: str, value: JsonValue) -> bool:
        """Confluent's readers differ here: since 2019-09, no properties at all say nothing about the type."""
        return not (self._is_modern and value == {} and keyword in {"properties", "patternProperties"})


def _typed(name: str, node: JsonObject) -> Shape:
    return Shape(_KIND_OF_TYPE[name], node, is_integer=name == "integer")


def _combined(criterion: str, parts: Sequence[Shape | Node], node: JsonObject) -> Shape:
    shape = Shape(Kind.COMBINED, node)
    shape.criterion = criterion
    shape.parts = parts
    return shape


_ANYTHING = Shape(Kind.ANYTHING, {})
_NOTHING = Shape(Kind.NOTHING, {})
