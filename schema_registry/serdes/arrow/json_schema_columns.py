"""JSON Schemas as columns, as Connect's JSON Schema converter has them by default.

There are two ways from a document to them: msgspec reads it as a type that fits the schema exactly, which is fast; what
it refuses is read as it comes, and looked at with the converter's eyes (`1.0` is an integer, for instance).

Schemas that combine others (`allOf`, a choice of several types, several keywords at once), decimals and maps whose keys
are no text have no columns here.
"""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa

from schema_registry.formats.json_schema import JsonSchema
from schema_registry.serdes.arrow import extraction
from schema_registry.serdes.arrow import json_schema_values as of_json
from schema_registry.serdes.arrow.extraction import Extract, FieldExtract, Values
from schema_registry.serdes.arrow.json_schema_values import Change
from schema_registry.serdes.arrow.types import DATE, TIME, TIMESTAMP, NoColumns
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.logical import LogicalName, date_of, time_of, timestamp_of

Node = Any

_CONNECT_TYPES: Final = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "bytes": pa.binary(),
}
_PLAIN: Final = {"boolean": pa.bool_(), "integer": pa.int64(), "number": pa.float64(), "string": pa.string()}
_KEYWORDS: Final = ("oneOf", "anyOf", "allOf", "$ref", "enum", "const", "type")
_COMBINING: Final = ("oneOf", "anyOf", "allOf", "$ref", "enum", "const", "not", "title", "description", "default")
_LOGICAL: Final[dict[str, tuple[pa.DataType, Change]]] = {
    LogicalName.DATE: (DATE, date_of),
    LogicalName.TIME: (TIME, time_of),
    LogicalName.TIMESTAMP: (TIMESTAMP, timestamp_of),
}
_DECIMAL: Final = LogicalName.DECIMAL


class Column(NamedTuple):
    """One schema."""

    type: pa.DataType
    exact: Any
    """What msgspec reads it as."""
    extract: Extract
    """Makes an array of such values."""
    change: Change
    """Makes a value for Arrow out of any JSON but null; raises InvalidData."""
    is_optional: bool = False
    default: Any = None
    """What is there when there is nothing, as `change` has it."""


def columns(schema: JsonSchema) -> Column:
    """The column of a schema; raises NoColumns."""
    return _Columns(schema).of(schema.document)


def or_default(column: Column) -> Change:
    """Like its `change`, but for null, too."""

    def change(value: Any) -> Any:
        if value is not None:
            return column.change(value)
        if column.default is None and not column.is_optional:
            raise InvalidData(f"Invalid null value for required {column.type} field")
        return column.default

    return change


