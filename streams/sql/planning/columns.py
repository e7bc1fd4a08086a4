"""Whether formats can hold the columns of a stream or table."""

from collections.abc import Sequence
from typing import Final

from streams.model.sources import Column, Format
from streams.model.types import (
    BIGINT,
    BYTES,
    DOUBLE,
    INTEGER,
    STRING,
    Array,
    Map,
    SqlType,
    Struct,
    base_name,
    contains,
)
from streams.sql.analysis.mistakes import mistake
from streams.sql.language.tree.node import Node

_KAFKA: Final = frozenset({INTEGER, BIGINT, DOUBLE, STRING, BYTES})


def check_format(form: Format, columns: Sequence[Column], part: str, node: Node) -> None:
    """Raise StatementError if keys or values (`part`) of these columns cannot be written in a format."""
    if form.name == "NONE" and columns:
        names = ", ".join(f"`{column.name}`" for column in columns)
        message = f"The 'NONE' format can only be used when no columns are defined. Got: {names}. Set {part}_FORMAT."
        raise mistake(node, message)
    if form.name == "KAFKA" and len(columns) > 1:
        names = ", ".join(f"`{column.name}` {column.type}" for column in columns)
        message = (
            f"The 'KAFKA' format only supports a single field. Got: [{names}]. Choose another one with "
            f"{part}_FORMAT = 'JSON'."
        )
        raise mistake(node, message)
    for column in columns:
        kind = column.sql_type
        refused = _refused(form.name, kind)
        if refused is None and part == "KEY" and contains(kind, Map):
            refused = "MAP"
        if refused is not None:
            message = (
                f"The '{form.name}' format does not support type '{refused}', column: `{column.name}`. Choose another "
                f"one with {part}_FORMAT."
            )
            raise mistake(node, message)


def _refused(form: str, kind: SqlType) -> str | None:
    """What in the type a format cannot hold."""
    match form:
        case "KAFKA":
            return None if kind in _KAFKA else base_name(kind)
        case "DELIMITED":
            return base_name(kind) if isinstance(kind, Array | Map | Struct) else None
        case _:
            return _refused_map(kind)


def _refused_map(kind: SqlType) -> str | None:
    """All formats with names for fields need texts as keys of maps."""
    match kind:
        case Map(key, value):
            return str(kind) if key != STRING else _refused_map(value)
        case Array(element):
            return _refused_map(element)
        case Struct(fields):
            return next((found for field in fields if (found := _refused_map(field.type)) is not None), None)
        case _:
            return None
