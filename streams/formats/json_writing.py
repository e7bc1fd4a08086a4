"""Values as JSON documents: null fields are written, decimals are numbers, dates and times the numbers of them."""

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from schema_registry.serdes.logical import days_of, milliseconds_of, milliseconds_of_time
from streams.formats.errors import FormatError
from streams.formats.fitting import Convert, nullable
from streams.formats.numbers import double_text
from streams.model.types import STRING, Array, Decimal, Map, Name, Primitive, SqlType, Struct

encode_json: Final[Callable[[Any], bytes]] = msgspec.json.Encoder(decimal_format="number").encode


def json_writer(kind: SqlType) -> Convert:
    """Makes what `encode_json` writes of values that are not null, as `fitting` makes them."""
    match kind:
        case Array(element):
            item = nullable(json_writer(element))
            return lambda value: [item(part) for part in value]
        case Map(key, content):
            if key != STRING:
                raise FormatError(f"The keys of maps in JSON are STRING, not {key}.")
            item = nullable(json_writer(content))
            return lambda value: {name: item(part) for name, part in value.items()}
        case Struct(fields):
            parts = [(field.name, nullable(json_writer(field.type))) for field in fields]
            return lambda value: {name: part(value[name]) for name, part in parts}
        case Primitive(name):
            return _WRITERS.get(name, _same)
        case Decimal():
            return _same


def _same(value: Any) -> Any:
    return value


def json_double(value: float) -> bytes:
    """A double as Java's libraries write it: numbers that JSON does not have are texts."""
    text = double_text(value)
    return f'"{text}"'.encode() if text[-1] in "Ny" else text.encode()


_WRITERS: Final[Mapping[Name, Convert]] = {
    Name.DOUBLE: lambda value: msgspec.Raw(json_double(value)),
    Name.BYTES: lambda value: base64.b64encode(value).decode(),
    Name.DATE: days_of,
    Name.TIME: milliseconds_of_time,
    Name.TIMESTAMP: milliseconds_of,
}
