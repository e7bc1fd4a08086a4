"""A schema as a flat list of elements: an Avro record's fields, a JSON Schema's properties, a Protobuf file's messages.

Avro and JSON Schema are read from the text alone, so that schemas that our registry would refuse can be shown, too.
Only Protobuf is compiled, because names cannot be resolved otherwise.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from schema_registry.formats.schema import SchemaType

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import (
        DescriptorProto,
        EnumDescriptorProto,
        FieldDescriptorProto,
        FileDescriptorProto,
    )

    from schema_registry.client.models import SchemaDefinition

JsonValue = Any
_MAX_ELEMENTS = 50_000


class Element(msgspec.Struct, frozen=True, kw_only=True):
    """One element of a schema."""

    kind: str
    """`field`, `symbol`, `property`, `message`, …"""
    name: str
    shown: str
    """What is compared: type, default, limits."""
    path: str
    """Its path in the answers of registries."""


Elements = dict[tuple[str, str], Element]
"""Elements by their identity across schemas, in the order of the text."""


class Unreadable(ValueError):
    """The schema cannot be parsed; the message says why."""


def elements(definition: "SchemaDefinition", references: Callable[[], Any] = tuple) -> Elements:
    """The elements of a schema; `references` fetches the schemas it refers to, if they are needed."""
    try:
        if definition.schema_type is SchemaType.PROTOBUF:
            found = _protobuf(definition.text, references())
        else:
            document = msgspec.json.decode(definition.text)
            is_avro = definition.schema_type is SchemaType.AVRO
            shown = _avro_type(document, "") if is_avro else _json_shown(document)
            root = Element(kind="schema", name="(root)", shown=shown, path="/" if is_avro else "#")
            inside = _avro_inside(document, "", namespace="") if is_avro else _json_inside(document, name="", path="#")
            found = itertools.chain([("", root)], inside)
        collected: Elements = {}
        for key, element in found:
            if len(collected) >= _MAX_ELEMENTS:
                raise Unreadable(f"it has more than {_MAX_ELEMENTS} elements")
            collected.setdefault((element.kind, key), element)
        return collected
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreadable(f"it is not JSON: {error}") from None


# --- Avro ------------------------------------------------------------------------------------------------------------

_AVRO_NAMED = ("record", "error", "enum", "fixed")


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
    attributes = _listed((key, schema[key]) for key in ("size", "default", "aliases") if key in schema)
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
        shown += f" = {_plain(field['default'])}"
    if field.get("aliases"):
        shown += f", aliases {_plain(field['aliases'])}"
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
    """A schema's own keywords, without the schemas inside it."""
    if not isinstance(schema, dict):
        return {True: "anything", False: "nothing"}.get(schema, _plain(schema)) if isinstance(schema, bool) else "?"
    kind = schema.get("type", "any")
    shown = " | ".join(map(str, kind)) if isinstance(kind, list) else str(kind)
    rest = [(key, value) for key, value in schema.items() if key != "type" and not _is_apart(key, value)]
    return ", ".join(filter(None, [shown, _listed(rest)]))


def _is_apart(keyword: str, value: JsonValue) -> bool:
    if keyword in _SCHEMAS:
        return isinstance(value, dict | list)
    return keyword in (*_MAPS_OF_SCHEMAS, *_LISTS_OF_SCHEMAS, *_ANNOTATIONS)


# --- Protobuf --------------------------------------------------------------------------------------------------------


def _protobuf(text: str, references: Any) -> Iterator[tuple[str, Element]]:
    """Everything in a file, by its identity across versions: a field is its number, not its name."""
    try:
        from schema_registry.formats import protobuf
    except ImportError as error:
        raise Unreadable(f"reading Protobuf needs {error.name}: install caudal with [serdes]") from None
    from schema_registry.formats.schema import InvalidSchema

    try:
        file: FileDescriptorProto = protobuf.parse(text, references, strict=False).descriptor
    except InvalidSchema as error:
        raise Unreadable(str(error)) from None
    yield "", Element(kind="package", name="package", shown=file.package or "(none)", path="#/package")
    for name in file.dependency:
        yield name, Element(kind="import", name=name, shown="", path="#/import")
    for message in file.message_type:
        yield from _protobuf_message(message, prefix="", path="#")
    for enum in file.enum_type:
        yield from _protobuf_enum(enum, prefix="", path="#")
    for service in file.service:
        for method in service.method:
            name = f"{service.name}.{method.name}"
            streams = ("stream " if method.client_streaming else "", "stream " if method.server_streaming else "")
            types = (method.input_type.removeprefix("."), method.output_type.removeprefix("."))
            shown = f"({streams[0]}{types[0]}) → ({streams[1]}{types[1]})"
            yield name, Element(kind="method", name=name, shown=shown, path=f"#/{name}")


def _protobuf_message(message: "DescriptorProto", *, prefix: str, path: str) -> Iterator[tuple[str, Element]]:
    name, path = f"{prefix}{message.name}", f"{path}/{message.name}"
    yield name, Element(kind="message", name=name, shown="", path=path)
    entries = {entry.name: entry for entry in message.nested_type if entry.options.map_entry}
    for field in message.field:
        oneof = ""
        if field.HasField("oneof_index") and not field.proto3_optional:
            oneof = f" in oneof {message.oneof_decl[field.oneof_index].name}"
        shown = f"{_protobuf_type(field, entries)} = {field.number}{oneof}"
        key, full = f"{name}.{field.number}", f"{name}.{field.name}"
        yield key, Element(kind="field", name=full, shown=shown, path=f"{path}/{field.number}")
    for nested in message.nested_type:
        if not nested.options.map_entry:
            yield from _protobuf_message(nested, prefix=f"{name}.", path=path)
    for enum in message.enum_type:
        yield from _protobuf_enum(enum, prefix=f"{name}.", path=path)


def _protobuf_type(field: "FieldDescriptorProto", entries: dict[str, "DescriptorProto"]) -> str:
    entry = entries.get(field.type_name.rpartition(".")[2])
    if entry is not None and field.label == field.LABEL_REPEATED:
        key, value = entry.field
        return f"map<{_protobuf_type(key, {})}, {_protobuf_type(value, {})}>"
    scalar = field.Type.Name(field.type).removeprefix("TYPE_").lower()
    shown = field.type_name.removeprefix(".") or scalar
    label = {field.LABEL_REPEATED: "repeated ", field.LABEL_REQUIRED: "required "}.get(field.label, "")
    if field.proto3_optional:
        label = "optional "
    return label + shown


def _protobuf_enum(enum: "EnumDescriptorProto", *, prefix: str, path: str) -> Iterator[tuple[str, Element]]:
    name, path = f"{prefix}{enum.name}", f"{path}/{enum.name}"
    yield name, Element(kind="enum", name=name, shown="", path=path)
    for value in enum.value:
        full = f"{name}.{value.name}"
        yield full, Element(kind="value", name=full, shown=str(value.number), path=f"{path}/{value.number}")


def _plain(value: object) -> str:
    """A JSON value in one short line."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:57]}…"


def _listed(pairs: Iterable[tuple[str, Any]]) -> str:
    """`maxLength 10, pattern "x"`."""
    return ", ".join(f"{name} {_plain(value)}" for name, value in pairs)
