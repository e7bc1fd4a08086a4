"""Converts values for the JSON encoder, with one function for each schema."""

import math
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, NoReturn

from connect.api.checking import checker_of
from connect.api.data import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, Schema, Type, Value
from connect.api.errors import DataError
from connect.api.logical import days_of, decimal_bytes, milliseconds_of, milliseconds_of_time, scale_of, unscaled

Json = Any
Writer = Callable[[Value], Json]
"""Turns a value into what msgspec writes as the right JSON (bytes become base64, Decimals numbers)."""

_PLAIN: Final = frozenset({str, int, bool, type(None)})
_FLOAT32: Final = struct.Struct(">f")
_DEPTH_MAX: Final = 200
NOT_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
"""How floats that are not finite are written, by their `repr`."""


def ready(value: Value) -> Json:
    """A value without a schema."""
    return value if _is_ready(value, 0) else _prepare(value, 0)


def _is_ready(value: Value, depth: int) -> bool:
    """Whether a value consists of text keys, plain values, dicts and lists only, as most do."""
    kind = type(value)
    if kind in _PLAIN:
        return True
    if depth <= _DEPTH_MAX and kind is dict:
        for key, item in value.items():
            if type(key) is not str or (type(item) not in _PLAIN and not _is_ready(item, depth + 1)):
                return False
        return True
    if depth <= _DEPTH_MAX and kind is list:
        return all(_is_ready(item, depth + 1) for item in value)
    return kind is float and math.isfinite(value)


def _prepare(value: Value, depth: int) -> Json:
    if depth > _DEPTH_MAX:
        raise DataError(f"a value is nested deeper than {_DEPTH_MAX} levels")
    if value is None or isinstance(value, (str, bool, int, bytes, bytearray, memoryview)):
        return value
    if isinstance(value, float):
        return _number_or_word(value)
    if isinstance(value, dict):
        pairs = [(_prepare(key, depth + 1), _prepare(item, depth + 1)) for key, item in value.items()]
        return dict(pairs) if all(isinstance(key, str) for key in value) else pairs
    if isinstance(value, (list, tuple)):
        return [_prepare(item, depth + 1) for item in value]
    raise DataError(f"class {type(value).__name__} does not have corresponding schema type.")


def _number_or_word(value: float) -> float | str:
    """JSON has no infinity and no NaN: they are written as text, as in Kafka Connect."""
    return value if math.isfinite(value) else NOT_FINITE[str(value)]


class Writers:
    """Makes writers for schemas."""

    def __init__(self, *, numeric_decimals: bool, nulls_become_defaults: bool) -> None:
        self._numeric_decimals = numeric_decimals
        self._nulls_become_defaults = nulls_become_defaults

    def of(self, schema: Schema | None) -> Writer:
        """The writer of one schema."""
        if schema is None:
            return ready
        write = self._present(schema)
        null = self._null(schema, write)
        if null is not None:
            return lambda value: null if value is None else write(value)
        return write if schema.optional is False else lambda value: None if value is None else write(value)

    def _null(self, schema: Schema, write: Writer) -> Json:
        has_default = schema.default is not None and self._nulls_become_defaults
        return write(schema.default) if has_default else None

    def _present(self, schema: Schema) -> Writer:
        if schema.name in _LOGICAL:
            return _refusing_null(_LOGICAL[schema.name])
        if schema.name == DECIMAL_NAME:
            return _refusing_null(self._decimal(schema))
        if schema.type in (Type.FLOAT32, Type.FLOAT64):
            return _number(schema)
        made = {Type.ARRAY: self._array, Type.MAP: self._map, Type.STRUCT: self._struct}.get(schema.type)
        return made(schema) if made else _checked(schema)

    def _decimal(self, schema: Schema) -> Writer:
        scale = scale_of(schema)
        if not self._numeric_decimals:
            return lambda value: decimal_bytes(value, scale)

        def write_number(value: Value) -> Decimal:
            unscaled(value, scale)
            return value  # type: ignore[no-any-return]

        return write_number

    def _array(self, schema: Schema) -> Writer:
        inner = self.of(schema.value_schema)

        def write_array(value: Value) -> Json:
            if not isinstance(value, (list, tuple)):
                _refuse(schema, value)
            return [inner(item) for item in value]

        return write_array

    def _map(self, schema: Schema) -> Writer:
        keys, values = self.of(schema.key_schema), self.of(schema.value_schema)
        is_object = schema.key_schema is not None and schema.key_schema.type is Type.STRING

        def write_map(value: Value) -> Json:
            if not isinstance(value, dict):
                _refuse(schema, value)
            if is_object:
                return {_key_text(keys(key)): values(item) for key, item in value.items()}
            return [(keys(key), values(item)) for key, item in value.items()]

        return write_map

    def _struct(self, schema: Schema) -> Writer:
        fields = [(field.name, self.of(field.schema)) for field in schema.fields]
        names = frozenset(schema.by_name)

        def write_struct(value: Value) -> Json:
            if not isinstance(value, dict):
                _refuse(schema, value)
            if not names.issuperset(value):
                raise DataError(f"{next(key for key in value if key not in names)} is not a valid field name")
            get = value.get
            return {name: write(get(name)) for name, write in fields}

        return write_struct


def _key_text(key: Json) -> str:
    return "null" if key is None else key


def _refuse(schema: Schema, value: Value) -> NoReturn:
    if value is None:
        raise DataError("Conversion error: null value for field that is required and has no default value")
    raise DataError(f"Invalid type for {schema.type.name}: {type(value).__name__}")


def _refusing_null(write: Writer) -> Writer:
    def write_present(value: Value) -> Json:
        if value is None:
            raise DataError("Conversion error: null value for field that is required and has no default value")
        return write(value)

    return write_present


def _checked(schema: Schema) -> Writer:
    """Text, whole numbers, booleans and bytes are written as they are."""
    usual = {Type.STRING: str, Type.BOOLEAN: bool, Type.BYTES: bytes}.get(schema.type)
    check = checker_of(schema.but(optional=False))

    def write_checked(value: Value) -> Json:
        if type(value) is not usual:
            if value is None:
                _refuse(schema, value)
            check(value, "")
        return value

    return write_checked


def _number(schema: Schema) -> Writer:
    is_narrow = schema.type is Type.FLOAT32

    def write_number(value: Value) -> float | str:
        if type(value) is not float:
            _refuse(schema, value)
        if not math.isfinite(value):
            return _number_or_word(value)
        return _shortest(value) if is_narrow else value

    return write_number


def _shortest(value: float) -> float:
    """The number with the fewest digits that is the same in 32 bits: 12.34, not 12.34000015258789."""
    try:
        packed = _FLOAT32.pack(value)
        for digits in (7, 8):
            shorter = float(f"{value:.{digits}g}")
            if _FLOAT32.pack(shorter) == packed:
                return shorter
    except OverflowError:
        return value
    return value


_LOGICAL: Final[dict[str | None, Writer]] = {
    DATE_NAME: days_of,
    TIME_NAME: milliseconds_of_time,
    TIMESTAMP_NAME: milliseconds_of,
}
