"""Connect schemas as JSON Schemas."""

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
    """The text of the JSON Schema; raises DataError if there is none."""
    definition = _Definitions(config).of(schema)
    return json.dumps(definition, ensure_ascii=False, separators=(",", ":"))


class _Definitions:
    def __init__(self, config: JsonSchemaConfig) -> None:
        self._config = config

    def of(self, schema: Schema, *, index: int | None = None, ignores_optional: bool = False) -> Definition:
        """The definition of a type, with its index among the fields of a struct."""
        if names.is_union(schema):
            choices = [self.of(f.schema, index=i, ignores_optional=True) for i, f in enumerate(schema.fields)]
            made = {"oneOf": [_NULL, *choices] if schema.optional else choices}
        else:
            made = self._describe(self._bare(schema), schema)
            if schema.optional and not ignores_optional:
                made = {"oneOf": [_NULL, made]}
        return made if index is None else {**made, names.CONNECT_INDEX: index}

    def _bare(self, schema: Schema) -> Definition:
        match schema.type:
            case Type.STRUCT:
                return self._object(schema)
            case Type.MAP:
                return self._map(schema)
            case Type.ARRAY if schema.value_schema is not None:
                return {"type": "array", "items": self.of(schema.value_schema)}
            case Type.ARRAY:
                raise DataError("a schema of an array must have one of its items")
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
            values = others.value_schema
            made["additionalProperties"] = True
            if values is not None and names.JSON_TEXT not in values.parameters:
                made["additionalProperties"] = self.of(values)
        elif not self._config.object_additional_properties:
            made["additionalProperties"] = False
        return made

    def _map(self, schema: Schema) -> Definition:
        if schema.key_schema is None or schema.value_schema is None:
            raise DataError("a schema of a map must have those of its keys and values")
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

    def _describe(self, made: Definition, schema: Schema) -> Definition:
        """Add everything else that Connect has about the type."""
        parameters = {key: text for key, text in schema.parameters.items() if not key.startswith(names.NAMESPACE)}
        properties: Definition = {
            "title": schema.name,
            "description": schema.doc,
            names.CONNECT_VERSION: schema.version,
            names.CONNECT_PARAMETERS: parameters or None,
        }
        made = {**made, **{key: value for key, value in properties.items() if value is not None}}
        if schema.default is not None:
            written = writing(schema.but(default=None), self._config)(schema.default)
            made["default"] = msgspec.json.decode(written)
        return made
