"""Values of all origins as values of one type of SQL: what a codec of the registry reads, and what users insert."""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal as PythonDecimal
from typing import Any, Final, NoReturn, TypeAlias

from schema_registry.serdes.logical import days_of, milliseconds_of, milliseconds_of_time
from streams.formats.numbers import double_text, fit_decimal
from streams.model.types import Array, Decimal, Map, Name, SqlType, Struct

Convert: TypeAlias = Callable[[Any], Any]
"""Turns a value that is not null into one of a type; raises Unfit."""

_KINDS: Final[Mapping[type, str]] = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    PythonDecimal: "a number",
    str: "text",
    bytes: "bytes",
    list: "an array",
    dict: "an object",
    dt.date: "a date",
    dt.time: "a time of day",
    dt.datetime: "a timestamp",
}


class Unfit(ValueError):
    """A value is not one of its type; `path` leads to the part of it that is wrong."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.problem = problem
        self.path = path

    def within(self, step: str) -> "Unfit":
        """The same, seen from outside."""
        return Unfit(self.problem, step + self.path)


def mismatch(kind: SqlType, value: Any) -> Unfit:
    """The error about a value of another type."""
    return Unfit(f"expected {kind}, not {_KINDS.get(type(value), type(value).__name__)}")


def refuse(kind: SqlType, value: Any) -> NoReturn:
    """Raise Unfit."""
    raise mismatch(kind, value)


def find_name(names: Iterable[str], wanted: str, taken: frozenset[str]) -> str | None:
    """The first name that is the wanted one but for its case, and is not exactly that of another column."""
    upper = wanted.upper()
    return next((name for name in names if name.upper() == upper and name not in taken), None)


def fitting(kind: SqlType) -> Convert:
    """Makes values of a type: whole numbers widen, all plain values have a text, fields are found in any case."""
    match kind:
        case Decimal():
            return _decimal(kind)
        case Array(element):
            return array_reader(kind, fitting(element))
        case Map(key, value):
            return map_reader(kind, fitting(key), fitting(value))
        case Struct():
            return struct_reader(kind, fitting)
        case _:
            return _plain(kind)


def nullable(convert: Convert) -> Convert:
    """The same for values that may be null."""
    return lambda value: None if value is None else convert(value)


def struct_reader(kind: Struct, of: Callable[[SqlType], Convert]) -> Convert:
    """Makes structs of dicts, whose fields are found in any case; what is missing is null."""
    fields = [(field.name, of(field.type)) for field in kind.fields]
    taken = frozenset(name for name, _ in fields)

    def convert(value: Any) -> Any:
        if value.__class__ is not dict:
            refuse(kind, value)
        made: dict[str, Any] = {}
        for name, part in fields:
            found = value.get(name)
            if found is None and name not in value and len(value):
                other = find_name(value, name, taken)
                found = None if other is None else value[other]
            try:
                made[name] = None if found is None else part(found)
            except ValueError as error:
                raise as_unfit(error).within(f".{name}") from None
        return made

    return convert


def as_unfit(error: ValueError) -> Unfit:
    """Any error about a value as Unfit."""
    return error if isinstance(error, Unfit) else Unfit(str(error))


def array_reader(kind: SqlType, item: Convert) -> Convert:
    """Makes arrays of lists."""

    def convert(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            refuse(kind, value)
        made: list[Any] = []
        for part in value:
            try:
                made.append(None if part is None else item(part))
            except ValueError as error:
                raise as_unfit(error).within(f"[{len(made)}]") from None
        return made

    return convert


def map_reader(kind: SqlType, key: Convert, item: Convert) -> Convert:
    """Makes maps of dicts."""

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            refuse(kind, value)
        made: dict[Any, Any] = {}
        for name, part in value.items():
            if name is None:
                raise Unfit("a key of a map is null")
            try:
                made[key(name)] = None if part is None else item(part)
            except ValueError as error:
                raise as_unfit(error).within(f"[{name!r}]") from None
        return made

    return convert


def _decimal(kind: Decimal) -> Convert:
    def convert(value: Any) -> Any:
        if value.__class__ is int:
            value = PythonDecimal(value)
        if not isinstance(value, PythonDecimal) or not value.is_finite():
            refuse(kind, value)
        return fit_decimal(value, kind.precision, kind.scale)

    return convert


def _plain(kind: SqlType) -> Convert:
    accepted, convert = _PLAIN[kind.name]  # type: ignore[union-attr]  # all other types are matched before

    def fit(value: Any) -> Any:
        if value.__class__ not in accepted:
            refuse(kind, value)
        return convert(value)

    return fit


def integer(bits: int) -> Convert:
    """Numbers, dates and times as whole numbers of so many bits."""
    limit = 1 << (bits - 1)

    def convert(value: Any) -> int:
        number: int = value if value.__class__ is int else _NUMBERS[value.__class__](value)
        if not -limit <= number < limit:
            raise Unfit(f"{number} does not fit into {bits} bits")
        return number

    return convert


def _double(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        raise Unfit("the number is too large for a DOUBLE") from None


def _text(value: Any) -> str:
    if value.__class__ is bool:
        return "true" if value else "false"
    return double_text(value) if value.__class__ is float else str(value)


def _valid_text(value: Any) -> str:
    if value.__class__ is not str:
        return _text(value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Unfit("the text has half a character, which UTF-8 cannot hold") from None
    return str(value)


def _moment(value: Any) -> dt.datetime:
    if value.tzinfo is None:
        raise Unfit("a TIMESTAMP without a time zone")
    moment: dt.datetime = value.astimezone(dt.UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


_NUMBERS: Final[Mapping[type, Convert]] = {
    dt.date: days_of,
    dt.time: milliseconds_of_time,
    dt.datetime: milliseconds_of,
}
_PLAIN: Final[Mapping[Name, tuple[tuple[type, ...], Convert]]] = {
    Name.BOOLEAN: ((bool,), lambda value: value),
    Name.INTEGER: ((int, dt.date, dt.time), integer(32)),
    Name.BIGINT: ((int, dt.date, dt.time, dt.datetime), integer(64)),
    Name.DOUBLE: ((float, int, PythonDecimal), _double),
    Name.STRING: ((str, bool, int, float, PythonDecimal), _valid_text),
    Name.BYTES: ((bytes, bytearray, memoryview), bytes),
    Name.TIME: ((dt.time,), lambda value: value.replace(microsecond=value.microsecond // 1000 * 1000, tzinfo=None)),
    Name.DATE: ((dt.date,), lambda value: value),
    Name.TIMESTAMP: ((dt.datetime,), _moment),
}
