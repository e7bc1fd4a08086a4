"""Checks values against their schemas, and infers the schema of a value without one."""

import datetime as dt
from collections.abc import Callable, Collection
from decimal import Decimal
from typing import Final, NoReturn

from connect.api.data import (
    BOOLEAN,
    BYTES,
    DATE,
    DATE_NAME,
    DECIMAL_NAME,
    FLOAT64,
    INT64,
    STRING,
    TIME,
    TIME_NAME,
    TIMESTAMP,
    TIMESTAMP_NAME,
    Schema,
    Type,
    Value,
    array,
    decimal,
    mapping,
)
from connect.api.errors import DataError
from connect.api.logical import days_of, milliseconds_of, scale_of, unscaled

Checker = Callable[[Value, str], None]
"""Takes a value and its name for messages; raises DataError."""

_MOST_CHECKERS: Final = 1000
_MOST_NESTED: Final = 100
_INTEGER_BITS: Final = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
_PLAIN: Final[dict[Type, tuple[type, ...]]] = {
    Type.FLOAT32: (float,),
    Type.FLOAT64: (float,),
    Type.BOOLEAN: (bool,),
    Type.STRING: (str,),
    Type.BYTES: (bytes, bytearray, memoryview),
}
_SCHEMAS: Final[dict[type, Schema]] = {
    str: STRING,
    bool: BOOLEAN,
    float: FLOAT64,
    bytes: BYTES,
    dt.date: DATE,
    dt.time: TIME,
    dt.datetime: TIMESTAMP,
}
_checkers: dict[Schema, Checker] = {}


def check(schema: Schema | None, value: Value, *, field: str = "") -> None:
    """Raise DataError when a value does not fit its schema; `field` is its name. Without a schema every value fits."""
    if schema is not None:
        checker_of(schema)(value, field)


def checker_of(schema: Schema) -> Checker:
    """The `check` of one schema, for callers that check many values."""
    checker = _checkers.get(schema)
    if checker is None:
        required = _compile_required(schema)
        checker = _nullable(required) if schema.optional else required
        if len(_checkers) >= _MOST_CHECKERS:
            _checkers.clear()
        _checkers[schema] = checker
    return checker


def schema_of(value: Value, *, _depth: int = 0) -> Schema | None:
    """The schema of a value without one; None for null and for collections of mixed types."""
    if type(value) is int:
        return INT64 if -(1 << 63) <= value < 1 << 63 else None
    if isinstance(value, Decimal):
        return decimal(-int(value.as_tuple().exponent)) if value.is_finite() else None
    if _depth > _MOST_NESTED:
        raise DataError(f"a value is nested deeper than {_MOST_NESTED} levels")
    if isinstance(value, list):
        items = _common(value, _depth)
        return array(items) if items else None
    if isinstance(value, dict):
        keys, values = _common(value.keys(), _depth), _common(value.values(), _depth)
        return mapping(keys, values) if keys and values else None
    return _SCHEMAS.get(type(value))


def _common(values: Collection[Value], depth: int) -> Schema | None:
    schemas = [schema_of(value, _depth=depth + 1) for value in values if value is not None]
    if not schemas or any(schema != schemas[0] for schema in schemas):
        return None
    common = schemas[0]
    return common.as_optional() if common and len(schemas) < len(values) else common


def _nullable(required: Checker) -> Checker:
    def check_nullable(value: Value, field: str) -> None:
        if value is not None:
            required(value, field)

    return check_nullable


def _compile_required(schema: Schema) -> Checker:
    if schema.name == DECIMAL_NAME:
        scale = scale_of(schema)
        return _logical(schema, Decimal, lambda value: unscaled(value, scale))
    if schema.name == DATE_NAME:
        return _logical(schema, dt.date, days_of)
    if schema.name == TIMESTAMP_NAME:
        return _logical(schema, dt.datetime, milliseconds_of)
    if schema.name == TIME_NAME:
        return _instance(schema, (dt.time,))
    if schema.type in _INTEGER_BITS:
        return _integer(schema)
    if schema.type in _PLAIN:
        return _instance(schema, _PLAIN[schema.type])
    return {Type.ARRAY: _array, Type.MAP: _map, Type.STRUCT: _struct}[schema.type](schema)


def _refuse(schema: Schema, value: Value, field: str) -> NoReturn:
    """The message shows the type of a value, and the value, which may be secret or long, only if it is an integer."""
    shown_field = f': "{field}"' if field else ""
    if value is None:
        raise DataError(f"Invalid value: null used for required field{shown_field}, schema type: {schema.type.name}")
    name = f"{schema.type.name} ({schema.name})" if schema.name else schema.type.name
    shown = f"int {value}"[:60] if type(value) is int else type(value).__name__
    place = f" for field{shown_field}" if field else ""
    raise DataError(f"Invalid object for schema type {name}: {shown}{place}")


def _integer(schema: Schema) -> Checker:
    high = 1 << (_INTEGER_BITS[schema.type] - 1)
    low = -high

    def check_integer(value: Value, field: str) -> None:
        if type(value) is not int or not low <= value < high:
            _refuse(schema, value, field)

    return check_integer


def _instance(schema: Schema, allowed: tuple[type, ...]) -> Checker:
    usual = allowed[0]

    def check_instance(value: Value, field: str) -> None:
        if type(value) is not usual and not isinstance(value, allowed):
            _refuse(schema, value, field)

    return check_instance


def _logical(schema: Schema, kind: type, convert: Callable[[Value], object]) -> Checker:
    """`convert` raises DataError for values that the encoding of the logical type cannot hold."""

    def check_logical(value: Value, field: str) -> None:
        if not isinstance(value, kind):
            _refuse(schema, value, field)
        convert(value)

    return check_logical


def _array(schema: Schema) -> Checker:
    inner = checker_of(schema.value_schema) if schema.value_schema else None

    def check_array(value: Value, field: str) -> None:
        if not isinstance(value, (list, tuple)):
            _refuse(schema, value, field)
        if inner:
            for item in value:
                inner(item, field)

    return check_array


def _map(schema: Schema) -> Checker:
    keys = checker_of(schema.key_schema) if schema.key_schema else None
    values = checker_of(schema.value_schema) if schema.value_schema else None

    def check_map(value: Value, field: str) -> None:
        if not isinstance(value, dict):
            _refuse(schema, value, field)
        if keys:
            for key in value:
                keys(key, field)
        if values:
            for item in value.values():
                values(item, field)

    return check_map


def _struct(schema: Schema) -> Checker:
    names = frozenset(schema.by_name)
    # A field with a default may be null, too.
    checks = [
        (f.name, checker_of(f.schema) if f.schema.default is None else _nullable(_compile_required(f.schema)))
        for f in schema.fields
    ]

    def check_struct(value: Value, field: str) -> None:
        if not isinstance(value, dict):
            _refuse(schema, value, field)
        if not names.issuperset(value):
            unknown = min(str(key) for key in value if key not in names)
            raise DataError(f"{unknown} is not a valid field name")
        get = value.get
        for name, check_field in checks:
            check_field(get(name), name)

    return check_struct
