"""Values of SQL as JSON, in the form in which the REST API gives them out, and back.

Decimals are numbers, bytes base64, dates and times texts of ISO 8601 in milliseconds, as ksqlDB's clients expect them.
"""

import base64
import binascii
import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal as PythonDecimal
from functools import lru_cache
from typing import Any, Final, TypeAlias

from streams.formats.fitting import Convert, array_reader, map_reader, nullable, refuse, struct_reader
from streams.formats.numbers import fit_decimal, parse_decimal
from streams.model.types import Array, Decimal, Map, Name, Primitive, SqlType, Struct

Json: TypeAlias = Any
"""None, bool, int, float, Decimal (a number with all its digits), str, list and dict."""


def to_json(value: Any, kind: SqlType) -> Json:
    """A value as JSON; write it with `msgspec.json.Encoder(decimal_format="number")`."""
    return None if value is None else _writer(kind)(value)


def from_json(json: Json, kind: SqlType) -> Any:
    """The value of JSON; raises ValueError if it is not one of the type."""
    return None if json is None else _reader(kind)(json)


@lru_cache(maxsize=1000)
def _writer(kind: SqlType) -> Convert:
    match kind:
        case Array(element):
            item = nullable(_writer(element))
            return lambda value: [item(part) for part in value]
        case Map(key, content):
            item = nullable(_writer(content))
            text = _key_writer(key)
            return lambda value: {text(name): item(part) for name, part in value.items()}
        case Struct(fields):
            parts = [(field.name, nullable(_writer(field.type))) for field in fields]
            return lambda value: {name: part(value.get(name)) for name, part in parts}
        case Primitive(name):
            return _WRITERS.get(name, _same)
        case Decimal():
            return _same


def _key_writer(kind: SqlType) -> Convert:
    write = _writer(kind)

    def text(value: Any) -> str:
        found = write(value)
        return found if isinstance(found, str) else str(found)

    return text


@lru_cache(maxsize=1000)
def _reader(kind: SqlType) -> Convert:
    match kind:
        case Array(element):
            return array_reader(kind, _reader(element))
        case Map(key, content):
            return map_reader(kind, _reader(key), _reader(content))
        case Struct():
            return struct_reader(kind, _reader)
        case Decimal(precision, scale):
            return lambda json: fit_decimal(_exact(json, kind), precision, scale)
        case Primitive(name):
            read = _READERS.get(name)
            return (lambda json: refuse(kind, json)) if read is None else (lambda json: read(json, kind))


def _same(value: Any) -> Any:
    return value


def _exact(json: Json, kind: SqlType) -> PythonDecimal:
    if isinstance(json, PythonDecimal):
        return json
    if isinstance(json, str):
        return parse_decimal(json)
    if isinstance(json, bool) or not isinstance(json, int | float):
        refuse(kind, json)
    return PythonDecimal(repr(json)) if isinstance(json, float) else PythonDecimal(json)


def _integer(bits: int) -> Callable[[Json, SqlType], Any]:
    limit = 1 << (bits - 1)

    def read(json: Json, kind: SqlType) -> int:
        if json.__class__ is not int:
            refuse(kind, json)
        if not -limit <= json < limit:
            raise ValueError(f"{json} is out of the range of {kind}")
        return int(json)

    return read


def _double(json: Json, kind: SqlType) -> float:
    if isinstance(json, bool) or not isinstance(json, int | float | PythonDecimal):
        refuse(kind, json)
    try:
        return float(json)
    except OverflowError:
        raise ValueError(f"the number is out of the range of {kind}") from None


def _only(class_: type) -> Callable[[Json, SqlType], Any]:
    return lambda json, kind: json if json.__class__ is class_ else refuse(kind, json)


def _bytes(json: Json, kind: SqlType) -> bytes:
    if json.__class__ is not str:
        refuse(kind, json)
    try:
        return base64.b64decode(json, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"BYTES are written as base64: {error}") from None


def _iso(parse: Callable[[str], Any], form: str) -> Callable[[Json, SqlType], Any]:
    def read(json: Json, kind: SqlType) -> Any:
        if json.__class__ is not str:
            refuse(kind, json)
        try:
            return parse(json)
        except ValueError:
            raise ValueError(f"{kind} is written as {form}, not {json!r:.100}") from None

    return read


def _timestamp(text: str) -> dt.datetime:
    found = dt.datetime.fromisoformat(text)
    found = found.replace(tzinfo=dt.UTC) if found.tzinfo is None else found.astimezone(dt.UTC)
    return found.replace(microsecond=found.microsecond // 1000 * 1000)


def _time(text: str) -> dt.time:
    found = dt.time.fromisoformat(text)
    if found.tzinfo is not None:
        raise ValueError("a TIME has no time zone")
    return found.replace(microsecond=found.microsecond // 1000 * 1000)


def time_text(value: dt.time) -> str:
    """A time of day as ISO 8601: seconds and milliseconds only if there are any."""
    if value.microsecond:
        return value.isoformat("milliseconds")
    return value.isoformat("seconds" if value.second else "minutes")


def timestamp_text(value: dt.datetime) -> str:
    """A moment in UTC as ISO 8601 without its zone."""
    return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(timespec="milliseconds")


_WRITERS: Final[dict[Name, Convert]] = {
    Name.BYTES: lambda value: base64.b64encode(value).decode(),
    Name.DATE: lambda value: value.isoformat(),
    Name.TIME: time_text,
    Name.TIMESTAMP: timestamp_text,
    Name.DOUBLE: lambda value: value if math.isfinite(value) else None,
}
_READERS: Final[dict[Name, Callable[[Json, SqlType], Any]]] = {
    Name.BOOLEAN: _only(bool),
    Name.INTEGER: _integer(32),
    Name.BIGINT: _integer(64),
    Name.DOUBLE: _double,
    Name.STRING: _only(str),
    Name.BYTES: _bytes,
    Name.DATE: _iso(dt.date.fromisoformat, "2026-12-31"),
    Name.TIME: _iso(_time, "23:59:59.999"),
    Name.TIMESTAMP: _iso(_timestamp, "2026-12-31T23:59:59.999"),
}
