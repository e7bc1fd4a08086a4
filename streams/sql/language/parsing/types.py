"""Types."""

from streams.errors import StatementError
from streams.sql.language.parsing.cursor import Cursor
from streams.sql.language.source import Place
from streams.sql.language.tokens import Kind
from streams.sql.language.tree.node import Identifier
from streams.sql.language.tree.types import (
    PRIMITIVES,
    ArrayType,
    CustomType,
    DecimalType,
    FieldType,
    MapType,
    PrimitiveType,
    StructType,
    Type,
)


def parse_type(cursor: Cursor) -> Type:
    """A type; also `type ARRAY`, an older way to write ARRAY<type>."""
    cursor.enter()
    start = cursor.token.start
    found = _simple(cursor)
    if cursor.is_word("ARRAY"):
        cursor.advance()
        found = ArrayType(found, place=cursor.place_from(start))
        if cursor.is_word("ARRAY"):
            raise cursor.error_at(cursor.token, "Write an array of arrays as ARRAY<ARRAY<...>>.")
    cursor.leave()
    return found


def _simple(cursor: Cursor) -> Type:
    start = cursor.token.start
    if cursor.token.kind is Kind.WORD:
        match cursor.token.value:
            case "ARRAY":
                return _array(cursor, start)
            case "MAP":
                return _map(cursor, start)
            case "STRUCT":
                return _struct(cursor, start)
            case "DECIMAL":
                return _decimal(cursor, start)
            case word if word in PRIMITIVES:
                cursor.advance()
                if word in {"VARCHAR", "STRING"}:
                    _ignore_length(cursor)
                return PrimitiveType(PRIMITIVES[word], place=cursor.place_from(start))
            case _:
                pass
    name = cursor.identifier("a type")
    if cursor.is_symbol("("):
        raise _no_parameters(cursor, name)
    return CustomType(name, place=name.place)


def _array(cursor: Cursor, start: int) -> Type:
    cursor.advance()
    cursor.expect_symbol("<", where="after ARRAY, as in ARRAY<STRING>")
    element = parse_type(cursor)
    cursor.expect_symbol(">", where="after the type of the elements")
    return ArrayType(element, place=cursor.place_from(start))


def _map(cursor: Cursor, start: int) -> Type:
    cursor.advance()
    cursor.expect_symbol("<", where="after MAP, as in MAP<STRING, INTEGER>")
    key = parse_type(cursor)
    cursor.expect_symbol(",", where="after the type of the keys, as in MAP<STRING, INTEGER>")
    value = parse_type(cursor)
    cursor.expect_symbol(">", where="after the type of the values")
    return MapType(key, value, place=cursor.place_from(start))


def _struct(cursor: Cursor, start: int) -> Type:
    cursor.advance()
    if cursor.accept_symbol("<>"):
        return StructType((), place=cursor.place_from(start))
    cursor.expect_symbol("<", where="after STRUCT, as in STRUCT<NAME STRING, AGE INTEGER>")
    fields: list[FieldType] = []
    while not (not fields and cursor.is_symbol(">")):
        at = cursor.token.start
        name = cursor.identifier("a field")
        fields.append(FieldType(name, parse_type(cursor), place=cursor.place_from(at)))
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(">", where="after the fields of the STRUCT")
    return StructType(tuple(fields), place=cursor.place_from(start))


def _decimal(cursor: Cursor, start: int) -> Type:
    cursor.advance()
    cursor.expect_symbol("(", where="after DECIMAL: it needs precision and scale, as in DECIMAL(10, 2)")
    precision = cursor.whole_number("the precision")
    cursor.expect_symbol(",", where="after the precision, as in DECIMAL(10, 2)")
    scale = cursor.whole_number("the scale")
    cursor.expect_symbol(")", where="after the scale")
    return DecimalType(precision, scale, place=cursor.place_from(start))


def _ignore_length(cursor: Cursor) -> None:
    if cursor.is_symbol("("):
        cursor.advance()
        cursor.whole_number("the length")
        cursor.expect_symbol(")", where="after the length")


def _no_parameters(cursor: Cursor, name: Identifier) -> StatementError:
    place = Place(name.place.start, cursor.token.end)
    return StatementError(f"The type {name.name} takes no parameters.", start=place.start, end=place.end)
