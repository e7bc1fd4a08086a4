"""Declared columns: names, keys, headers."""

from collections.abc import Iterator, Sequence
from typing import Final

from streams.sql.language.checks.names import check_column_name
from streams.sql.language.checks.problem import Problem, at
from streams.sql.language.checks.types import contains_map, repeated
from streams.sql.language.tree.node import Identifier
from streams.sql.language.tree.statements import Column, ColumnRole, SourceKind
from streams.sql.language.tree.types import ArrayType, FieldType, Primitive, PrimitiveType, StructType

_HEADERS: Final = ArrayType(
    StructType(
        (
            FieldType(Identifier("KEY"), PrimitiveType(Primitive.STRING)),
            FieldType(Identifier("VALUE"), PrimitiveType(Primitive.BYTES)),
        )
    )
)
KEYS: Final = frozenset({ColumnRole.KEY, ColumnRole.PRIMARY_KEY})


def check_columns(kind: SourceKind, columns: Sequence[Column]) -> Iterator[Problem]:
    """The columns of a stream or table."""
    yield from repeated(
        [column.name for column in columns], "Column {} is declared twice. Rename or remove one of the two."
    )
    for column in columns:
        yield from check_column_name(column.name)
        yield from _key(kind, column)
        yield from _header_type(column)
    yield from _headers(columns)


def _key(kind: SourceKind, column: Column) -> Iterator[Problem]:
    name = column.name.name
    if kind is SourceKind.TABLE and column.role is ColumnRole.KEY:
        yield at(
            column, f"Column {name} is a 'KEY' column, and tables have a PRIMARY KEY. Write {name} ... PRIMARY KEY."
        )
    elif kind is SourceKind.STREAM and column.role is ColumnRole.PRIMARY_KEY:
        yield at(
            column,
            f"Column {name} is a 'PRIMARY KEY' column, and streams have a KEY, since keys repeat in them. "
            f"Write {name} ... KEY.",
        )
    if column.role in KEYS and contains_map(column.type):
        yield at(
            column.type, "A key cannot hold a MAP, whose entries have no order. Use a STRUCT, or an ARRAY of STRUCTs."
        )


def _header_type(column: Column) -> Iterator[Problem]:
    if column.role is ColumnRole.HEADERS and column.type != _HEADERS:
        message = (
            "A HEADERS column has the type ARRAY<STRUCT<KEY STRING, VALUE BYTES>>. For one header, write "
            "BYTES HEADER('key')."
        )
        yield at(column, message)
    if column.role is ColumnRole.HEADER and column.type != PrimitiveType(Primitive.BYTES):
        yield at(column, "A HEADER('key') column has the type BYTES.")


def _headers(columns: Sequence[Column]) -> Iterator[Problem]:
    has_all = False
    seen: set[str | None] = set()
    for column in columns:
        if column.role not in {ColumnRole.HEADERS, ColumnRole.HEADER}:
            continue
        if has_all or (seen and column.role is ColumnRole.HEADERS):
            yield at(column, "One HEADERS column holds all headers. Remove this column or the other one.")
        elif column.role is ColumnRole.HEADER and column.header in seen:
            yield at(column, f"Header {column.header!r} has a column already. Remove one of the two.")
        has_all = has_all or column.role is ColumnRole.HEADERS
        seen.add(column.header)
