"""Schemas of Connect as JSON Schemas."""

import json
from typing import Any, Final

import msgspec

from connect.api.data import DECIMAL_NAME, Schema, Type
from connect.api.errors import DataError
from connect.converters.json_schema import config as names
from connect.converters.json_schema.config import JsonSchemaConfig
from connect.converters.json_schema.values import writing

Definition = dict[str, Any]

_NULL: Final[Definition] = {"type": "null"}
_PLAIN: Final = {
    Type.INT8: ("integer", "int8"),
    Type.INT16: ("integer", "int16"),
    Type.INT32: ("integer", "int32"),
    Type.INT64: ("integer", "int64"),
    Type.FLOAT32: ("number", "float32"),
    Type.FLOAT64: ("number", "float64"),
    Type.BOOLEAN: ("boolean", None),
    Type.STRING: ("string", None),
    Type.BYTES: ("string", "bytes"),
}


def from_connect_schema(schema: Schema, config: JsonSchemaConfig) -> str:
    """The text of the JSON Schema; raises DataError where there is none."""
    definition = _Definitions(config).of(schema)
    return json.dumps(definition, ensure_ascii=False, separators=(",", ":"))


class _Definitions:
    def __init__(self, config: JsonSchemaConfig) -> None:
        self._config = config

    def of(self, schema: Schema, *, index: int | None = None, ignores_optional: bool = False) -> Definition:
        """The definition of a type, at a place among the fields of a struct."""
        if names.is_union(schema):
            made = self._union(schema)
        else:
            made = self._described(self._typed(schema), schema)
            if schema.optional and not ignores_optional:
                made = {"oneOf": [_NULL, made]}
        return made if index is None else {**made, names.CONNECT_INDEX: index}

    def _union(self, schema: Schema) -> Definition:
        choices = [
            self.of(field.schema, index=index, ignores_optional=True) for index, field in enumerate(schema.fields)
        ]
        return {"oneOf": [_NULL, *choices] if schema.optional else choices}

    def _typed(self, schema: Schema) -> Definition:
        match schema.type:
            case Type.STRUCT:
                return self._object(schema)
            case Type.MAP:
                return self._map(schema)
            case Type.ARRAY if schema.value_schema is not None:
                return {"type": "array", "items": self.of(schema.value_schema)}
            case Type.ARRAY:
                raise DataError("a schema of an array must tell that of its items")
            case Type.STRING if names.ENUM in schema.parameters or names.GENERAL_ENUM in schema.parameters:
                return self._enum(schema)
            case _:
                kind, connect_type = _PLAIN[schema.type]
                kind = "number" if schema.name == DECIMAL_NAME else kind
                return {"type": kind, **({names.CONNECT_TYPE: connect_type} if connect_type else {})}

    def _object(self, schema: Schema) -> Definition:
        others = schema.by_name.get(names.ADDITIONAL)
        named = [field for field in schema.fields if field.schema is not others]
        properties = {field.name: self.of(field.schema, index=index) for index, field in enumerate(named)}
        made: Definition = {"type": "object", "properties": properties}
        if others is not None:
            made["additionalProperties"] = self._others(others)
        elif not self._config.object_additional_properties:
            made["additionalProperties"] = False
        return made

    def _others(self, schema: Schema) -> Definition | bool:
        """What properties may be that the schema does not name."""
        values = schema.value_schema
        return True if values is None or names.JSON_TEXT in values.parameters else self.of(values)

    def _map(self, schema: Schema) -> Definition:
        if schema.key_schema is None or schema.value_schema is None:
            raise DataError("a schema of a map must tell those of its keys and values")
        if names.has_text_keys(schema):
            values = self.of(schema.value_schema)
            return {"type": "object", "additionalProperties": values, names.CONNECT_TYPE: "map"}
        keys, values = self.of(schema.key_schema, index=0), self.of(schema.value_schema, index=1)
        entry = {"type": "object", "properties": {names.KEY: keys, names.VALUE: values}}
        return {"type": "array", "items": entry, names.CONNECT_TYPE: "map"}

    def _enum(self, schema: Schema) -> Definition:
        prefix = f"{names.GENERAL_ENUM if names.GENERAL_ENUM in schema.parameters else names.ENUM}."
        symbols = [key.removeprefix(prefix) for key in schema.parameters if key.startswith(prefix)]
        return {"enum": [None if symbol == names.NULL_SYMBOL else symbol for symbol in symbols]}

    def _described(self, made: Definition, schema: Schema) -> Definition:
        """The definition with what else Connect knows about the type."""
        parameters = {key: text for key, text in schema.parameters.items() if not key.startswith(names.NAMESPACE)}
        told: Definition = {
            "title": schema.name,
            "description": schema.doc,
            names.CONNECT_VERSION: schema.version,
            names.CONNECT_PARAMETERS: parameters or None,
        }
        made = {**made, **{key: value for key, value in told.items() if value is not None}}
        if schema.default is not None:
            made["default"] = _default(schema, self._config)
        return made


def _default(schema: Schema, config: JsonSchemaConfig) -> Any:
    """The default as a document has it."""
    return msgspec.json.decode(writing(schema.but(default=None), config)(schema.default))
