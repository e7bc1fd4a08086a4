"""Schemas in the envelope of JSON records: `{"schema": …, "payload": …}`."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from connect.api.data import Field, Schema, Type, Value
from connect.api.errors import DataError

Json = Any
"""A decoded JSON value."""
Defaults = Callable[[Schema, Value], Value]
"""Turns the default of a schema into JSON, or back."""

_TYPE_NAMES: Final = {kind: kind.value for kind in Type} | {Type.FLOAT32: "float", Type.FLOAT64: "double"}
_TYPES: Final = {name: kind for kind, name in _TYPE_NAMES.items()}
_DEPTH_MAX: Final = 100
_INT32: Final = 1 << 31


def to_json(schema: Schema, *, default: Defaults) -> dict[str, Json]:
    """A schema as JSON, with its keys in the order of Kafka Connect."""
    json: dict[str, Json] = {"type": _TYPE_NAMES[schema.type]}
    if schema.type is Type.ARRAY:
        json["items"] = _inner(schema.value_schema, default)
    elif schema.type is Type.MAP:
        json["keys"] = _inner(schema.key_schema, default)
        json["values"] = _inner(schema.value_schema, default)
    elif schema.type is Type.STRUCT:
        json["fields"] = [to_json(item.schema, default=default) | {"field": item.name} for item in schema.fields]
    json["optional"] = schema.optional
    for key in ("name", "version", "doc"):
        if (value := getattr(schema, key)) is not None:
            json[key] = value
    if schema.parameters:
        json["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        json["default"] = default(schema, schema.default)
    return json


def _inner(schema: Schema | None, default: Defaults) -> Json:
    return None if schema is None else to_json(schema, default=default)


def from_json(json: Json, *, default: Defaults) -> Schema | None:
    """Decode a schema; None for null."""
    return None if json is None else _read(json, default, depth=0)


def _read(json: Json, default: Defaults, *, depth: int) -> Schema:
    if depth > _DEPTH_MAX:
        raise DataError(f"a schema is nested deeper than {_DEPTH_MAX} levels")
    kind = json.get("type") if isinstance(json, dict) else None
    if not isinstance(kind, str):
        raise DataError("Schema must contain 'type' field")
    if kind not in _TYPES:
        raise DataError(f"Unknown schema type: {kind}")
    schema = Schema(_TYPES[kind], **_parts(json, _TYPES[kind], default, depth + 1), **_attributes(json))
    if json.get("default") is None:
        return schema
    return schema.but(default=default(schema, json["default"]))


def _parts(json: Mapping[str, Json], kind: Type, default: Defaults, depth: int) -> dict[str, Any]:
    if kind is Type.ARRAY:
        if json.get("items") is None:
            raise DataError("Array schema did not specify the element type")
        return {"value_schema": _read(json["items"], default, depth=depth)}
    if kind is Type.MAP:
        for key, part in (("keys", "key"), ("values", "value")):
            if json.get(key) is None:
                raise DataError(f"Map schema did not specify the {part} type")
        keys, values = (_read(json[key], default, depth=depth) for key in ("keys", "values"))
        return {"key_schema": keys, "value_schema": values}
    return {"fields": _fields(json, default, depth)} if kind is Type.STRUCT else {}


def _fields(json: Mapping[str, Json], default: Defaults, depth: int) -> tuple[Field, ...]:
    fields = json.get("fields")
    if not isinstance(fields, list):
        raise DataError('Struct schema\'s "fields" argument is not an array.')
    return tuple(Field(_field_name(field), _read(field, default, depth=depth)) for field in fields)


def _field_name(field: Json) -> str:
    name = field.get("field") if isinstance(field, dict) else None
    if not isinstance(name, str):
        raise DataError("Struct schema's field name not specified properly")
    return name


def _attributes(json: Mapping[str, Json]) -> dict[str, Any]:
    """The optional attributes. Like Kafka Connect, ignores those of the wrong type."""
    found: dict[str, Any] = {"optional": json.get("optional") is True}
    for key in ("name", "doc"):
        if isinstance(value := json.get(key), str):
            found[key] = value
    version = json.get("version")
    if type(version) is int and -_INT32 <= version < _INT32:
        found["version"] = version
    if isinstance(parameters := json.get("parameters"), dict) and parameters:
        if not all(isinstance(value, str) for value in parameters.values()):
            raise DataError("Schema parameters must have string values.")
        found["parameters"] = parameters
    return found
