"""Documents of a JSON Schema as values of Connect: one function per schema, made when its first record is met."""

import base64
import binascii
import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NoReturn

import msgspec

from connect.api.data import DECIMAL_NAME, Schema, Type, Value
from connect.api.errors import DataError
from connect.api.logical import rescaled, scale_of, unscaled
from connect.converters.json_schema import config as names
from connect.converters.stored import from_stored

Json = Any
Change = Callable[[Json], Value]
Read = Callable[[bytes, int], Value]

_BITS: Final = {Type.INT8: 7, Type.INT16: 15, Type.INT32: 31, Type.INT64: 63}
_MAX_DIGITS: Final = 10_000
_FAULTS: Final = (msgspec.DecodeError, UnicodeDecodeError, InvalidOperation, RecursionError)
_encode: Final = msgspec.json.Encoder(decimal_format="number").encode
_exact_decode: Final = msgspec.json.Decoder(float_hook=Decimal).decode
"""Keeps all digits of numbers."""


def reading(schema: Schema) -> Read:
    """What reads documents as values of a Connect schema; raises DataError."""
    change = value_change(schema)
    decode = _exact_decode if _has_decimals(schema) else msgspec.json.decode

    def read(data: bytes, start: int) -> Value:
        try:
            value = decode(memoryview(data)[start:])
        except _FAULTS as error:
            raise DataError(f"the data is no JSON: {error}") from error
        return change(value)

    return read


def value_change(schema: Schema) -> Change:
    """What turns a JSON value, which may be null, into a Connect value."""
    present = _present(schema)
    default, is_optional = schema.default, schema.optional
    if names.JSON_TEXT in schema.parameters:
        return present  # null is a text like any other

    def change(value: Json) -> Value:
        if value is not None:
            return present(value)
        if default is None and not is_optional:
            raise DataError(f"Invalid null value for required {schema.type} field")
        return default

    return change


def _has_decimals(schema: Schema) -> bool:
    parts = [schema.key_schema, schema.value_schema, *(field.schema for field in schema.fields)]
    return schema.name == DECIMAL_NAME or any(_has_decimals(part) for part in parts if part is not None)


def _present(schema: Schema) -> Change:
    if schema.name == DECIMAL_NAME:
        return _decimal(schema)
    change = from_stored(schema)
    if change is not None:
        integer = _integer(schema.type)
        return lambda value: change(integer(value))
    match schema.type:
        case Type.STRUCT:
            return _union(schema) if names.is_union(schema) else _struct(schema)
        case Type.ARRAY:
            return _array(value_change(_part(schema.value_schema)))
        case Type.MAP:
            values = value_change(_part(schema.value_schema))
            return _object(values) if names.has_text_keys(schema) else _entries(schema, values)
        case Type.STRING if names.JSON_TEXT in schema.parameters:
            return _json_text
        case Type.STRING if names.ENUM in schema.parameters or names.GENERAL_ENUM in schema.parameters:
            return _symbol
        case _:
            return _PLAIN.get(schema.type) or _integer(schema.type)


def _struct(schema: Schema) -> Change:
    fields = [
        (f.name, f.schema.default, f.schema.optional, _present(f.schema))
        for f in schema.fields
        if f.name != names.ADDITIONAL
    ]
    others = schema.by_name.get(names.ADDITIONAL)
    read_others = None if others is None else _others(schema, others)

    def change(value: Json) -> Value:
        if value.__class__ is not dict:
            _unlike("Structs should be encoded as JSON objects", value)
        get = value.get
        made = {}
        for name, default, is_optional, present in fields:
            part = get(name)
            if part is None:
                if default is None and not is_optional and name in value:
                    raise DataError(f"{name}: Invalid null value for required field")
                made[name] = default
            else:
                try:
                    made[name] = present(part)
                except DataError as error:
                    raise DataError(f"{name}: {error}") from error
        if read_others is not None:
            made[names.ADDITIONAL] = read_others(value)
        return made

    return change


def _others(schema: Schema, others: Schema) -> Change:
    """The properties that the schema does not name."""
    change = value_change(_part(others.value_schema))
    known = schema.by_name.keys()

    def read(value: Json) -> Value:
        return {name: change(part) for name, part in value.items() if name not in known} or None

    return read


def _union(schema: Schema) -> Change:
    """The first schema that fits the type of the value; of several structs the one with most of its properties."""
    members = [(field.name, field.schema, _present(field.schema)) for field in schema.fields]

    def change(value: Json) -> Value:
        best, most = None, -1
        for name, member, present in members:
            if _is_of_type(member, value):
                return {name: present(value)}
            common = _common_properties(member, value)
            if common > most:
                best, most = (name, present), common
        if best is None:
            raise DataError("Did not find matching oneof field for data")
        name, present = best
        return {name: present(value)}

    return change


def _common_properties(schema: Schema, value: Json) -> int:
    """How many properties of an object, and of objects in it, are fields of a struct; -1 where there is none."""
    if schema.type is not Type.STRUCT or not isinstance(value, dict):
        return -1
    names_of_both = schema.by_name.keys() & value.keys()
    below = (_common_properties(schema.by_name[name], value[name]) for name in names_of_both)
    return len(names_of_both) + sum(max(count, 0) for count in below)