class _Columns:
    def __init__(self, schema: JsonSchema) -> None:
        self._targets = schema.targets
        self._is_modern = schema.draft.is_modern
        self._open: set[int] = set()

    def of(self, node: Node) -> Column:
        if not isinstance(node, dict):
            raise NoColumns("a schema that is no object says nothing about columns")
        if id(node) in self._open:
            raise NoColumns("the JSON Schema is recursive: it refers to itself")
        self._open.add(id(node))
        made = self._of(node)
        self._open.remove(id(node))
        return made

    def _of(self, node: Mapping[str, Node]) -> Column:
        given = [key for key in _KEYWORDS if key in node]
        if "$ref" in node and (given == ["$ref"] or not self._is_modern):
            return self.of(self._targets[id(node), "$ref"])
        if given in (["enum"], ["enum", "type"]) and node.get("type", "string") == "string":
            return _described(Column(pa.string(), str, extraction.plain(pa.string()), of_json.symbol), node)
        if len(given) != 1 or given[0] not in ("oneOf", "anyOf", "type"):
            raise NoColumns(f"a schema with {', '.join(given) or 'no type'} has no columns")
        if given[0] != "type":
            return self._choice(list(node[given[0]]))
        types = node["type"]
        if isinstance(types, list) and len(types) != 1:
            rest = {key: value for key, value in node.items() if key not in _COMBINING}
            return self._choice([{**rest, "type": type_} for type_ in types])
        return self._typed(types[0] if isinstance(types, list) else types, node)

    def _choice(self, choices: list[Node]) -> Column:
        """A choice between null and one schema is that schema, optional."""
        others = [choice for choice in choices if not _is_null(choice)]
        if len(others) == 1 and len(choices) == 2:
            return self.of(others[0])._replace(is_optional=True)
        if len(others) == 1 and len(choices) == 1:
            return self.of(others[0])
        raise NoColumns("a choice between several schemas has no columns")

    def _typed(self, type_: str, node: Mapping[str, Node]) -> Column:
        match type_:
            case "object":
                return _described(self._object(node), node)
            case "array":
                return _described(self._array(node), node)
            case _:
                return _described(_plain(type_, node), node)

    def _object(self, node: Mapping[str, Node]) -> Column:
        others = node.get("additionalProperties", True)
        is_map = "properties" not in node and isinstance(others, dict) and others
        if node.get("connect.type") == "map" or is_map:
            return self._map(others)
        parts = {}
        properties = node.get("properties", {})
        places = {name: _index(child, place) for place, (name, child) in enumerate(properties.items())}
        for name in sorted(properties, key=places.__getitem__):
            try:
                parts[name] = self.of(properties[name])
            except NoColumns as error:
                raise NoColumns(f"{name}: {error}") from error
        return _struct(parts)

    def _map(self, values: Node) -> Column:
        item = self.of(values)
        _refuse_default(item)
        type_ = pa.map_(pa.string(), item.type)
        change = or_default(item)

        def change_map(value: Any) -> Any:
            if value.__class__ is not dict:
                of_json.unlike("Maps with string fields should be encoded as JSON objects", value)
            return [(key, change(part)) for key, part in value.items()]

        return Column(type_, dict[str, _or_null(item)], extraction.maps(type_, item.extract), change_map)  # type: ignore[misc]

    def _array(self, node: Mapping[str, Node]) -> Column:
        items = node.get("items")
        if not isinstance(items, dict) or node.get("connect.type") == "map":
            raise NoColumns("an array that does not tell its items, or is a map, has no columns")
        item = self.of(items)
        _refuse_default(item)
        type_ = pa.list_(item.type)
        change = or_default(item)

        def change_list(value: Any) -> Any:
            if value.__class__ is not list:
                of_json.unlike("Arrays should be encoded as JSON arrays", value)
            return [change(part) for part in value]

        return Column(type_, list[_or_null(item)], extraction.lists(type_, item.extract), change_list)  # type: ignore[misc]


def _struct(parts: Mapping[str, Column]) -> Column:
    if not parts:
        raise NoColumns("an object without properties has no columns")
    type_ = pa.struct([(name, part.type) for name, part in parts.items()])
    attributes = {f"f{index}": name for index, name in enumerate(parts)}
    fields = [
        (attribute, _or_null(part), part.default) for attribute, part in zip(attributes, parts.values(), strict=True)
    ]
    for name in parts:
        msgspec.json.encode(name)  # msgspec finds no names beyond ASCII before it has once written them.
    exact = msgspec.defstruct("Document", fields, rename=attributes, gc=False)
    extracts = [_field(attribute, part) for attribute, part in zip(attributes, parts.values(), strict=True)]
    return Column(type_, exact, extraction.structs(type_, extracts), _struct_change(parts))


def _field(attribute: str, column: Column) -> FieldExtract:
    value = attrgetter(attribute)
    default = column.default
    if default is None:
        return FieldExtract(lambda values: list(map(value, values)), column.extract)

    def values_or_default(values: Values) -> Values:
        return [default if found is None else found for found in map(value, values)]

    return FieldExtract(values_or_default, column.extract)


