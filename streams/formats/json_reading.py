"""JSON documents as values, with the leniency that ksqlDB's users rely on.

Whole numbers accept any number (its fraction is cut off, its low bits are kept) and text of one; text accepts anything;
decimals must fit without rounding; dates and times are numbers. What is missing is null, what is unknown is ignored.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from decimal import Decimal as PythonDecimal
from typing import Any, Final

import msgspec

from schema_registry.serdes.logical import date_of, time_of, timestamp_of
from streams.formats.errors import FormatError
from streams.formats.fitting import Convert, Unfit, array_reader, map_reader, refuse, struct_reader
from streams.formats.numbers import fit_decimal, parse_decimal, parse_double, parse_integer, wrapped
from streams.model.types import STRING, Array, Decimal, Map, Name, Primitive, SqlType, Struct

Json = Any

_FAULTS: Final = (msgspec.DecodeError, ValueError, RecursionError, ArithmeticError)
_encode: Final = msgspec.json.Encoder(decimal_format="number").encode
_decode_exact: Final = msgspec.json.Decoder(float_hook=PythonDecimal).decode


def decode_json(data: bytes) -> Json:
    """The document, whose numbers keep all their digits: those with a point are decimals. Raises Unfit."""
    try:
        return _decode_exact(data)
    except RecursionError:
        raise Unfit("the data is not JSON: it is nested too deep") from None
    except _FAULTS as error:
        raise Unfit(f"the data is not JSON: {error}") from None


def json_reader(kind: SqlType) -> Convert:
    """Makes values of documents that are not null; raises Unfit."""
    match kind:
        case Array(element):
            return array_reader(kind, json_reader(element))
        case Map(key, value):
            if key != STRING:
                raise FormatError(f"The keys of maps in JSON are STRING, not {key}.")
            return map_reader(kind, lambda name: name, json_reader(value))
        case Struct():
            return struct_reader(kind, json_reader)
        case Decimal(precision, scale):
            return lambda json: fit_decimal(_decimal(json, kind), precision, scale)
        case Primitive(name):
            read = _READERS[name]
            return lambda json: read(json, kind)


def _is_number(json: Json) -> bool:
    return json.__class__ in (int, PythonDecimal, float)


def _decimal(json: Json, kind: SqlType) -> PythonDecimal:
    if json.__class__ is str:
        return parse_decimal(json)
    if not _is_number(json):
        refuse(kind, json)
    return PythonDecimal(repr(json)) if json.__class__ is float else PythonDecimal(json)


def _integer(bits: int) -> Callable[[Json, SqlType], int]:
    limit = 1 << (bits - 1)

    def read(json: Json, kind: SqlType) -> int:
        if json.__class__ is int and -limit <= json < limit:
            return int(json)
        if json.__class__ is str:
            return parse_integer(json, bits)
        return wrapped(json, bits) if _is_number(json) else refuse(kind, json)

    return read


def _double(json: Json, kind: SqlType) -> float:
    if json.__class__ is str:
        return parse_double(json)
    if not _is_number(json):
        refuse(kind, json)
    try:
        return float(json)
    except OverflowError:
        return float("inf") if json > 0 else float("-inf")  # As Java does.


def _boolean(json: Json, kind: SqlType) -> bool:
    return json if json.__class__ is bool else refuse(kind, json)


def _bytes(json: Json, kind: SqlType) -> bytes:
    if json.__class__ is not str:
        refuse(kind, json)
    try:
        return base64.b64decode(json, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Unfit(f"BYTES are written as base64: {error}") from None


def text_of(json: Json) -> str:
    """Any JSON as text: objects as JSON, the items of arrays as text again."""
    if json.__class__ is str:
        return str(json)
    if json.__class__ is bool:
        return "true" if json else "false"
    if json is None:
        return "null"
    try:
        if json.__class__ is list:
            return f"[{', '.join(map(text_of, json))}]"
        return str(json) if _is_number(json) else _encode(json).decode()
    except (RecursionError, ValueError, OverflowError):
        raise Unfit("the value is too large to be text") from None


def _number_of(convert: Convert) -> Callable[[Json, SqlType], Any]:
    """Dates and times, by the number that stands for them."""

    def read(json: Json, kind: SqlType) -> Any:
        return convert(wrapped(json, 64)) if _is_number(json) else refuse(kind, json)

    return read


_READERS: Final[Mapping[Name, Callable[[Json, SqlType], Any]]] = {
    Name.BOOLEAN: _boolean,
    Name.INTEGER: _integer(32),
    Name.BIGINT: _integer(64),
    Name.DOUBLE: _double,
    Name.STRING: lambda json, _: text_of(json),
    Name.BYTES: _bytes,
    Name.DATE: _number_of(date_of),
    Name.TIME: _number_of(time_of),
    Name.TIMESTAMP: _number_of(timestamp_of),
}