def _is_of_type(schema: Schema, value: Json) -> bool:
    kind = value.__class__
    match schema.type:
        case Type.INT8 | Type.INT16 | Type.INT32 | Type.INT64:
            return kind is int
        case Type.FLOAT32 | Type.FLOAT64:
            return kind in (int, float, Decimal)
        case Type.BYTES:
            return kind in (int, float, Decimal) if schema.name == DECIMAL_NAME else kind is str
        case Type.BOOLEAN:
            return kind is bool
        case Type.STRING:
            return kind is str
        case Type.ARRAY:
            return kind is list
        case Type.MAP:
            return kind in (dict, list)
        case Type.STRUCT:
            return False


def _array(item: Change) -> Change:
    def change(value: Json) -> Value:
        if value.__class__ is not list:
            _unlike("Arrays should be encoded as JSON arrays", value)
        return [item(part) for part in value]

    return change


def _object(values: Change) -> Change:
    def change(value: Json) -> Value:
        if value.__class__ is not dict:
            _unlike("Maps with string fields should be encoded as JSON objects", value)
        return {key: values(item) for key, item in value.items()}

    return change


def _entries(schema: Schema, values: Change) -> Change:
    keys = value_change(_part(schema.key_schema))

    def change(value: Json) -> Value:
        if value.__class__ is not list:
            _unlike("Maps with non-string fields should be encoded as JSON array of objects", value)
        made = {}
        for entry in value:
            if entry.__class__ is not dict:
                _unlike("Found invalid map entry instead of object", entry)
            if len(entry) != 2:
                raise DataError(f"Found invalid map entry, expected length 2 but found: {len(entry)}")
            try:
                made[keys(entry.get(names.KEY))] = values(entry.get(names.VALUE))
            except TypeError as error:
                raise DataError("the keys of a map must not be structs, lists or maps themselves") from error
        return made

    return change


def _decimal(schema: Schema) -> Change:
    scale = scale_of(schema)
    from_bytes = from_stored(schema)
    assert from_bytes is not None

    def change(value: Json) -> Value:
        if value.__class__ is str:
            return from_bytes(_bytes(value))
        if value.__class__ is int or value.__class__ is float:
            value = Decimal(repr(value))
        if value.__class__ is not Decimal:
            _unlike("Invalid type for Decimal, underlying representation should be numeric or bytes", value)
        return _scaled(value, scale)

    return change


def _scaled(value: Decimal, scale: int) -> Decimal:
    """The same number with so many digits after the point."""
    if abs(value.adjusted()) > _MAX_DIGITS:
        raise DataError("the number has too many digits for a Decimal")
    made = rescaled(value, scale)
    unscaled(made, scale)  # which refuses a number that has more digits
    return made


def _integer(type_: Type) -> Change:
    limit = 1 << _BITS[type_]

    def change(value: Json) -> Value:
        if value.__class__ is not int:
            # The size is looked at first: 1e999999999 has as many digits as a whole number.
            if value.__class__ not in (float, Decimal) or not -limit <= value < limit or value != int(value):
                _unlike(f"Invalid type for {type_}", value)
            value = int(value)
        if not -limit <= value < limit:
            raise DataError(f"{value} is out of the range of {type_}")
        return value

    return change


def _floating(value: Json) -> Value:
    if value.__class__ is float:
        return value
    if value.__class__ not in (int, Decimal):
        _unlike("Invalid type for a number", value)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number):
        raise DataError("the number is too large for a double")
    return number


def _boolean(value: Json) -> Value:
    if value.__class__ is not bool:
        _unlike("Invalid type for BOOLEAN", value)
    return value


def _text(value: Json) -> Value:
    if value.__class__ is not str:
        _unlike("Invalid type for STRING", value)
    return value


def _json_text(value: Json) -> Value:
    return _encode(value).decode()


def _symbol(value: Json) -> Value:
    """Symbols of an enum may be of any type; Connect knows them as text."""
    return value if value.__class__ is str else _json_text(value)


def _bytes(value: Json) -> bytes:
    if value.__class__ is not str:
        _unlike("Invalid bytes field", value)
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError(f"Invalid bytes field: {error}") from error


_PLAIN: Final[dict[Type, Change]] = {
    Type.FLOAT32: _floating,
    Type.FLOAT64: _floating,
    Type.BOOLEAN: _boolean,
    Type.STRING: _text,
    Type.BYTES: _bytes,
}


def _unlike(problem: str, value: Json) -> NoReturn:
    raise DataError(f"{problem}, but found {_JSON_NAMES.get(type(value), 'NUMBER')}")


_JSON_NAMES: Final = {type(None): "NULL", bool: "BOOLEAN", str: "STRING", list: "ARRAY", dict: "OBJECT"}


def _part(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("a schema of an array or a map must tell those of its parts")
    return schema