def _struct_change(parts: Mapping[str, Column]) -> Change:
    fields = [(name, part.default, part.is_optional, part.change) for name, part in parts.items()]

    def change(value: Any) -> Any:
        if value.__class__ is not dict:
            of_json.unlike("Structs should be encoded as JSON objects", value)
        made = {}
        for name, default, is_optional, present in fields:
            part = value.get(name)
            if part is not None:
                try:
                    made[name] = present(part)
                except InvalidData as error:
                    raise InvalidData(f"{name}: {error}") from error
            elif default is None and not is_optional and name in value:
                raise InvalidData(f"{name}: Invalid null value for required field")
            else:
                made[name] = default
        return made

    return change


def _or_null(column: Column) -> Any:
    may_be_null = column.is_optional or column.default is not None
    return column.exact | None if may_be_null else column.exact


def _plain(kind: str, node: Mapping[str, Node]) -> Column:
    told = node.get("connect.type")
    type_ = _PLAIN.get(kind)
    if kind in ("integer", "number") and told is not None:
        type_ = _CONNECT_TYPES.get(told)
    elif kind == "string" and told == "bytes":
        type_ = pa.binary()
    if type_ is None or (kind in ("integer", "number") and pa.types.is_binary(type_)):
        raise NoColumns(f"a schema of type {kind} with {told} has no columns")
    name = node.get("title")
    if name == _DECIMAL:
        raise NoColumns("decimals have no columns")
    if isinstance(name, str) and name in _LOGICAL:
        return _logical(type_, name)
    if pa.types.is_integer(type_):
        return Column(type_, of_json.integer_type(type_), extraction.plain(type_), of_json.integer(type_))
    if pa.types.is_floating(type_):
        return Column(type_, float, extraction.plain(type_), of_json.floating)
    if pa.types.is_boolean(type_):
        return Column(type_, bool, extraction.plain(type_), of_json.boolean)
    if pa.types.is_binary(type_):
        return Column(type_, str, extraction.changed(of_json.content, type_), of_json.content)
    return Column(type_, str, extraction.plain(type_), of_json.text)


def _logical(stored: pa.DataType, name: str) -> Column:
    if not pa.types.is_integer(stored):
        raise NoColumns(f"no {name} is stored as {stored}")
    type_, change = _LOGICAL[name]
    integer = of_json.integer(stored)
    extract = extraction.logical(LogicalName(name))
    return Column(type_, of_json.integer_type(stored), extract, lambda value: change(integer(value)))


def _described(made: Column, node: Mapping[str, Node]) -> Column:
    parameters = node.get("connect.parameters") or {}
    if not isinstance(parameters, dict) or not all(isinstance(value, str) for value in parameters.values()):
        raise NoColumns("connect.parameters must be an object of texts")
    title = node.get("title")
    is_logical = isinstance(title, str) and (title in _LOGICAL or title == _DECIMAL)
    if is_logical and not made.type.equals(_LOGICAL.get(str(title), (None,))[0]):
        raise NoColumns(f"no {title} is stored as {made.type}")
    if node.get("default") is None:
        return made
    if pa.types.is_nested(made.type) or is_logical or pa.types.is_binary(made.type):
        raise NoColumns("defaults of objects and arrays are not for columns")
    try:
        return made._replace(default=made.change(_number(node["default"])))
    except InvalidData:
        return made  # A default that does not fit says nothing.


def _number(value: Any) -> Any:
    """Without the spelling of numbers."""
    return float(value) if isinstance(value, float) else value


def _refuse_default(column: Column) -> None:
    if column.default is not None:
        raise NoColumns("items with defaults have no columns")


def _is_null(node: Node) -> bool:
    return isinstance(node, dict) and node.get("type") in ("null", ["null"])


def _index(node: Node, place: int) -> int:
    index = node.get("connect.index") if isinstance(node, dict) else None
    return index if isinstance(index, int) else place
