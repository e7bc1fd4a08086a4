"""Filters of a Spark query as a predicate over the statistics in Delta's log; what cannot be said is left out."""

import datetime as dt
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
)

_OPERATORS: dict[type[Filter], str] = {
    EqualTo: "=",
    EqualNullSafe: "=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}


def file_predicate(filters: Iterable[Filter], schema: pa.Schema) -> str | None:
    """What all rows that are wanted have in common; None when nothing can be said."""
    found = [text for text in (_predicate(item, schema) for item in filters) if text is not None]
    return " AND ".join(found) or None


def _predicate(item: Filter, schema: pa.Schema) -> str | None:
    attribute: tuple[str, ...] = getattr(item, "attribute", ())
    if len(attribute) != 1 or attribute[0] not in schema.names:
        return None
    kind = schema.field(attribute[0]).type
    name = '"' + attribute[0].replace('"', '""') + '"'
    if isinstance(item, IsNull):
        return f"{name} IS NULL"
    if isinstance(item, IsNotNull):
        return f"{name} IS NOT NULL"
    if isinstance(item, In):
        values = [_literal(value, kind) for value in item.value]
        return None if None in values or not values else f"{name} IN ({', '.join(map(str, values))})"
    operator = _OPERATORS.get(type(item))
    literal = _literal(getattr(item, "value", None), kind)
    return None if operator is None or literal is None else f"{name} {operator} {literal}"


def _literal(value: Any, kind: pa.DataType) -> str | None:
    if pa.types.is_integer(kind) and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if pa.types.is_string(kind) and isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if pa.types.is_date(kind) and isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    return None
