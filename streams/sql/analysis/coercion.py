"""Values of Python as values of a column's type, as INSERT INTO ... VALUES converts them."""

import base64
import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Final

from streams.model import types
from streams.model.types import SqlType
from streams.sql.analysis.literals import time_ms
from streams.sql.errors import TypeProblem

_RANGES: Final = {types.INTEGER: 2**31, types.BIGINT: 2**63}
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def coerced(value: object, kind: SqlType) -> object:
    """The value as one of a type; TypeProblem if it is none."""
    if value is None:
        return None
    match kind:
        case types.Array(element):
            if isinstance(value, list):
                return [coerced(item, element) for item in value]
        case types.Map(key, item_kind):
            if isinstance(value, Map):
                return {coerced(name, key): coerced(item, item_kind) for name, item in value.entries.items()}
        case types.Struct():
            if isinstance(value, dict):
                return _struct(value, kind)
        case types.Decimal():
            return _decimal(value, kind)
        case types.Primitive():
            return _PRIMITIVES[kind](value)
    raise refused(value, kind)


class Map:
    """The value of MAP(...), which is not a STRUCT."""

    def __init__(self, entries: Mapping[object, object]) -> None:
        self.entries = dict(entries)


def refused(value: object, kind: SqlType) -> TypeProblem:
    """That a value is not one of a type."""
    return TypeProblem(f"Expected type {kind} for the field, but {_shown(value)} ({type_name(value)}) is none")


def _shown(value: object) -> str:
    text = str(value.entries if isinstance(value, Map) else value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def type_name(value: object) -> str:
    """The first word of a value's type."""
    if isinstance(value, int) and not isinstance(value, bool):
        return "INTEGER" if -(2**31) <= value < 2**31 else "BIGINT"
    return _TYPE_NAMES.get(type(value), "MAP")


_TYPE_NAMES: Final[Mapping[type, str]] = {
    bool: "BOOLEAN",
    float: "DOUBLE",
    Decimal: "DECIMAL",
    str: "STRING",
    bytes: "BYTES",
    datetime: "TIMESTAMP",
    date: "DATE",
    time: "TIME",
    list: "ARRAY",
    dict: "STRUCT",
}


def _struct(value: dict[object, object], kind: types.Struct) -> dict[str, object]:
    unknown = [name for name in value if isinstance(name, str) and kind.field(name) is None]
    if unknown:
        raise TypeProblem(f"{kind} has no field `{unknown[0]}`")
    return {field.name: coerced(value.get(field.name), field.type) for field in kind.fields}


def _decimal(value: object, kind: types.Decimal) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str | float):
        raise refused(value, kind)
    try:
        number = Decimal(str(value).strip())
        exact = number.quantize(Decimal(1).scaleb(-kind.scale))
    except InvalidOperation as error:
        raise refused(value, kind) from error
    if exact != number or len(exact.as_tuple().digits) > kind.precision:
        raise TypeProblem(f"{value} does not fit into {kind}")
    return exact


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value:
        word = value.lower()
        if any(one.startswith(word) for one in ("true", "yes")):
            return True
        if any(one.startswith(word) for one in ("false", "no")):
            return False
    raise refused(value, types.BOOLEAN)


def _integer(kind: types.Primitive) -> Callable[[object], int]:
    limit = _RANGES[kind]

    def convert(value: object) -> int:
        try:
            number = int(value) if isinstance(value, int | str) and not isinstance(value, bool) else None
        except ValueError:
            number = None
        if number is None or not -limit <= number < limit:
            raise refused(value, kind)
        return number

    return convert


def _double(value: object) -> float:
    if isinstance(value, int | float | Decimal | str) and not isinstance(value, bool):
        try:
            return float(value)
        except ValueError:
            pass
    raise refused(value, types.DOUBLE)


def to_text(value: object) -> str:
    """A value as CAST writes it."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _double_text(value)
        case Decimal():
            return f"{value:f}"
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}"
        case date() | time():
            return value.isoformat()
        case _:
            raise refused(value, types.STRING)


def _double_text(value: float) -> str:
    """A double as Java writes it."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    number = Decimal(repr(value))
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = f"{number:f}"
        return text if "." in text else f"{text}.0"
    sign, digits, exponent = number.normalize().as_tuple()
    shown = "".join(map(str, digits))
    return f"{'-' if sign else ''}{shown[0]}.{shown[1:] or '0'}E{len(digits) - 1 + int(exponent)}"


def _bytes(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except ValueError:  # also of binascii
            pass
    raise refused(value, types.BYTES)


def _time(value: object) -> time:
    if isinstance(value, time):
        return value
    if isinstance(value, str):
        try:
            found = time.fromisoformat(value)
            return found.replace(microsecond=found.microsecond // 1000 * 1000)
        except ValueError:
            pass
    raise refused(value, types.TIME)


def _date(value: object) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise refused(value, types.DATE)


def _timestamp(value: object) -> datetime:
    match value:
        case datetime():
            return value
        case date():
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        case str():
            return at_ms(time_ms(value))
        case _:
            raise refused(value, types.TIMESTAMP)


def at_ms(milliseconds: int) -> datetime:
    """The time so many milliseconds after the epoch."""
    return EPOCH + timedelta(milliseconds=milliseconds)


_PRIMITIVES: Final[Mapping[SqlType, Callable[[object], object]]] = {
    types.BOOLEAN: _boolean,
    types.INTEGER: _integer(types.INTEGER),
    types.BIGINT: _integer(types.BIGINT),
    types.DOUBLE: _double,
    types.STRING: to_text,
    types.BYTES: _bytes,
    types.TIME: _time,
    types.DATE: _date,
    types.TIMESTAMP: _timestamp,
}
