"""Values of Connect as documents of a JSON Schema: one function per schema, made when its first record is met."""

import math
from collections.abc import Callable
from typing import Any, Final, NoReturn

import msgspec

from connect.api.data import DECIMAL_NAME, Schema, Type, Value
from connect.api.errors import DataError
from connect.api.logical import scale_of, unscaled
from connect.converters.json.writing import ready
from connect.converters.json_schema import config as names
from connect.converters.json_schema.config import JsonSchemaConfig
from connect.converters.stored import to_stored

Json = Any
Make = Callable[[Value], Json]
Write = Callable[[Value], bytes]

_BITS: Final = {Type.INT8: 7, Type.INT16: 15, Type.INT32: 31, Type.INT64: 63}
_encode: Final = msgspec.json.Encoder(decimal_format="number").encode


def writing(schema: Schema | None, config: JsonSchemaConfig) -> Write:
    """What writes values of a Connect schema as JSON; raises DataError."""
    make = ready if schema is None else _Makers(config).of(schema)
    return lambda value: _encode(make(value))


class _Makers:
    """Makes what msgspec writes as the right JSON: bytes become base64, decimals numbers."""

    def __init__(self, config: JsonSchemaConfig) -> None:
        self._config = config

    def of(self, schema: Schema) -> Make:
        """The function for values that may be null; it returns null only where that is to be written."""
        present = self._present(schema)
        default = self._default(schema)
        is_optional = schema.optional

        def make(value: Value) -> Json:
            if value is None:
                value = default
                if value is None:
                    if is_optional:
                        return None
                    raise DataError(f"Found null value for non-optional schema of {schema.type}")
            return present(value)

        return make

    def _default(self, schema: Schema) -> Value:
        return None if self._config.ignore_default_for_nullables else schema.default

    def _present(self, schema: Schema) -> Make:
        if schema.name == DECIMAL_NAME and self._config.has_numeric_decimals:
            return _number(schema)
        change = to_stored(schema)
        if change is not None:
            return change
        match schema.type:
            case Type.STRING if names.JSON_TEXT in schema.parameters:
                return _parsed
            case Type.STRUCT:
                return self._union(schema) if names.is_union(schema) else self._struct(schema)
            case Type.ARRAY:
                return _array(self.of(_part(schema.value_schema)))
            case Type.MAP:
                values = self.of(_part(schema.value_schema))
                return _object(values) if names.has_text_keys(schema) else self._entries(schema, values)
            case _:
                return _PLAIN.get(schema.type) or _integer(schema.type)

    def _struct(self, schema: Schema) -> Make:
        fields = [
            (f.name, f.schema.optional, self._default(f.schema), self._present(f.schema))
            for f in schema.fields
            if f.name != names.ADDITIONAL
        ]
        others = schema.by_name.get(names.ADDITIONAL)
        write_others = None if others is None else self._present(others)

        def make(value: Value) -> Json:
            if not isinstance(value, dict):
                _unlike("a struct", value)
            get = value.get
            made = {}
            for name, is_optional, default, present in fields:
                part = get(name)
                if part is None:
                    part = default
                if part is not None:
                    try:
                        made[name] = present(part)
                    except DataError as error:
                        raise DataError(f"{name}: {error}") from error
                elif is_optional:
                    made[name] = None
                # What is neither optional nor there is left out: a property that the schema does not require.
            if write_others is not None and get(names.ADDITIONAL):
                made = {**write_others(get(names.ADDITIONAL)), **made}
            return made

        return make

    def _union(self, schema: Schema) -> Make:
        members = [(field.name, self._present(field.schema)) for field in schema.fields]

        def make(value: Value) -> Json:
            for name, present in members:
                part = value.get(name)
                if part is not None:
                    return present(part)
            if schema.optional:
                return None
            raise DataError("Found null value for non-optional schema: no field of the union is set")

        return make

    def _entries(self, schema: Schema, values: Make) -> Make:
        keys = self.of(_part(schema.key_schema))

        def make(value: Value) -> Json:
            if not isinstance(value, dict):
                _unlike("a map", value)
            return [{names.KEY: keys(key), names.VALUE: values(item)} for key, item in value.items()]

        return make


def _array(item: Make) -> Make:
    def make(value: Value) -> Json:
        if not isinstance(value, list | tuple):
            _unlike("an array", value)
        return [item(part) for part in value]

    return make


def _object(values: Make) -> Make:
    def make(value: Value) -> Json:
        if not isinstance(value, dict):
            _unlike("a map", value)
        return {_text(key): values(item) for key, item in value.items()}

    return make


def _number(schema: Schema) -> Make:
    scale = scale_of(schema)

    def make(value: Value) -> Json:
        unscaled(value, scale)
        return value

    return make


def _integer(type_: Type) -> Make:
    limit = 1 << _BITS[type_]

    def make(value: Value) -> Json:
        if value.__class__ is not int:
            _unlike(type_, value)
        if not -limit <= value < limit:
            raise DataError(f"{value} is out of the range of {type_}")
        return value

    return make


def _floating(value: Value) -> Json:
    if value.__class__ is not float and value.__class__ is not int:
        _unlike("a number", value)
    if not math.isfinite(value):
        raise DataError(f"{value} cannot be written as JSON, which has numbers only")
    return value


def _boolean(value: Value) -> Json:
    if value.__class__ is not bool:
        _unlike("a boolean", value)
    return value


def _text(value: Value) -> Json:
    if not isinstance(value, str):
        _unlike("text", value)
    return value


def _parsed(value: Value) -> Json:
    """Text that is JSON."""
    try:
        return msgspec.json.decode(_text(value), type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise DataError(f"the text is no JSON: {error}") from error


def _bytes(value: Value) -> Json:
    if not isinstance(value, bytes | bytearray | memoryview):
        _unlike("bytes", value)
    return value


_PLAIN: Final[dict[Type, Make]] = {
    Type.FLOAT32: _floating,
    Type.FLOAT64: _floating,
    Type.BOOLEAN: _boolean,
    Type.STRING: _text,
    Type.BYTES: _bytes,
}


def _unlike(wanted: str, value: Value) -> NoReturn:
    raise DataError(f"Invalid type: expected {wanted}, not a value of type {type(value).__name__}")


def _part(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("a schema of an array or a map must tell those of its parts")
    return schema
