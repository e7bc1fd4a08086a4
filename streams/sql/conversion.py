"""Which types become which without a cast, and the types of what is computed from several values."""

from collections.abc import Sequence
from typing import Final

from streams.model.types import (
    BIGINT,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    NULL,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Map,
    Primitive,
    SqlType,
    Struct,
    bounded,
)

_DIGITS: Final = {INTEGER: Decimal(10, 0), BIGINT: Decimal(19, 0)}
_READ_FROM_TEXT: Final = (TIME, DATE, TIMESTAMP, BYTES)


def is_number(kind: SqlType) -> bool:
    """Whether one can calculate with values of a type."""
    return kind in {INTEGER, BIGINT, DOUBLE} or isinstance(kind, Decimal)


def as_decimal(kind: SqlType) -> Decimal | None:
    """The decimal that holds all values of a number's type; None for DOUBLE and for what is no number."""
    if isinstance(kind, Primitive):
        return _DIGITS.get(kind)
    return kind if isinstance(kind, Decimal) else None


def conversion_cost(given: SqlType, wanted: SqlType) -> int | None:
    """How far a type is from another one that its values are converted to where needed; None if they are not."""
    if given == wanted:
        return 0
    if given == NULL:
        return 1
    if given == STRING and wanted in _READ_FROM_TEXT:
        return 5
    match given, wanted:
        case Array(has), Array(element):
            return conversion_cost(has, element)
        case Map(key, value), Map(wanted_key, wanted_value):
            return _sum(conversion_cost(key, wanted_key), conversion_cost(value, wanted_value))
        case Struct(), Struct():
            return _struct_cost(given, wanted)
        case _:
            return _number_cost(given, wanted)


def _number_cost(given: SqlType, wanted: SqlType) -> int | None:
    if not (is_number(given) and is_number(wanted)):
        return None
    if wanted == DOUBLE:
        return 4
    if (given, wanted) == (INTEGER, BIGINT):
        return 1
    has = as_decimal(given)
    if isinstance(wanted, Decimal) and has is not None and _fits(has, wanted):
        return 2 if given != BIGINT else 3
    return None


def _fits(has: Decimal, wanted: Decimal) -> bool:
    return has.scale <= wanted.scale and has.precision - has.scale <= wanted.precision - wanted.scale


def _struct_cost(given: Struct, wanted: Struct) -> int | None:
    if [field.name for field in given.fields] != [field.name for field in wanted.fields]:
        return None
    pairs = zip(given.fields, wanted.fields, strict=True)
    return _sum(*(conversion_cost(has.type, field.type) for has, field in pairs))


def _sum(*costs: int | None) -> int | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


def common_type(types: Sequence[SqlType]) -> SqlType | None:
    """The type of a list of values: numbers are widened, structs get the fields of all; None if there is none."""
    common: SqlType | None = NULL
    for kind in types:
        common = _common(common, kind)
    return common


def _common(one: SqlType | None, other: SqlType) -> SqlType | None:
    if one is None or one == other or other == NULL:
        return one
    if one == NULL:
        return other
    match one, other:
        case Array(first), Array(second):
            element = _common(first, second)
            return None if element is None else Array(element)
        case Map(first_key, first), Map(second_key, second):
            key, value = _common(first_key, second_key), _common(first, second)
            return None if key is None or value is None else Map(key, value)
        case Struct(), Struct():
            return _common_struct(one, other)
        case _:
            return _wider_number(one, other)


def _wider_number(one: SqlType, other: SqlType) -> SqlType | None:
    if not (is_number(one) and is_number(other)):
        return None
    if DOUBLE in {one, other}:
        return DOUBLE
    first, second = as_decimal(one), as_decimal(other)
    if not (isinstance(one, Decimal) or isinstance(other, Decimal)) or first is None or second is None:
        return BIGINT
    scale = max(first.scale, second.scale)
    return bounded(max(first.precision - first.scale, second.precision - second.scale) + scale, scale)


def _common_struct(one: Struct, other: Struct) -> SqlType | None:
    names = list(dict.fromkeys(field.name for field in (*one.fields, *other.fields)))
    fields = []
    for name in names:
        kind = _common(one.field(name) or NULL, other.field(name) or NULL)
        if kind is None:
            return None
        fields.append(Field(name, kind))
    return Struct(tuple(fields))


def decimal_result(operator: str, one: Decimal, other: Decimal) -> Decimal:
    """The type of what two decimals make, which Spark may have to bound."""
    scale = max(one.scale, other.scale)
    whole = one.precision - one.scale, other.precision - other.scale
    match operator:
        case "+" | "-":
            return bounded(scale + max(whole) + 1, scale)
        case "*":
            return bounded(one.precision + other.precision + 1, one.scale + other.scale)
        case "/":
            digits = max(6, one.scale + other.precision + 1)
            return bounded(whole[0] + other.scale + digits, digits)
        case _:
            return bounded(min(whole) + scale, scale)
