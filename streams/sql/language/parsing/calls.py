"""Calls of functions, lambdas, and the constructors of arrays, maps and structs."""

from collections.abc import Callable
from typing import TypeAlias

from streams.sql.language.parsing.cursor import Cursor
from streams.sql.language.source import Place
from streams.sql.language.tokens import Kind
from streams.sql.language.tree.expressions import (
    AllRows,
    Argument,
    ArrayConstructor,
    Expression,
    FunctionCall,
    Lambda,
    MapConstructor,
    MapEntry,
    StructConstructor,
    StructEntry,
    UnitArgument,
)
from streams.sql.language.tree.queries import UNITS
from streams.sql.language.words import RESERVED

Parser: TypeAlias = Callable[[Cursor], Expression]
"""How an expression is parsed: the parser of expressions is above this module."""


def parse_call(cursor: Cursor, parse_expression: Parser) -> Expression:
    """name(arguments); COUNT(*)."""
    name = cursor.identifier("a function")
    cursor.expect_symbol("(", where="after the function")
    if cursor.is_symbol("*") and cursor.is_symbol(")", ahead=1):
        star = cursor.advance()
        cursor.advance()
        everything = AllRows(place=Place(star.start, star.end))
        return FunctionCall(name, (everything,), place=cursor.place_from(name.place.start))
    if cursor.is_word("DISTINCT"):
        message = f"{name.name} does not take DISTINCT. To count different values, use COUNT_DISTINCT(column)."
        raise cursor.error_at(cursor.token, message)
    arguments: list[Argument] = []
    while not (not arguments and cursor.is_symbol(")")):
        arguments.append(_argument(cursor, parse_expression))
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")", where=f"after the arguments of {name.name}")
    return FunctionCall(name, tuple(arguments), place=cursor.place_from(name.place.start))


def _argument(cursor: Cursor, parse_expression: Parser) -> Argument:
    token = cursor.token
    if token.kind is Kind.WORD and token.value in UNITS and (cursor.is_symbol(",", ahead=1) or token.value in RESERVED):
        cursor.advance()
        return UnitArgument(UNITS[token.value].value, place=Place(token.start, token.end))
    if _is_lambda(cursor):
        return _lambda(cursor, parse_expression)
    return parse_expression(cursor)


def _is_lambda(cursor: Cursor) -> bool:
    if cursor.is_name() and cursor.is_symbol("=>", ahead=1):
        return True
    if not cursor.is_symbol("("):
        return False
    ahead = 1
    while cursor.is_name(ahead=ahead) and cursor.is_symbol(",", ahead=ahead + 1):
        ahead += 2
    return (
        cursor.is_name(ahead=ahead)
        and cursor.is_symbol(")", ahead=ahead + 1)
        and cursor.is_symbol("=>", ahead=ahead + 2)
    )


def _lambda(cursor: Cursor, parse_expression: Parser) -> Lambda:
    start = cursor.token.start
    parameters = []
    if cursor.accept_symbol("("):
        parameters.append(cursor.identifier("a parameter"))
        while cursor.accept_symbol(","):
            parameters.append(cursor.identifier("a parameter"))
        cursor.expect_symbol(")", where="after the parameters")
    else:
        parameters.append(cursor.identifier("a parameter"))
    cursor.expect_symbol("=>", where="after the parameters")
    body = parse_expression(cursor)
    return Lambda(tuple(parameters), body, place=cursor.place_from(start))


def parse_constructor(cursor: Cursor, parse_expression: Parser) -> Expression | None:
    """ARRAY[...], MAP(...) or STRUCT(...), if one is next."""
    start = cursor.token.start
    if cursor.is_word("ARRAY") and cursor.is_symbol("[", ahead=1):
        return _array(cursor, parse_expression)
    if cursor.is_word("MAP") and cursor.is_symbol("(", ahead=1):
        cursor.advance()
        cursor.advance()
        entries: list[MapEntry] = []
        while not (not entries and cursor.is_symbol(")")):
            at = cursor.token.start
            key = parse_expression(cursor)
            cursor.expect_symbol(":=", where="after the key, as in MAP('a' := 1)")
            entries.append(MapEntry(key, parse_expression(cursor), place=cursor.place_from(at)))
            if not cursor.accept_symbol(","):
                break
        cursor.expect_symbol(")", where="after the entries of the MAP")
        return MapConstructor(tuple(entries), place=cursor.place_from(start))
    if cursor.is_word("STRUCT") and cursor.is_symbol("(", ahead=1):
        return _struct(cursor, parse_expression)
    return None


def _array(cursor: Cursor, parse_expression: Parser) -> Expression:
    start = cursor.advance().start
    cursor.advance()
    items: list[Expression] = []
    while not (not items and cursor.is_symbol("]")):
        items.append(parse_expression(cursor))
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol("]", where="after the elements of the ARRAY")
    return ArrayConstructor(tuple(items), place=cursor.place_from(start))


def _struct(cursor: Cursor, parse_expression: Parser) -> Expression:
    start = cursor.advance().start
    cursor.advance()
    entries: list[StructEntry] = []
    while not (not entries and cursor.is_symbol(")")):
        at = cursor.token.start
        name = cursor.identifier("a field")
        cursor.expect_symbol(":=", where="after the field, as in STRUCT(name := 'a')")
        entries.append(StructEntry(name, parse_expression(cursor), place=cursor.place_from(at)))
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")", where="after the fields of the STRUCT")
    return StructConstructor(tuple(entries), place=cursor.place_from(start))
