"""Values of users' functions: what Arrow gives becomes Python's values, and what functions return is checked."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Context, InvalidOperation
from decimal import Decimal as Number
from typing import Any, Final, TypeAlias

from streams.model.types import Array, Decimal, Map, Name, Primitive, SqlType, Struct, bounded, contains

Convert: TypeAlias = Callable[[Any], Any]


def same(value: Any) -> Any:
    """Nothing to do."""
    return value


def from_arrow(kind: SqlType) -> Convert:
    """What makes values of Python of what Arrow's `to_pylist` gives, whose maps are lists of pairs."""
    if not contains(kind, Map):
        return same
    match kind:
        case Array(element):
            convert = from_arrow(element)
            return lambda value: None if value is None else [convert(item) for item in value]
        case Map(_, of):
            convert = from_arrow(of)
            return lambda value: None if value is None else {key: convert(item) for key, item in value}
        case Struct(fields):
            converts = {field.name: from_arrow(field.type) for field in fields}
            return lambda value: None if value is None else {name: one(value[name]) for name, one in converts.items()}
        case _:
            return same


def checked(kind: SqlType) -> Convert:
    """What returns a value as one of a type; it raises TypeError, ValueError or ArithmeticError if it is none."""
    inside = _check(kind)
    return lambda value: None if value is None else inside(value)


def _check(kind: SqlType) -> Convert:
    match kind:
        case Primitive(name):
            return _CHECKS[name]
        case Decimal():
            return _decimal_check(bounded(kind.precision, kind.scale))
        case Array(element):
            item = checked(element)
            return lambda value: [item(one) for one in _items(value)]
        case Map(key, of):
            key_check, value_check = _check(key), checked(of)
            return lambda value: {key_check(one): value_check(item) for one, item in _mapping(value).items()}
        case Struct(fields):
            checks = {field.name: checked(field.type) for field in fields}
            return lambda value: {name: check(_mapping(value).get(name)) for name, check in checks.items()}


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"{type(value).__name__} is no list")
    return value


def _mapping(value: Any) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{type(value).__name__} is no dict")
    return value


def _decimal_check(kind: Decimal) -> Convert:
    context = Context(prec=kind.precision, traps=[InvalidOperation])
    step = Number(1).scaleb(-kind.scale)

    def check(value: Any) -> Number:
        if not isinstance(value, int | Number) or isinstance(value, bool):
            raise TypeError(f"{type(value).__name__} is no decimal")
        return context.quantize(Number(value), step)

    return check


def _of(*classes: type) -> Convert:
    def check(value: Any) -> Any:
        if not isinstance(value, classes):
            raise TypeError(f"{type(value).__name__} is not {classes[0].__name__}")
        return value

    return check


def _integer(bits: int) -> Convert:
    half = 1 << (bits - 1)

    def check(value: Any) -> int:
        # Numbers of NumPy are integers too, but no `int`.
        number = value.__index__() if hasattr(value, "__index__") and not isinstance(value, bool) else None
        if number is None or not -half <= number < half:
            raise ValueError(f"{value!r} is no integer of {bits} bits")
        return int(number)

    return check


def _double(value: Any) -> float:
    if isinstance(value, bool | str | bytes):
        raise TypeError(f"{value!r} is no number")
    return float(value)


def _date(value: Any) -> date:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise TypeError(f"{value!r} is no date")
    return value


def _timestamp(value: Any) -> datetime:
    if not isinstance(value, datetime):
        raise TypeError(f"{value!r} is no datetime")
    aware = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    return aware.replace(microsecond=aware.microsecond // 1000 * 1000)


def _time(value: Any) -> time:
    if not isinstance(value, time):
        raise TypeError(f"{value!r} is no time")
    return value.replace(microsecond=value.microsecond // 1000 * 1000, tzinfo=None)


def _bytes(value: Any) -> bytes:
    return bytes(_of(bytes, bytearray, memoryview)(value))


_CHECKS: Final[Mapping[Name, Convert]] = {
    Name.BOOLEAN: _of(bool),
    Name.INTEGER: _integer(32),
    Name.BIGINT: _integer(64),
    Name.DOUBLE: _double,
    Name.STRING: _of(str),
    Name.BYTES: _bytes,
    Name.TIME: _time,
    Name.DATE: _date,
    Name.TIMESTAMP: _timestamp,
}
