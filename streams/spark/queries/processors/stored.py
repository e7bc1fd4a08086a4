"""Values as they are kept in the state of a query: MessagePack, with the types of SQL that it does not have."""

from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

import msgspec

_DECIMAL, _DATE, _TIME = 1, 2, 3
_READ: Final[dict[int, Callable[[str], object]]] = {
    _DECIMAL: Decimal,
    _DATE: date.fromisoformat,
    _TIME: time.fromisoformat,
}


def dump(value: Any) -> bytes:
    """A value, or lists and dicts of values, as bytes."""
    return _ENCODER.encode(_wrapped(value))


def read(data: bytes) -> Any:
    """What was dumped; tuples have become lists."""
    return _DECODER.decode(data)


def _wrapped(value: Any) -> Any:
    match value:
        case list() | tuple():
            return [_wrapped(item) for item in value]
        case dict():
            return {_wrapped(key): _wrapped(item) for key, item in value.items()}
        case Decimal():
            return msgspec.msgpack.Ext(_DECIMAL, str(value).encode())
        case date() if not isinstance(value, datetime):
            return msgspec.msgpack.Ext(_DATE, value.isoformat().encode())
        case time():
            return msgspec.msgpack.Ext(_TIME, value.isoformat().encode())
        case _:
            return value


def _unwrapped(code: int, data: memoryview) -> object:
    return _READ[code](str(data, "ascii"))


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(ext_hook=_unwrapped)
