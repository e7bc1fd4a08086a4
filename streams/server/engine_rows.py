"""Rows as the engine sends them: JSON, in which decimals are texts so that they keep all their digits."""

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, TypeAlias

from streams.model.types import Array, Map, SqlType, Struct
from streams.model.types import Decimal as DecimalType

Change: TypeAlias = Callable[[Any], Any]


def row_reader(kinds: Iterable[SqlType]) -> Callable[[list[Any]], list[Any]]:
    """A function that makes numbers of the decimals in a row."""
    changes = [(index, change) for index, kind in enumerate(kinds) if (change := _change(kind)) is not None]

    def read(row: list[Any]) -> list[Any]:
        for index, change in changes:
            if row[index] is not None:
                row[index] = change(row[index])
        return row

    return read


def _change(kind: SqlType) -> Change | None:
    """What is to be done with values of a type; None if nothing."""
    match kind:
        case DecimalType():
            return lambda value: Decimal(value) if isinstance(value, str) else value
        case Array(element):
            of_items = _nullable(element)
            return of_items and (lambda value: [of_items(item) for item in value])
        case Map(_, content):
            of_values = _nullable(content)
            return of_values and (lambda value: {name: of_values(item) for name, item in value.items()})
        case Struct(fields):
            of_fields = {field.name: change for field in fields if (change := _nullable(field.type)) is not None}
            if not of_fields:
                return None
            return lambda value: {
                name: of_fields[name](item) if name in of_fields else item for name, item in value.items()
            }
        case _:
            return None


def _nullable(kind: SqlType) -> Change | None:
    change = _change(kind)
    return change and (lambda value: None if value is None else change(value))
