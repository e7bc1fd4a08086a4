"""What documents of one JSON Schema mean to one kind of reader or writer.

JSON Schema says what a document may be, not what it is. A plan says that, as Kafka Connect reads such schemas: which
objects are structs and which are maps, what a choice or several schemas at once come to, and which numbers are dates.
`json_values` reads and writes Python values by it, `arrow.json_reading` and `arrow.json_writing` Arrow columns.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec

from schema_registry.formats.json_schema import JsonSchema
from schema_registry.serdes.errors import UnusableSchema
from schema_registry.serdes.logical import Logical, LogicalName

Node = Any
"""A schema within a schema: a dict, or a boolean."""

KEY, VALUE = "key", "value"
CONNECT_TYPE: Final = "connect.type"
CONNECT_INDEX: Final = "connect.index"
CONNECT_PARAMETERS: Final = "connect.parameters"

_PLAIN: Final = {"boolean": "boolean", "integer": "int64", "number": "float64", "string": "string"}
_NUMBERS: Final = ("int8", "int16", "int32", "int64", "float32", "float64", "bytes")
"""The types that `connect.type` may give a number; a decimal is stored in bytes."""
_IMPLIED: Final = {
    "object": ("properties", "additionalProperties", "required", "minProperties", "maxProperties", "patternProperties"),
    "array": ("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "string": ("minLength", "maxLength", "pattern", "format"),
}
"""The type of a schema that does not say it, by its keywords."""
_COMBINING: Final = ("oneOf", "anyOf", "allOf", "$ref", "enum", "const", "not", "title", "description", "default")


class Shape(StrEnum):
    """How a value is made up."""

    PLAIN = "plain"
    SYMBOL = "symbol"
    """One of several values, as text."""
    TEXT = "text"
    """Anything, as the text of its JSON."""
    LIST = "list"
    MAP = "map"
    """An object whose properties are all alike."""
    ENTRIES = "entries"
    """A map whose keys are not text: a list of objects with key and value."""
    STRUCT = "struct"
    CHOICE = "choice"
    """One of several schemas: a struct with a field for each, of which one is set."""


class FieldPlan(NamedTuple):
    """A property of an object, or a schema of a choice."""

    name: str
    plan: "Plan"
    is_required: bool = False


class Plan(msgspec.Struct, eq=False, kw_only=True):
    """A value."""

    shape: Shape
    kind: str = ""
    """Connect's name for the type of a plain value."""
    logical: Logical | None = None
    is_optional: bool = False
    default: Any = None
    """The value of what is null or missing."""
    values: "Plan | None" = None
    """Of lists and maps: their items."""
    keys: "Plan | None" = None
    fields: Sequence[FieldPlan] = ()
    others: FieldPlan | None = None
    """Of structs: the field with a map of all properties that have no field."""
    node: Node = None
    """The schema that describes it."""

    @property
    def items(self) -> "Plan":
        """The items of a list or map."""
        assert self.values is not None
        return self.values


class Choices(NamedTuple):
    """What the format leaves open."""

    has_optional_properties: bool = False
    """Whether properties that are not required may be null."""
    others: str | None = None
    """The field for properties that the schema does not name; None to drop them."""
    flattens_singletons: bool = True
    """Whether a choice of one schema is that schema."""
    branch_name: Callable[[int], str] = "io.confluent.connect.json.OneOf.field.{}".format
    """Names the field of each schema of a choice."""


class _Part(NamedTuple):
    """One of the statements of a schema about a value, all of which hold."""

    kind: str
    """choice, all, ref, enum, const, or the name of a JSON type."""
    node: Node
    choices: tuple[Any, ...] = ()


