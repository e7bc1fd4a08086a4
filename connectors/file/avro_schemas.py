"""Schemas of Avro container files as Connect schemas and back; the values are fastavro's."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from connect.api import data
from connect.api.data import Field, Schema, Type, Value
from connect.api.errors import DataError

AvroSchema = Any
"""An Avro schema in JSON: text, a list (a union) or a dict."""

DECIMAL_PRECISION: Final = 64
_TO_AVRO: Final[dict[Type, AvroSchema]] = {
    Type.INT8: {"type": "int", "connect.type": "int8"},
    Type.INT16: {"type": "int", "connect.type": "int16"},
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_LOGICAL_TO_AVRO: Final[dict[str, dict[str, object]]] = {
    data.DATE_NAME: {"type": "int", "logicalType": "date"},
    data.TIME_NAME: {"type": "int", "logicalType": "time-millis"},
    data.TIMESTAMP_NAME: {"type": "long", "logicalType": "timestamp-millis"},
}
_FROM_AVRO: Final[dict[str, Schema]] = {
    "int": data.INT32,
    "long": data.INT64,
    "float": data.FLOAT32,
    "double": data.FLOAT64,
    "boolean": data.BOOLEAN,
    "string": data.STRING,
    "bytes": data.BYTES,
    "fixed": data.BYTES,
    "enum": data.STRING,
    "null": data.OPTIONAL_STRING,
}
_LOGICAL_FROM_AVRO: Final[dict[str, Schema]] = {
    "date": data.DATE,
    "time-millis": data.TIME,
    "time-micros": data.TIME,
    "timestamp-millis": data.TIMESTAMP,
    "timestamp-micros": data.TIMESTAMP,
    "uuid": data.STRING,
}
_NOT_A_NAME: Final = re.compile(r"[^A-Za-z0-9_]")


def avro_schema(schema: Schema) -> AvroSchema:
    """The Avro schema of values of a schema; records without a name are named after their place."""
    return _Writer().of(schema, "ConnectDefault")


class _Writer:
    """Writes schemas; a record is defined once and then referred to by name, as Avro demands."""

    def __init__(self) -> None:
        self._named: dict[str, Schema] = {}

    def of(self, schema: Schema, place: str) -> AvroSchema:
        found = self._of_required(schema, place)
        return ["null", found] if schema.optional else found

    def _of_required(self, schema: Schema, place: str) -> AvroSchema:
        if schema.name == data.DECIMAL_NAME:
            scale = int(schema.parameters.get("scale", "0"))
            return {"type": "bytes", "logicalType": "decimal", "precision": DECIMAL_PRECISION, "scale": scale}
        if schema.name in _LOGICAL_TO_AVRO:
            return _LOGICAL_TO_AVRO[schema.name]
        match schema.type:
            case Type.ARRAY:
                return {"type": "array", "items": self.of(_inner(schema.value_schema), f"{place}_item")}
            case Type.MAP:
                if _inner(schema.key_schema).type is not Type.STRING:
                    raise DataError("a map whose keys are not text cannot be written to an Avro file")
                return {"type": "map", "values": self.of(_inner(schema.value_schema), f"{place}_value")}
            case Type.STRUCT:
                return self._record(schema, place)
            case plain:
                return _TO_AVRO[plain]

    def _record(self, schema: Schema, place: str) -> AvroSchema:
        name = ".".join(_NOT_A_NAME.sub("_", part) for part in (schema.name or place).split("."))
        if name in self._named and self._named[name].as_optional() == schema.as_optional():
            return name
        while name in self._named:
            name += "_"
        self._named[name] = schema
        fields = []
        for field in schema.fields:
            type_ = self.of(field.schema, _NOT_A_NAME.sub("_", f"{name}_{field.name}"))
            fields.append({"name": field.name, "type": type_, **({"default": None} if field.schema.optional else {})})
        return {"type": "record", "name": name, "fields": fields}


def connect_schema(avro: AvroSchema) -> tuple[Schema, Callable[[Value], Value] | None]:
    """The schema of an Avro file's values, and how these are converted to fit it (None if they do)."""
    return _Reader().of(avro)


class _Reader:
    """Reads schemas; remembers the named types that were defined before."""

    def __init__(self) -> None:
        self._named: dict[str, Schema] = {}
        self._texts_of_uuids = False

    def of(self, avro: AvroSchema) -> tuple[Schema, Callable[[Value], Value] | None]:
        schema = self._of(avro)
        return schema, (_with_texts if self._texts_of_uuids else None)

    def _of(self, avro: AvroSchema) -> Schema:
        return (self._logical(avro) if isinstance(avro, dict) else None) or self._structural(avro)

    def _logical(self, avro: Mapping[str, Any]) -> Schema | None:
        match avro:
            case {"logicalType": "decimal"}:
                return data.decimal(avro.get("scale", 0))
            case {"logicalType": str(logical)} if logical in _LOGICAL_FROM_AVRO:
                self._texts_of_uuids = self._texts_of_uuids or logical == "uuid"
                return _LOGICAL_FROM_AVRO[logical]
            case {"connect.type": "int8" | "int16" as small}:
                return Schema(Type(small))
            case _:
                return None

    def _structural(self, avro: AvroSchema) -> Schema:
        match avro:
            case str():
                found = _FROM_AVRO.get(avro) or self._named.get(avro)
                if found is None:
                    raise DataError(f"the Avro type {avro} has no counterpart in Connect (a record that holds itself?)")
                return found
            case list():
                others = [branch for branch in avro if branch != "null"]
                if len(others) != 1:
                    raise DataError(f"a union of {len(others)} types has no counterpart in Connect: {avro!r}")
                schema = self._of(others[0])
                return schema.as_optional() if len(avro) > 1 else schema
            case {"type": "array", "items": items}:
                return data.array(self._of(items))
            case {"type": "map", "values": values}:
                return data.mapping(data.STRING, self._of(values))
            case {"type": "record" | "error"}:
                fields = [Field(field["name"], self._of(field["type"])) for field in avro["fields"]]
                return self._define(avro, data.struct(fields, name=avro["name"]))
            case {"type": inner}:
                return self._define(avro, self._of(inner))
            case _:
                raise DataError(f"an Avro schema that cannot be read: {avro!r}")

    def _define(self, avro: Mapping[str, Any], schema: Schema) -> Schema:
        if "name" in avro:
            self._named[avro["name"]] = schema
        return schema


def _with_texts(value: Value) -> Value:
    """The value with UUIDs as text."""
    import uuid

    match value:
        case uuid.UUID():
            return str(value)
        case dict():
            return {key: _with_texts(item) for key, item in value.items()}
        case list():
            return [_with_texts(item) for item in value]
        case _:
            return value


def _inner(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("an array or a map without a schema of its items cannot be written")
    return schema
