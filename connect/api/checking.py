"""Whether a value is what its schema says; and the schema of a value that came without one."""

import datetime as dt
from collections.abc import Callable, Collection, Sequence
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
"""Takes a value and what to call it; raises DataError."""

_MOST_CHECKERS: Final = 1000
_MOST_NESTED: Final = 100
_INTEGER_BITS: Final = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
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
    """Raise DataError when a value does not fit its schema; `field` is what to call it. Without a schema all fits."""
    if schema is not None:
        checker_of(schema)(value, field)


def checker_of(schema: Schema) -> Checker:
    """What `check` does for one schema, for those who call it often."""
    checker = _checkers.get(schema)
    if checker is None:
        checker = _compile(schema)
        if len(_checkers) >= _MOST_CHECKERS:
            _checkers.clear()
        _checkers[schema] = checker
    return checker


def schema_of(value: Value, *, _depth: int = 0) -> Schema | None:
    """The schema of a value that came without one; None for null and where the parts have nothing in common."""
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


def _compile(schema: Schema) -> Checker:
    required = _compile_required(schema)
    return _nullable(required) if schema.optional else required


def _nullable(required: Checker) -> Checker:
    def check_nullable(value: Value, field: str) -> None:
        if value is not None:
            required(value, field)

    return check_nullable


def _compile_required(schema: Schema) -> Checker:
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name](schema)
    if schema.type in _INTEGER_BITS:
        return _integer(schema)
    if schema.type in _PLAIN:
        return _plain(schema)
    return {Type.ARRAY: _array, Type.MAP: _map, Type.STRUCT: _struct}[schema.type](schema)


def _refuse(schema: Schema, value: Value, field: str) -> NoReturn:
    told = f': "{field}"' if field else ""
    if value is None:
        raise DataError(f"Invalid value: null used for required field{told}, schema type: {schema.type.name}")
    place = f" for field{told}" if field else ""
    raise DataError(f"Invalid object for schema type {_name(schema)}: {_shown(value)}{place}")


def _name(schema: Schema) -> str:
    return f"{schema.type.name} ({schema.name})" if schema.name else schema.type.name


def _shown(value: Value) -> str:
    """The kind of a value; the value itself, which may be secret or long, only when it is a whole number."""
    return f"{type(value).__name__} {value}"[:60] if type(value) is int else type(value).__name__


def _integer(schema: Schema) -> Checker:
    high = 1 << (_INTEGER_BITS[schema.type] - 1)
    low = -high

    def check_integer(value: Value, field: str) -> None:
        if type(value) is not int or not low <= value < high:
            _refuse(schema, value, field)

    return check_integer


_PLAIN: Final[dict[Type, tuple[type, ...]]] = {
    Type.FLOAT32: (float,),
    Type.FLOAT64: (float,),
    Type.BOOLEAN: (bool,),
    Type.STRING: (str,),
    Type.BYTES: (bytes, bytearray, memoryview),
}


def _plain(schema: Schema) -> Checker:
    allowed = _PLAIN[schema.type]
    usual = allowed[0]

    def check_plain(value: Value, field: str) -> None:
        if type(value) is not usual and not isinstance(value, allowed):
            _refuse(schema, value, field)

    return check_plain


def _decimal(schema: Schema) -> Checker:
    scale = scale_of(schema)

    def check_decimal(value: Value, field: str) -> None:
        if not isinstance(value, Decimal):
            _refuse(schema, value, field)
        unscaled(value, scale)

    return check_decimal


def _date(schema: Schema) -> Checker:
    def check_date(value: Value, field: str) -> None:
        if not isinstance(value, dt.date):
            _refuse(schema, value, field)
        days_of(value)

    return check_date


def _time(schema: Schema) -> Checker:
    def check_time(value: Value, field: str) -> None:
        if not isinstance(value, dt.time):
            _refuse(schema, value, field)

    return check_time


def _timestamp(schema: Schema) -> Checker:
    def check_timestamp(value: Value, field: str) -> None:
        if not isinstance(value, dt.datetime):
            _refuse(schema, value, field)
        milliseconds_of(value)

    return check_timestamp


_LOGICAL: Final[dict[str | None, Callable[[Schema], Checker]]] = {
    DECIMAL_NAME: _decimal,
    DATE_NAME: _date,
    TIME_NAME: _time,
    TIMESTAMP_NAME: _timestamp,
}


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
    checks = [(field.name, _field(field.schema)) for field in schema.fields]

    def check_struct(value: Value, field: str) -> None:
        if not isinstance(value, dict):
            _refuse(schema, value, field)
        if not names.issuperset(value):
            raise DataError(f"{_unknown(value, schema)} is not a valid field name")
        get = value.get
        for name, check_field in checks:
            check_field(get(name), name)

    return check_struct


def _field(schema: Schema) -> Checker:
    """A field may be null when it has a default, too."""
    if schema.default is None:
        return checker_of(schema)
    return _nullable(_compile_required(schema))


def _unknown(value: dict[Value, Value], schema: Schema) -> str:
    unknown: Sequence[str] = sorted(str(key) for key in value if key not in schema.by_name)
    return unknown[0]