class Meaning:
    """Makes the plan of a schema; raises UnusableSchema. `default_of` makes the value of a default from its JSON."""

    def __init__(
        self,
        schema: JsonSchema,
        default_of: Callable[[Plan, Any], Any],
        choices: Choices = Choices(),  # noqa: B008 - it cannot be changed
    ) -> None:
        self._schema = schema
        self._default_of = default_of
        self._choices = choices
        self._open: set[int] = set()

    def root(self) -> Plan:
        """The plan of whole documents."""
        return self._of(self._schema.document)

    def _of(self, node: Node, *, optional: bool = False) -> Plan:
        if id(node) in self._open:
            raise UnusableSchema("the JSON Schema is recursive: it refers to itself, which no Connect schema can")
        self._open.add(id(node))
        parts = self._parts(node)
        if not parts:
            raise UnusableSchema(f"Unsupported schema type: {node!r:.200} has no equivalent in Connect")
        part = parts[0] if len(parts) == 1 else _Part("all", node, tuple(parts))
        made = self._of_part(part, optional=optional)
        self._open.remove(id(node))
        return made

    def _parts(self, node: Node) -> list[_Part]:
        if not isinstance(node, dict):
            return []
        if "$ref" in node and not self._schema.draft.is_modern:
            return [_Part("ref", node)]
        parts = [_Part("choice", node, tuple(node[key])) for key in ("oneOf", "anyOf") if key in node]
        if "allOf" in node:
            parts.append(_Part("all", node, tuple(node["allOf"])))
        parts += [_Part(kind.removeprefix("$"), node) for kind in ("$ref", "enum", "const") if kind in node]
        implied = next((kind for kind, keywords in _IMPLIED.items() if any(key in node for key in keywords)), None)
        types = node.get("type", implied)
        if isinstance(types, list) and len(types) != 1:
            rest = {key: value for key, value in node.items() if key not in _COMBINING}
            parts.append(_Part("choice", node, tuple({**rest, "type": type_} for type_ in types)))
        elif types is not None:
            parts.append(_Part(types[0] if isinstance(types, list) else types, node))
        return parts

    def _of_part(self, part: _Part, *, optional: bool) -> Plan:
        match part.kind:
            case "ref":
                return self._of(self._schema.targets[id(part.node), "$ref"], optional=optional)
            case "choice":
                others = [choice for choice in part.choices if not _is_null(choice)]
                if len(others) == 1 and len(part.choices) == 2:  # Null and one schema: that schema, optional.
                    return self._of(others[0], optional=True)
                if len(part.choices) == 1 and others and self._choices.flattens_singletons:
                    return self._of(others[0], optional=optional)
                made = self._choice(others, is_optional=len(others) < len(part.choices))
            case "all":
                together = self._all(part)
                if isinstance(together, _Part):
                    return self._of_part(together, optional=optional)
                made = together
            case "object":
                made = self._object(part.node)
            case "array":
                made = self._array(part.node)
            case "enum":
                made = Plan(shape=Shape.SYMBOL, kind="string")
            case _:
                made = _plain(part)
        return self._describe(made, part.node, optional=optional)

    def _choice(self, others: Sequence[Node], *, is_optional: bool) -> Plan:
        name = self._choices.branch_name
        fields = [FieldPlan(name(index), self._of(choice, optional=True)) for index, choice in enumerate(others)]
        return Plan(shape=Shape.CHOICE, fields=fields, is_optional=is_optional)

    def _all(self, part: _Part) -> Plan | _Part:
        """Schemas that all hold: their properties together, or the most specific one."""
        subparts = [item for choice in part.choices for item in self._flat(choice)]
        properties: dict[str, tuple[Node, bool]] = {}
        for item in subparts:
            self._collect(item, properties, set())
        if properties:
            return self._struct(properties)
        by_kind = {item.kind: item for item in subparts}
        kinds = ["choice", "all"]
        if not by_kind.keys() & {"integer", "number"}:
            kinds.append("enum")
        for kind in (*kinds, "string", "integer", "number", "boolean", "array", "object", "ref"):
            if kind in by_kind:
                return by_kind[kind]
        raise UnusableSchema(f"Unsupported criterion allOf for {part.node!r:.200}")

    def _flat(self, choice: Any) -> list[_Part]:
        return [choice] if isinstance(choice, _Part) else self._parts(choice)

    def _collect(self, part: _Part, properties: dict[str, tuple[Node, bool]], seen: set[int]) -> None:
        """Collect the properties of objects that all hold, and whether they are required."""
        inner: list[_Part] = []
        if part.kind == "object":
            required = part.node.get("required", ())
            for name, node in part.node.get("properties", {}).items():
                properties[name] = (node, name in required)
        elif part.kind == "all":
            inner = [item for choice in part.choices for item in self._flat(choice)]
        elif part.kind == "ref":
            target = self._schema.targets[id(part.node), "$ref"]
            inner = [] if id(target) in seen else self._parts(target)
            seen.add(id(target))
        for item in inner:
            self._collect(item, properties, seen)

    def _object(self, node: Mapping[str, Node]) -> Plan:
        others = node.get("additionalProperties", True)
        has_others_schema = isinstance(others, dict) and bool(others)
        if node.get(CONNECT_TYPE) == "map" and not isinstance(others, dict):
            raise UnusableSchema("a JSON Schema of a map must describe its values with additionalProperties")
        if node.get(CONNECT_TYPE) == "map" or ("properties" not in node and has_others_schema):
            return Plan(shape=Shape.MAP, values=self._of(others))
        required = node.get("required", ())
        properties = node.get("properties", {})
        made = self._struct({name: (child, name in required) for name, child in properties.items()})
        name = self._choices.others
        if name is None or others is False:
            return made
        if name in properties:
            raise UnusableSchema(f"a property cannot be called {name} if others are preserved")
        values = self._of(others) if has_others_schema else Plan(shape=Shape.TEXT, kind="string")
        made.others = FieldPlan(name, Plan(shape=Shape.MAP, values=values, is_optional=True))
        return made

    def _struct(self, properties: Mapping[str, tuple[Node, bool]]) -> Plan:
        places = {name: _index(node, place) for place, (name, (node, _)) in enumerate(properties.items())}
        fields = []
        for name in sorted(properties, key=places.__getitem__):
            node, is_required = properties[name]
            is_optional = self._choices.has_optional_properties and not is_required
            try:
                fields.append(FieldPlan(name, self._of(node, optional=is_optional), is_required))
            except UnusableSchema as error:
                raise UnusableSchema(f"{name}: {error}") from error
        return Plan(shape=Shape.STRUCT, fields=fields)

    def _array(self, node: Mapping[str, Node]) -> Plan:
        items = node.get("items")
        if not isinstance(items, dict):
            raise UnusableSchema("Array schema did not specify the items type")
        parts = items.get("properties", {})
        if node.get(CONNECT_TYPE) == "map" and parts.keys() >= {KEY, VALUE}:
            return Plan(shape=Shape.ENTRIES, keys=self._of(parts[KEY]), values=self._of(parts[VALUE]))
        return Plan(shape=Shape.LIST, values=self._of(items))

    def _describe(self, made: Plan, node: Mapping[str, Node], *, optional: bool) -> Plan:
        """Add everything else that the schema says about a value."""
        parameters = node.get(CONNECT_PARAMETERS) or {}
        if not isinstance(parameters, dict) or not all(isinstance(value, str) for value in parameters.values()):
            raise UnusableSchema(f"{CONNECT_PARAMETERS} must be an object of texts")
        made.node = node
        made.logical = _logical(made, node.get("title"), parameters)
        if node.get("default") is not None:
            made.default = self._default_of(made, _plain_json(node["default"]))
        made.is_optional = made.is_optional or optional
        return made


