"""Split schemas into shapes by what they are about: strings, numbers, objects, alternatives, and so on.

The comparison works on shapes instead of keywords, because one schema object can have several: a type, an enum and a
`oneOf` in one object are three shapes, all of which must match.
"""

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from typing import Any

from schema_registry.formats.json_keywords import TYPE_NAMES
from schema_registry.formats.json_references import REFERENCE_KEYWORDS, Node
from schema_registry.formats.json_schema import JsonSchema
from schema_registry.formats.json_text import JsonObject, JsonValue


class ShapeKind(Enum):
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
    "string": ShapeKind.STRING,
    "number": ShapeKind.NUMBER,
    "integer": ShapeKind.NUMBER,
    "boolean": ShapeKind.BOOLEAN,
    "null": ShapeKind.NULL,
    "object": ShapeKind.OBJECT,
    "array": ShapeKind.ARRAY,
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
        (ShapeKind.ARRAY, _ARRAY_KEYWORDS),
        (ShapeKind.OBJECT, _OBJECT_KEYWORDS),
        (ShapeKind.NUMBER, _NUMBER_KEYWORDS),
        (ShapeKind.STRING, _STRING_KEYWORDS),
    )
    for keyword in keywords
}
CRITERIA = ("allOf", "anyOf", "oneOf")


class Shape:
    """One aspect of a schema; equality is identity, so that pairs of shapes can be cached."""

    __slots__ = ("annotations", "criterion", "is_integer", "keywords", "kind", "members", "parts")

    def __init__(self, kind: ShapeKind, keywords: JsonObject, *, is_integer: bool = False) -> None:
        self.kind = kind
        self.keywords = keywords
        """The schema object of the shape, with the keywords of other shapes as well."""
        self.annotations: JsonObject = {}
        """The same object if this is its only shape, for its title, description, default and id."""
        self.is_integer = is_integer
        self.criterion = ""
        """allOf, anyOf or oneOf."""
        self.parts: Sequence[Shape | Node] = ()
        """The combined shapes, or schemas that have not been read yet."""
        self.members: frozenset[Any] | None = None
        """The values of an enum, or the names that an object requires; computed when they are first needed."""


class ShapeReader:
    """Reads the shapes of one schema; the same node always has the same shape."""

    def __init__(self, schema: JsonSchema) -> None:
        self._targets = schema.targets
        self._is_modern = schema.draft.is_modern
        self._shapes: dict[int, Shape] = {}
        self.root = schema.document

    def shape(self, node: "Node | Shape") -> Shape:
        """The shape of a schema, after following references."""
        if isinstance(node, Shape):
            return node
        while isinstance(node, dict) and self._is_bare_reference(node):
            node = self._targets[id(node), "$ref"]
        if isinstance(node, bool):
            return _ANYTHING if node else _NOTHING
        known = self._shapes.get(id(node))
        if known is None:
            known = self._shapes[id(node)] = self._read_shape(node)
        return known

    def _is_bare_reference(self, node: JsonObject) -> bool:
        if (id(node), "$ref") not in self._targets:
            return False
        return not self._is_modern or not any(True for _ in self._own_shapes(node))

    def _read_shape(self, node: JsonObject) -> Shape:
        parts: list[Shape | Node] = list(self._own_shapes(node))
        # Alternatives come first, in the order in which Confluent counts them in its paths.
        parts.sort(key=lambda part: isinstance(part, Shape) and part.kind is not ShapeKind.COMBINED)
        references = [
            self._targets[id(node), keyword] for keyword in REFERENCE_KEYWORDS if (id(node), keyword) in self._targets
        ]
        parts = [*references, *parts]
        if not parts:
            shape = Shape(ShapeKind.ANYTHING, node)
        elif len(parts) == 1 and isinstance(parts[0], Shape):
            shape = parts[0]
        else:
            shape = _combine("allOf", parts, node)
        shape.annotations = node
        return shape

    def _own_shapes(self, node: JsonObject) -> Iterator[Shape]:
        if "enum" in node:
            yield Shape(ShapeKind.ENUM, node)
        for criterion in CRITERIA:
            if criterion in node:
                yield _combine(criterion, node[criterion], node)
        if "not" in node:
            yield Shape(ShapeKind.NOT, node)
        if "const" in node:
            yield Shape(ShapeKind.CONST, node)
        if "if" in node and ("then" in node or "else" in node):
            yield Shape(ShapeKind.CONDITION, node)
        yield from self._typed_shapes(node)

    def _typed_shapes(self, node: JsonObject) -> Iterator[Shape]:
        types = node.get("type", [])
        names = [types] if isinstance(types, str) else types
        shapes = [
            Shape(_KIND_OF_TYPE[name], node, is_integer=name == "integer") for name in names if name in TYPE_NAMES
        ]
        if len(shapes) == 1 and isinstance(types, str):
            yield shapes[0]
        elif shapes:
            yield _combine("anyOf", shapes, node)
        # Keywords of other types imply a shape as well.
        kinds = {shape.kind for shape in shapes}
        for keyword, kind in _KIND_OF_KEYWORD.items():
            if keyword in node and kind not in kinds and self._implies_type(keyword, node[keyword]):
                kinds.add(kind)
                yield Shape(kind, node)
        if "format" in node and not self._is_modern and ShapeKind.STRING not in kinds:
            yield Shape(ShapeKind.STRING, node)

    def _implies_type(self, keyword: str, value: JsonValue) -> bool:
        """Whether a keyword implies a type; in Confluent's parsers, empty properties do not since draft 2019-09."""
        return not (self._is_modern and value == {} and keyword in {"properties", "patternProperties"})


def _combine(criterion: str, parts: Sequence[Shape | Node], node: JsonObject) -> Shape:
    shape = Shape(ShapeKind.COMBINED, node)
    shape.criterion = criterion
    shape.parts = parts
    return shape


_ANYTHING = Shape(ShapeKind.ANYTHING, {})
_NOTHING = Shape(ShapeKind.NOTHING, {})
