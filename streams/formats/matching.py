"""Values and columns under the names that a schema has for their fields."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from schema_registry.serdes.logical import rescaled
from streams.formats.errors import SchemaProblem
from streams.formats.fitting import Convert, find_name, nullable
from streams.formats.layout import Layout
from streams.model.types import BIGINT, INTEGER, Array, Decimal, Field, Map, SqlType, Struct


class Match(msgspec.Struct, frozen=True):
    """A field that is written, and the one that it is written as."""

    given: Field
    wanted: Field


def check_fits(layout: Layout, wanted: SqlType) -> None:
    """Raise SchemaProblem if columns have no place in the type of a schema."""
    given = layout.record if layout.is_wrapped else layout.columns[0].sql_type
    _check(given, wanted, "")


def match_fields(given: Struct, wanted: Struct) -> list[Match]:
    """For each field, the one of the same name, whatever its case; raises SchemaProblem."""
    by_name = {field.name: field for field in wanted.fields}
    taken = frozenset(field.name for field in given.fields)
    found: list[Match] = []
    for field in given.fields:
        name = field.name if field.name in by_name else find_name(by_name, field.name, taken)
        if name is None:
            raise SchemaProblem(f"The schema has no field {field.name}.")
        found.append(Match(field, by_name[name]))
    return found


def _check(given: SqlType, wanted: SqlType, path: str) -> None:
    match given, wanted:
        case Struct(), Struct():
            for found in match_fields(given, wanted):
                _check(found.given.type, found.wanted.type, f"{path}.{found.given.name}".lstrip("."))
        case Array(element), Array(other):
            _check(element, other, path)
        case Map(key, value), Map(other_key, other_value):
            _check(key, other_key, path)
            _check(value, other_value, path)
        case Decimal(precision, scale), Decimal(digits, places):
            if scale > places or precision - scale > digits - places:
                raise _mismatch(given, wanted, path)
        case _:
            if given != wanted and (given, wanted) != (INTEGER, BIGINT):
                raise _mismatch(given, wanted, path)


def _mismatch(given: SqlType, wanted: SqlType, path: str) -> SchemaProblem:
    return SchemaProblem(f"The column {path or 'of the value'} is {given}, but the schema has {wanted}.")


def renaming(given: SqlType, wanted: SqlType) -> Convert | None:
    """Makes values of a type with the names of a schema; None if they stay as they are."""
    if given == wanted:
        return None
    match given, wanted:
        case Struct(), Struct():
            return _struct_renaming(match_fields(given, wanted))
        case (Array(element), Array(other)) if (item := renaming(element, other)) is not None:
            part = nullable(item)
            return lambda values: [part(value) for value in values]
        case (Map(_, value), Map(_, other)) if (item := renaming(value, other)) is not None:
            part = nullable(item)
            return lambda values: {key: part(value) for key, value in values.items()}
        case Decimal(), Decimal(_, scale):
            return lambda value: rescaled(value, scale)
        case _:
            return None


def _struct_renaming(matches: Sequence[Match]) -> Convert:
    parts: list[tuple[str, str, Callable[[Any], Any] | None]] = []
    for found in matches:
        convert = renaming(found.given.type, found.wanted.type)
        parts.append((found.given.name, found.wanted.name, None if convert is None else nullable(convert)))

    def rename(value: Any) -> Any:
        return {new: value[old] if convert is None else convert(value[old]) for old, new, convert in parts}

    return rename
