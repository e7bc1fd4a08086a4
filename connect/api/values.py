"""Values as text, as Java writes them; for headers, Cast, InsertHeader and StringConverter."""

import base64
import datetime as dt
import math
import struct
from decimal import Decimal
from typing import Final

from connect.api.data import Schema, Type, Value
from connect.api.errors import DataError
from connect.api.literals import parse

__all__ = ["base64_text", "literal_of", "number_text", "parse", "temporal_text", "text_of"]

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY: Final = dt.timedelta(days=1)
_MIDNIGHT: Final = dt.time()
_FLOAT32: Final = struct.Struct(">f")
_PLAIN_FROM: Final = 1e-3
_PLAIN_BELOW: Final = 1e7


def text_of(schema: Schema | None, value: Value) -> str:
    """The result of Java's `toString`: `Struct{a=1,b=x}`, `{a=1, b=2}`, `[1, 2]`, `1.0E10`; bytes as base64."""
    if type(value) is str:
        return value
    if isinstance(value, dict):
        return _dict_text(schema, value)
    if isinstance(value, (list, tuple)):
        inner = schema.value_schema if schema else None
        return f"[{', '.join(text_of(inner, item) for item in value)}]"
    return _scalar_text(schema, value)


def literal_of(schema: Schema | None, value: Value) -> str:
    """The text of a value that `parse` reads back: `{"a":1,"b":"x"}`, `[1,2]`; text by itself is not quoted."""
    return value if type(value) is str else _literal(schema, value)


def base64_text(data: bytes | bytearray | memoryview) -> str:
    """Bytes as text."""
    return base64.b64encode(data).decode("ascii")


def number_text(schema: Schema | None, value: float) -> str:
    """A FLOAT32 or FLOAT64 as Java writes it: `1.0`, `1.0E10`, `NaN`, `-Infinity`."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    digits = _shortest_float32(value) if schema and schema.type is Type.FLOAT32 else _shortest(value)
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        text = format(Decimal(digits), "f")
        return text if "." in text else f"{text}.0"
    sign, figures, exponent = Decimal(digits).as_tuple()
    significant = "".join(map(str, figures)).rstrip("0") or "0"
    power = len(figures) - 1 + int(exponent)
    return f"{'-' if sign else ''}{significant[0]}.{significant[1:] or '0'}E{power}"


def temporal_text(value: dt.date | dt.time) -> str:
    """A Date, Time or Timestamp in the ISO form that Kafka Connect chooses by the value.

    A Timestamp at midnight is written as a date, one within the first day of 1970 as a time.
    """
    if isinstance(value, dt.datetime):
        moment = value.astimezone(dt.UTC) if value.tzinfo else value.replace(tzinfo=dt.UTC)
        if dt.timedelta() <= moment - _EPOCH < _DAY:
            return temporal_text(moment.time())
        if moment.time() == _MIDNIGHT:
            return moment.date().isoformat()
        return f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
    if isinstance(value, dt.time):
        return f"{value.isoformat(timespec='milliseconds')[:12]}Z"
    return value.isoformat()


def _dict_text(schema: Schema | None, value: dict[Value, Value]) -> str:
    if schema is not None and schema.type is Type.STRUCT:
        present = ((field.name, field.schema, value.get(field.name)) for field in schema.fields)
        return f"Struct{{{','.join(f'{n}={text_of(s, v)}' for n, s, v in present if v is not None)}}}"
    keys, values = (schema.key_schema, schema.value_schema) if schema else (None, None)
    return f"{{{', '.join(f'{text_of(keys, k)}={text_of(values, v)}' for k, v in value.items())}}}"


def _scalar_text(schema: Schema | None, value: Value) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number_text(schema, value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64_text(value)
    if isinstance(value, (dt.date, dt.time)):
        return temporal_text(value)
    if isinstance(value, (int, Decimal, str)):
        return str(value)
    raise DataError(f"a value of type {type(value).__name__} has no text in Connect")


def _literal(schema: Schema | None, value: Value) -> str:
    inner = schema.value_schema if schema else None
    if isinstance(value, dict):
        if schema is not None and schema.type is Type.STRUCT:
            pairs = ((_quoted(f.name), _embedded(f.schema, value.get(f.name))) for f in schema.fields)
        else:
            keys = schema.key_schema if schema else None
            pairs = ((_embedded(keys, key), _embedded(inner, item)) for key, item in value.items())
        return f"{{{','.join(f'{key}:{item}' for key, item in pairs)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(_embedded(inner, item) for item in value)}]"
    return _scalar_text(schema, value)


def _embedded(schema: Schema | None, value: Value) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _quoted(base64_text(value))
    return _literal(schema, value)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _shortest(value: float) -> str:
    """Python's shortest text, except that Java writes the nearest two digits if one would do."""
    nearest = f"{value:.2g}"
    return nearest if float(nearest) == value else repr(value)


def _shortest_float32(value: float) -> str:
    """The fewest digits that distinguish this number from every other of 32 bits."""
    try:
        packed = _FLOAT32.pack(value)
    except OverflowError:
        return repr(value)
    exact = _FLOAT32.unpack(packed)[0]
    for digits in range(2, 9):
        text = f"{exact:.{digits}g}"
        if abs(float(text)) < 3.4028236e38 and _FLOAT32.pack(float(text)) == packed:
            return text
    return f"{exact:.9g}"
