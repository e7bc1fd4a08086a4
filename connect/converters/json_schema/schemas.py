"""JSON Schemas as schemas of Connect, read as Confluent's converter reads them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from connect.api.data import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    Field,
    Schema,
    Type,
    array,
    mapping,
)
from connect.api.errors import DataError
from connect.converters.json_schema import config as names
from connect.converters.json_schema.config import JsonSchemaConfig
from connect.converters.json_schema.reading import value_change
from schema_registry.formats.json_schema import JsonSchema

Node = Any
"""A schema within a schema: a dict, or a boolean."""

_CONNECT_TYPES: Final = {
    "int8": INT8,
    "int16": INT16,
    "int32": INT32,
    "int64": INT64,
    "float32": FLOAT32,
    "float64": FLOAT64,
    "bytes": BYTES,
}
_PLAIN: Final = {"boolean": BOOLEAN, "integer": INT64, "number": FLOAT64, "string": STRING}
_IMPLIED: Final = {
    "object": ("properties", "additionalProperties", "required", "minProperties", "maxProperties", "patternProperties"),
    "array": ("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "string": ("minLength", "maxLength", "pattern", "format"),
}
"""What a schema without a type is about, by its keywords."""
_COMBINING: Final = ("oneOf", "anyOf", "allOf", "$ref", "enum", "const", "not", "title", "description", "default")


_ANYTHING: Final = STRING.but(parameters={names.JSON_TEXT: "true"})


class _Part(NamedTuple):
    """One of the things that a schema says about a value, all of which hold."""

    kind: str
    """choice, all, ref, enum, const, or the name of a JSON type."""
    node: Node
    choices: tuple[Node, ...] = ()


def to_connect_schema(schema: JsonSchema, config: JsonSchemaConfig, *, version: int | None = None) -> Schema:
    """The Connect schema of a JSON Schema; raises DataError.

    `version` is that of the subject, for schemas that say none themselves.
    """
    return _Reader(schema, config).schema(schema.document, version=version)


class _Reader:
    """Reads one schema."""

    def __init__(self, schema: JsonSchema, config: JsonSchemaConfig) -> None:
        self._targets = schema.targets
        self._is_modern = schema.draft.is_modern
        self._config = config
        self._open: set[int] = set()
        self._unions = 0

    def schema(self, node: Node, *, optional: bool = False, version: int | None = None) -> Schema:
        with self._opened(node):
            parts = self._parts(node)
            if not parts:
                raise DataError(f"Unsupported schema type: {_shown(node)} says nothing that a Connect schema could say")
            if len(parts) > 1:
                parts = [_Part("all", node, tuple(parts))]
            return self._of_part(parts[0], optional=optional, version=version)

    @contextmanager
    def _opened(self, node: Node) -> Iterator[None]:
        if id(node) in self._open:
            raise DataError("the JSON Schema is recursive: it refers to itself, which no Connect schema can")
        self._open.add(id(node))
        yield
        self._open.remove(id(node))

    def _parts(self, node: Node) -> list[_Part]:
        if not isinstance(node, dict):
            return []
        if "$ref" in node and not self._is_modern:
            return [_Part("ref", node)]
        parts = [_Part("choice", node, tuple(node[key])) for key in ("oneOf", "anyOf") if key in node]
        if "allOf" in node:
            parts.append(_Part("all", node, tuple(node["allOf"])))
        parts += [_Part(kind.removeprefix("$"), node) for kind in ("$ref", "enum", "const") if kind in node]
        types = node.get("type", _implied_type(node))
        if isinstance(types, list) and len(types) != 1:
            rest = {key: value for key, value in node.items() if key not in _COMBINING}
            parts.append(_Part("choice", node, tuple({**rest, "type": type_} for type_ in types)))
        elif types is not None:
            parts.append(_Part(types[0] if isinstance(types, list) else types, node))
        return parts

    def _of_part(self, part: _Part, *, optional: bool, version: int | None) -> Schema:
        match part.kind:
            case "ref":
                return self.schema(self._targets[id(part.node), "$ref"], optional=optional, version=version)
            case "choice":
                found = self._plain_choice(part, optional=optional, version=version)
                if found is not None:
                    return found
                made = self._union(part)
            case "all":
                together = self._all(part)
                if isinstance(together, _Part):
                    return self._of_part(together, optional=optional, version=version)
                made = together
            case "object":
                made = self._object(part.node)
            case "array":
                made = self._array(part.node)
            case "enum":
                made = self._enum(part.node)
            case _:
                made = _plain(part)
        return _described(made, part.node, optional=optional, version=version)

    def _plain_choice(self, part: _Part, *, optional: bool, version: int | None) -> Schema | None:
        """A choice between null and one schema is that schema, optional."""
        others = [choice for choice in part.choices if not _is_null(choice)]
        if len(others) == 1 and len(part.choices) == 2:
            return self.schema(others[0], optional=True, version=version)
        if len(part.choices) == 1 and others and self._config.flatten_singleton_unions:
            return self.schema(others[0], optional=optional, version=version)
        return None

    def _union(self, part: _Part) -> Schema:
        is_general = self._config.generalized_sum_type_support
        name = f"{names.GENERAL_UNION_PREFIX}{self._unions}" if is_general else names.ONE_OF
        self._unions += 1
        others = [choice for choice in part.choices if not _is_null(choice)]
        fields = [
            Field(self._config.branch_name(index), self.schema(choice, optional=True))
            for index, choice in enumerate(others)
        ]
        return Schema(
            Type.STRUCT,
            name=name,
            fields=tuple(fields),
            optional=len(others) < len(part.choices),
            parameters={names.GENERAL_UNION: name} if is_general else {},
        )

    def _all(self, part: _Part) -> Schema | _Part:
        """Schemas that all hold: their properties together, or the one that tells most."""
        subparts = [item for choice in part.choices for item in self._flat(choice)]
        properties: dict[str, tuple[Node, bool]] = {}
        for item in subparts:
            self._collect(item, properties, set())
        if properties:
            return self._struct(properties)
        by_kind = {item.kind: item for item in subparts}
        for kind in ("choice", "all"):
            if kind in by_kind:
                return by_kind[kind]
        if "enum" in by_kind and not by_kind.keys() & {"integer", "number"}:
            return by_kind["enum"]
        for kind in ("string", "integer", "number", "boolean", "array", "object", "ref"):
            if kind in by_kind:
                return by_kind[kind]
        raise DataError(f"Unsupported criterion allOf for {_shown(part.node)}")

    def _flat(self, choice: Node | _Part) -> list[_Part]:
        return [choice] if isinstance(choice, _Part) else self._parts(choice)

    def _collect(self, part: _Part, properties: dict[str, tuple[Node, bool]], seen: set[int]) -> None:
        """The properties of objects that all hold, with whether they are required."""
        if part.kind == "object":
            required = part.node.get("required", ())
            for name, node in part.node.get("properties", {}).items():
                properties[name] = (node, name in required)
        elif part.kind == "all":
            for choice in part.choices:
                for item in self._flat(choice):
                    self._collect(item, properties, seen)
        elif part.kind == "ref":
            target = self._targets[id(part.node), "$ref"]
            if id(target) not in seen:
                seen.add(id(target))
                for item in self._parts(target):
                    self._collect(item, properties, seen)

    def _object(self, node: Mapping[str, Node]) -> Schema:
        if node.get(names.CONNECT_TYPE) == "map":
            values = node.get("additionalProperties")
            if not isinstance(values, dict):
                raise DataError("a JSON Schema of a map must tell that of its values with additionalProperties")
            return mapping(STRING, self.schema(values))
        others = node.get("additionalProperties", True)
        if "properties" not in node and isinstance(others, dict) and others:
            return mapping(STRING, self.schema(others))
        required = node.get("required", ())
        properties = node.get("properties", {})
        made = self._struct({name: (child, name in required) for name, child in properties.items()})
        return self._with_others(made, others) if self._config.preserve_additional_properties else made

    def _with_others(self, made: Schema, others: Node) -> Schema:
        """The struct with a field for properties that the schema does not name."""
        if others is False:
            return made
        if names.ADDITIONAL in made.by_name:
            raise DataError(f"a property cannot be called {names.ADDITIONAL} where others are preserved")
        values = self.schema(others) if isinstance(others, dict) and others else _ANYTHING
        return made.but(fields=(*made.fields, Field(names.ADDITIONAL, mapping(STRING, values, optional=True))))

    def _struct(self, properties: Mapping[str, tuple[Node, bool]]) -> Schema:
        places = {name: _index(node, place) for place, (name, (node, _)) in enumerate(properties.items())}
        fields = []
        for name in sorted(properties, key=places.__getitem__):
            node, is_required = properties[name]
            is_optional = self._config.use_optional_for_nonrequired and not is_required
            try:
                fields.append(Field(name, self.schema(node, optional=is_optional)))
            except DataError as error:
                raise DataError(f"{name}: {error}") from error
        return Schema(Type.STRUCT, fields=tuple(fields))

    def _array(self, node: Mapping[str, Node]) -> Schema:
        items = node.get("items")
        if not isinstance(items, dict):
            raise DataError("Array schema did not specify the items type")
        properties = items.get("properties", {})
        if node.get(names.CONNECT_TYPE) == "map" and properties.keys() >= {names.KEY, names.VALUE}:
            return mapping(self.schema(properties[names.KEY]), self.schema(properties[names.VALUE]))
        return array(self.schema(items))

    def _enum(self, node: Mapping[str, Node]) -> Schema:
        key = self._config.enum_key
        parameters = {key: ""}  # Enums of JSON have no name.
        for index, symbol in enumerate(node["enum"]):
            text = names.NULL_SYMBOL if symbol is None else str(symbol)
            parameters[f"{key}.{text}"] = str(index) if self._config.generalized_sum_type_support else text
        return STRING.but(parameters=parameters)


def _plain(part: _Part) -> Schema:
    connect_type = part.node.get(names.CONNECT_TYPE)
    if part.kind in ("integer", "number") and connect_type is not None:
        if connect_type not in _CONNECT_TYPES:
            raise DataError(f"Unsupported type {connect_type}")
        return _CONNECT_TYPES[connect_type]
    if part.kind == "string" and connect_type == "bytes":
        return BYTES
    if part.kind not in _PLAIN:
        raise DataError(f"Unsupported schema type: {_shown(part.node)}")
    return _PLAIN[part.kind]


def _described(made: Schema, node: Mapping[str, Node], *, optional: bool, version: int | None) -> Schema:
    """The schema with all else that its node tells about it."""
    parameters = node.get(names.CONNECT_PARAMETERS) or {}
    if not isinstance(parameters, dict) or not all(isinstance(value, str) for value in parameters.values()):
        raise DataError(f"{names.CONNECT_PARAMETERS} must be an object of texts")
    own_version = node.get(names.CONNECT_VERSION)
    made = made.but(
        name=made.name or _text(node.get("title")),
        doc=_text(node.get("description")),
        version=own_version if isinstance(own_version, int) else version,
        parameters={**made.parameters, **parameters},
    )
    if node.get("default") is not None:
        made = made.but(default=_default(made, node["default"]))
    return made.as_optional() if optional else made


def _default(schema: Schema, default: Any) -> Any:
    try:
        return value_change(schema)(_plain_json(default))
    except DataError:
        return None  # A default that does not fit says nothing.


def _plain_json(value: Any) -> Any:
    """Without the spelling of numbers, which only those who write the schema back need."""
    if isinstance(value, dict):
        return {key: _plain_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain_json(item) for item in value]
    return float(value) if isinstance(value, float) else value


def _implied_type(node: Mapping[str, Node]) -> str | None:
    return next((type_ for type_, keywords in _IMPLIED.items() if any(key in node for key in keywords)), None)


def _is_null(node: Node) -> bool:
    return isinstance(node, dict) and node.get("type") in ("null", ["null"])


def _index(node: Node, place: int) -> int:
    index = node.get(names.CONNECT_INDEX) if isinstance(node, dict) else None
    return index if isinstance(index, int) else place


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _shown(node: Node) -> str:
    return f"{node!r:.200}"
