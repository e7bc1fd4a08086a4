"""Statements as they are kept: with everything that they left to defaults and to the registry."""

from collections.abc import Mapping, Sequence

from streams.model import types
from streams.model.sources import Column as SourceColumn
from streams.sql.language.tree import types as tree
from streams.sql.language.tree.expressions import IntegerLiteral, StringLiteral
from streams.sql.language.tree.node import Identifier
from streams.sql.language.tree.statements import Column, ColumnRole, Property


def with_properties(given: Sequence[Property], added: Mapping[str, str | int | None]) -> tuple[Property, ...]:
    """The properties of a WITH clause, and those of `added` that it does not have."""
    names = {item.name for item in given}
    if "FORMAT" in names:
        names |= {"KEY_FORMAT", "VALUE_FORMAT"}
    more = [
        Property(name, StringLiteral(value) if isinstance(value, str) else IntegerLiteral(value))
        for name, value in added.items()
        if name not in names and value is not None
    ]
    return (*given, *more)


def written_columns(columns: Sequence[SourceColumn], role: ColumnRole) -> tuple[Column, ...]:
    """Columns of a source as a statement declares them."""
    return tuple(Column(Identifier(column.name), written_type(column.sql_type), role) for column in columns)


def written_type(kind: types.SqlType) -> tree.Type:
    """A type as a statement has it."""
    match kind:
        case types.Primitive(name):
            return tree.PrimitiveType(tree.Primitive(name.value))
        case types.Decimal(precision, scale):
            return tree.DecimalType(precision, scale)
        case types.Array(element):
            return tree.ArrayType(written_type(element))
        case types.Map(key, value):
            return tree.MapType(written_type(key), written_type(value))
        case types.Struct(fields):
            return tree.StructType(
                tuple(tree.FieldType(Identifier(field.name), written_type(field.type)) for field in fields)
            )