def _plain(part: _Part) -> Plan:
    connect_type = part.node.get(CONNECT_TYPE)
    if part.kind in ("integer", "number") and connect_type is not None:
        if connect_type not in _NUMBERS:
            raise UnusableSchema(f"Unsupported type {connect_type}")
        return Plan(shape=Shape.PLAIN, kind=connect_type)
    if part.kind == "string" and connect_type == "bytes":
        return Plan(shape=Shape.PLAIN, kind="bytes")
    if part.kind not in _PLAIN:
        raise UnusableSchema(f"Unsupported schema type: {part.node!r:.200}")
    return Plan(shape=Shape.PLAIN, kind=_PLAIN[part.kind])


def _logical(made: Plan, title: Any, parameters: Mapping[str, str]) -> Logical | None:
    if title not in frozenset(LogicalName):
        return None
    name = LogicalName(title)
    is_right = made.kind == "bytes" if name is LogicalName.DECIMAL else made.kind.startswith("int")
    if made.shape is not Shape.PLAIN or not is_right:
        raise UnusableSchema(f"a {name} cannot be stored as {made.kind or made.shape}")
    if name is not LogicalName.DECIMAL:
        return Logical(name)
    scale, precision = parameters.get("scale", ""), parameters.get("connect.decimal.precision", "")
    if not scale.lstrip("-").isdecimal():
        raise UnusableSchema("Invalid Decimal schema: scale parameter not found.")
    return Logical(name, int(precision) if precision.isdecimal() else None, int(scale))


def _plain_json(value: Any) -> Any:
    """JSON without the spelling of its numbers, which only writing the schema back needs."""
    if isinstance(value, dict):
        return {key: _plain_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain_json(item) for item in value]
    return float(value) if isinstance(value, float) else value


def _is_null(node: Node) -> bool:
    return isinstance(node, dict) and node.get("type") in ("null", ["null"])


def _index(node: Node, place: int) -> int:
    index = node.get(CONNECT_INDEX) if isinstance(node, dict) else None
    return index if isinstance(index, int) else place
