"""The elements of a schema: an Avro record's fields, a JSON Schema's properties, a Protobuf file's messages.

Read from the text alone where that is enough: schemas of any registry can be shown, also those that ours would refuse.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from deploy.schema_diff import Element, Elements, listed, plain
from schema_registry.client.models import SchemaDefinition
from schema_registry.formats.schema import SchemaType

JsonValue = Any
_MAX_ELEMENTS = 50_000


class Unreadable(ValueError):
    """The schema cannot be taken apart; the message tells why."""


def elements(definition: SchemaDefinition, references: Callable[[], Any] = tuple) -> Elements:
    """Everything that a schema has; `references` fetches the schemas that it mentions, should they be needed."""
    try:
        if definition.schema_type is SchemaType.PROTOBUF:
            found = _protobuf(definition.text, references())
        else:
            document = msgspec.json.decode(definition.text)
            found = _avro(document) if definition.schema_type is SchemaType.AVRO else _json(document)
        return _collected(found)
    except RecursionError:
        raise Unreadable("it nests too deep") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreadable(f"it is no JSON: {error}") from None


def _collected(found: Iterator[tuple[str, Element]]) -> Elements:
    collected: Elements = {}
    for key, element in found:
        if len(collected) >= _MAX_ELEMENTS:
            raise Unreadable(f"it has more than {_MAX_ELEMENTS} elements")
        collected.setdefault((element.kind, key), element)
    return collected


# --- Avro ------------------------------------------------------------------------------------------------------------

_AVRO_NAMED = ("record", "error", "enum", "fixed")


def _avro(document: JsonValue) -> Iterator[tuple[str, Element]]:
    yield "", Element(kind="schema", name="(root)", shown=_avro_type(document, ""), path="/")
    yield from _avro_inside(document, "", namespace="")


def _avro_inside(schema: JsonValue, path: str, *, namespace: str) -> Iterator[tuple[str, Element]]:
    """The named types below a type, and what they are made of."""
    if isinstance(schema, list):
        for index, branch in enumerate(schema):
            yield from _avro_inside(branch, f"{path}/{index}", namespace=namespace)
    if not isinstance(schema, dict):
        return
    kind = schema.get("type")
    if isinstance(kind, dict | list):
        yield from _avro_inside(kind, path, namespace=namespace)
    elif kind in ("array", "map"):
        part = "items" if kind == "array" else "values"
        yield from _avro_inside(schema.get(part), f"{path}/{part}", namespace=namespace)
    elif kind in _AVRO_NAMED:
        yield from _avro_named(schema, path, namespace=namespace)


def _avro_named(schema: dict[str, Any], path: str, *, namespace: str) -> Iterator[tuple[str, Element]]:
    name = _full_name(schema, namespace)
    attributes = listed((key, schema[key]) for key in ("size", "default", "aliases") if key in schema)
    yield name, Element(kind=str(schema["type"]), name=name, shown=attributes, path=path or "/")
    namespace = name.rpartition(".")[0]
    for symbol in _items(schema, "symbols"):
        yield f"{name}.{symbol}", Element(kind="symbol", name=f"{name}.{symbol}", shown="", path=f"{path}/symbols")
    for index, field in enumerate(_items(schema, "fields")):
        if isinstance(field, dict):
            full = f"{name}.{field.get('name')}"
            where = f"{path}/fields/{index}"
            yield full, Element(kind="field", name=full, shown=_avro_field(field, namespace), path=where)
            yield from _avro_inside(field.get("type"), f"{where}/type", namespace=namespace)


def _avro_field(field: dict[str, Any], namespace: str) -> str:
    shown = _avro_type(field.get("type"), namespace)
    if "default" in field:
        shown += f" = {plain(field['default'])}"
    if field.get("aliases"):
        shown += f", aliases {plain(field['aliases'])}"
    return shown


def _avro_type(schema: JsonValue, namespace: str) -> str:
    """A type in one line: `null | array<shop.Item>`."""
    if isinstance(schema, list):
        return " | ".join(_avro_type(branch, namespace) for branch in schema) or "(empty union)"
    if not isinstance(schema, dict):
        return str(schema)
    kind = schema.get("type")
    if kind == "array":
        return f"array<{_avro_type(schema.get('items'), namespace)}>"
    if kind == "map":
        return f"map<{_avro_type(schema.get('values'), namespace)}>"
    if isinstance(kind, dict | list):
        return _avro_type(kind, namespace)
    shown = _full_name(schema, namespace) if kind in _AVRO_NAMED else str(kind)
    if "logicalType" in schema:
        details = [str(schema[key]) for key in ("precision", "scale") if key in schema]
        shown += f" ({' '.join([str(schema['logicalType']), ','.join(details)]).strip()})"
    return shown


def _full_name(schema: dict[str, Any], namespace: str) -> str:
    name = str(schema.get("name", ""))
    if "." in name:
        return name
    namespace = str(schema.get("namespace", namespace) or "")
    return f"{namespace}.{name}" if namespace else name


def _items(schema: dict[str, Any], key: str) -> list[Any]:
    value = schema.get(key)
    return value if isinstance(value, list) else []


# --- JSON Schema -----------------------------------------------------------------------------------------------------

_MAPS_OF_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS_OF_SCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SCHEMAS = (
    *("items", "additionalItems", "contains", "unevaluatedItems", "not", "if", "then", "else"),
    *("additionalProperties", "propertyNames", "unevaluatedProperties"),
)
_ANNOTATIONS = ("$schema", "$id", "id", "$comment", "title", "description", "examples", "required")


def _json(document: JsonValue) -> Iterator[tuple[str, Element]]:
    yield "", Element(kind="schema", name="(root)", shown=_json_shown(document), path="#")
    yield from _json_inside(document, name="", path="#")


def _json_inside(schema: JsonValue, *, name: str, path: str) -> Iterator[tuple[str, Element]]:
    if not isinstance(schema, dict):
        return
    required = schema.get("required")
    for keyword, part, inner in _json_parts(schema):
        is_property = keyword == "properties"
        step = part if is_property else f"({' '.join(filter(None, [keyword, part]))})"
        full = f"{name}.{step}" if name else step
        where = f"{path}/{keyword}/{part}" if part else f"{path}/{keyword}"
        shown = _json_shown(inner)
        if is_property and isinstance(required, list) and part in required:
            shown += ", required"
        yield full, Element(kind="property" if is_property else "schema", name=full, shown=shown, path=where)
        yield from _json_inside(inner, name=full, path=where)


def _json_parts(schema: dict[str, Any]) -> Iterator[tuple[str, str, JsonValue]]:
    """Every schema directly inside one: keyword, name or number, schema."""
    for keyword, value in schema.items():
        if keyword in _MAPS_OF_SCHEMAS and isinstance(value, dict):
            yield from ((keyword, str(key), inner) for key, inner in value.items())
        elif isinstance(value, list) and (keyword in _LISTS_OF_SCHEMAS or keyword == "items"):
            yield from ((keyword, str(index), inner) for index, inner in enumerate(value))
        elif keyword in _SCHEMAS and isinstance(value, dict):
            yield keyword, "", value


def _json_shown(schema: JsonValue) -> str:
    """What a schema says itself, without the schemas inside it."""
    if not isinstance(schema, dict):
        return {True: "anything", False: "nothing"}.get(schema, plain(schema)) if isinstance(schema, bool) else "?"
    kind = schema.get("type", "any")
    shown = " | ".join(map(str, kind)) if isinstance(kind, list) else str(kind)
    rest = [(key, value) for key, value in schema.items() if key != "type" and not _is_apart(key, value)]
    return ", ".join(filter(None, [shown, listed(rest)]))


def _is_apart(keyword: str, value: JsonValue) -> bool:
    if keyword in _SCHEMAS:
        return isinstance(value, dict | list)
    return keyword in (*_MAPS_OF_SCHEMAS, *_LISTS_OF_SCHEMAS, *_ANNOTATIONS)


# --- Protobuf --------------------------------------------------------------------------------------------------------


def _protobuf(text: str, references: Any) -> Iterator[tuple[str, Element]]:
    """From the compiled file: only the compiler knows what names mean."""
    try:
        from schema_registry.formats import protobuf
    except ImportError as error:
        raise Unreadable(f"reading Protobuf needs {error.name}: install caudal with [serdes]") from None
    from deploy.protobuf_elements import file_elements
    from schema_registry.formats.schema import InvalidSchema

    try:
        schema = protobuf.parse(text, references, strict=False)
    except InvalidSchema as error:
        raise Unreadable(str(error)) from None
    yield from file_elements(schema.descriptor)
