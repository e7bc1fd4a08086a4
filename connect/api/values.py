"""Values as text, as Java writes them: what headers, Cast, InsertHeader and StringConverter share."""

import base64
import datetime as dt
import math
import struct
from collections.abc import Iterable, Iterator
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
    """What Java's `toString` gives: `Struct{a=1,b=x}`, `{a=1, b=2}`, `[1, 2]`, `1.0E10`; of bytes their base64."""
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
    return value if type(value) is str else "".join(_literal_parts(schema, value))


def base64_text(data: bytes | bytearray | memoryview) -> str:
    """Bytes as text."""
    return base64.b64encode(data).decode("ascii")


def number_text(schema: Schema | None, value: float) -> str:
    """A FLOAT32 or FLOAT64 as Java writes it: `1.0`, `1.0E10`, `NaN`, `-Infinity`."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    digits = _shortest_float32(value) if schema and schema.type is Type.FLOAT32 else _shortest(value)
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return _plain(digits)
    return _scientific(digits)


def temporal_text(value: dt.date | dt.time) -> str:
    """A Date, Time or Timestamp in the ISO form that Kafka Connect chooses by the value.

    A Timestamp at midnight is written as a date, one within the first day of 1970 as a time.
    """
    if isinstance(value, dt.datetime):
        return _timestamp_text(value)
    if isinstance(value, dt.time):
        return f"{value.isoformat(timespec='milliseconds')[:12]}Z"
    return value.isoformat()


def _timestamp_text(value: dt.datetime) -> str:
    moment = value.astimezone(dt.UTC) if value.tzinfo else value.replace(tzinfo=dt.UTC)
    if dt.timedelta() <= moment - _EPOCH < _DAY:
        return temporal_text(moment.time())
    if moment.time() == _MIDNIGHT:
        return moment.date().isoformat()
    return f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


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


def _literal_parts(schema: Schema | None, value: Value) -> Iterator[str]:
    if isinstance(value, dict):
        yield from _joined("{", map(_entry, _entries(schema, value)), "}")
    elif isinstance(value, (list, tuple)):
        inner = schema.value_schema if schema else None
        yield from _joined("[", (_literal_parts_embedded(inner, item) for item in value), "]")
    else:
        yield _scalar_text(schema, value)


def _literal_parts_embedded(schema: Schema | None, value: Value) -> Iterator[str]:
    if isinstance(value, str):
        return iter((_quoted(value),))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return iter((_quoted(base64_text(value)),))
    return _literal_parts(schema, value)


def _entries(schema: Schema | None, value: dict[Value, Value]) -> Iterator[tuple[Iterator[str], Iterator[str]]]:
    if schema is not None and schema.type is Type.STRUCT:
        for field in schema.fields:
            yield iter((_quoted(field.name),)), _literal_parts_embedded(field.schema, value.get(field.name))
        return
    keys, values = (schema.key_schema, schema.value_schema) if schema else (None, None)
    for key, item in value.items():
        yield _literal_parts_embedded(keys, key), _literal_parts_embedded(values, item)


def _entry(parts: tuple[Iterator[str], Iterator[str]]) -> Iterator[str]:
    key, value = parts
    yield from key
    yield ":"
    yield from value


def _joined(begin: str, items: Iterable[Iterator[str]], end: str) -> Iterator[str]:
    yield begin
    for place, item in enumerate(items):
        if place:
            yield ","
        yield from item
    yield end


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _shortest(value: float) -> str:
    """As Python has it; but Java, where one digit would do, takes the two that are nearest."""
    nearest = f"{value:.2g}"
    return nearest if float(nearest) == value else repr(value)


def _shortest_float32(value: float) -> str:
    """The fewest digits that tell this number from every other of 32 bits."""
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


def _plain(digits: str) -> str:
    text = format(Decimal(digits), "f")
    return text if "." in text else f"{text}.0"


def _scientific(digits: str) -> str:
    sign, figures, exponent = Decimal(digits).as_tuple()
    significant = "".join(map(str, figures)).rstrip("0") or "0"
    power = len(figures) - 1 + int(exponent)
    return f"{'-' if sign else ''}{significant[0]}.{significant[1:] or '0'}E{power}"
