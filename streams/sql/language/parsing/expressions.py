"""Expressions, by precedence: OR, AND, NOT, comparisons, ||, + -, * / %, signs, parts of a value."""

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from streams.sql.language.parsing.calls import parse_call, parse_constructor
from streams.sql.language.parsing.cursor import Cursor
from streams.sql.language.parsing.types import parse_type
from streams.sql.language.source import Place
from streams.sql.language.tokens import NUMBERS, Kind, Token
from streams.sql.language.tree.expressions import (
    Access,
    Arithmetic,
    Between,
    BooleanLiteral,
    Case,
    Cast,
    ColumnReference,
    Comparison,
    Concatenation,
    DecimalLiteral,
    DoubleLiteral,
    ElementAccess,
    Expression,
    FieldAccess,
    InList,
    IntegerLiteral,
    IsDistinct,
    IsNull,
    Like,
    Literal,
    Logical,
    Not,
    NullLiteral,
    Operand,
    Sign,
    StringLiteral,
    When,
)
from streams.sql.language.tree.types import PRIMITIVES

_COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=")
_OPERATORS: Final = frozenset({"||", "+", "-", "*", "/", "%"})
_MAX_DIGITS: Final = 1000
_MIN_BIGINT: Final = -(2**63)
_MAX_BIGINT: Final = 2**63 - 1


def parse_expression(cursor: Cursor) -> Expression:
    """An expression of any kind."""
    cursor.enter()
    start = cursor.token.start
    alternatives: list[Expression] = []
    while True:
        term_start = cursor.token.start
        terms = [_negation(cursor)]
        while cursor.accept("AND"):
            terms.append(_negation(cursor))
        alternatives.append(_chain("AND", terms, cursor.place_from(term_start)))
        if not cursor.accept("OR"):
            break
    cursor.leave()
    return _chain("OR", alternatives, cursor.place_from(start))


def _chain(operator: str, terms: Sequence[Expression], place: Place) -> Expression:
    return terms[0] if len(terms) == 1 else Logical(operator, tuple(terms), place=place)


def _negation(cursor: Cursor) -> Expression:
    starts = []
    while cursor.is_word("NOT"):
        cursor.enter()
        starts.append(cursor.advance().start)
    found = _predicate(cursor)
    for start in reversed(starts):
        cursor.leave()
        found = Not(found, place=cursor.place_from(start))
    return found


def _predicate(cursor: Cursor) -> Expression:
    start = cursor.token.start
    left = parse_value(cursor)
    found = _comparison(cursor, left, start) or _keyword_predicate(cursor, left, start)
    if found is None:
        return left
    if cursor.token.kind is Kind.SYMBOL and cursor.token.value in _COMPARISONS:
        message = "Comparisons cannot follow each other. Join them with AND, or put the first one in parentheses."
        raise cursor.error_at(cursor.token, message)
    return found


def _comparison(cursor: Cursor, left: Expression, start: int) -> Expression | None:
    token = cursor.token
    if token.kind is not Kind.SYMBOL or token.value not in _COMPARISONS:
        return None
    cursor.advance()
    if cursor.is_symbol("="):
        message = "Write = for equality." if token.value == "=" else f"Write {token.value}= without a space."
        raise cursor.error_at(cursor.token, message)
    right = parse_value(cursor)
    return Comparison(token.value, left, right, place=cursor.place_from(start))


def _keyword_predicate(cursor: Cursor, left: Expression, start: int) -> Expression | None:
    if cursor.accept("IS"):
        return _is(cursor, left, start)
    is_negated = cursor.is_word("NOT") and cursor.ahead(1).value in {"BETWEEN", "IN", "LIKE"} and cursor.accept("NOT")
    if cursor.accept("BETWEEN"):
        low = parse_value(cursor)
        cursor.expect("AND", where="after the lower bound of BETWEEN")
        high = parse_value(cursor)
        return Between(left, low, high, is_negated, place=cursor.place_from(start))
    if cursor.accept("IN"):
        cursor.expect_symbol("(", where="after IN, as in IN ('a', 'b')")
        items = [parse_expression(cursor)]
        while cursor.accept_symbol(","):
            items.append(parse_expression(cursor))
        cursor.expect_symbol(")", where="after the values of IN")
        return InList(left, tuple(items), is_negated, place=cursor.place_from(start))
    if cursor.accept("LIKE"):
        pattern = parse_value(cursor)
        escape = cursor.string("the escape character") if cursor.accept("ESCAPE") else None
        return Like(left, pattern, escape, is_negated, place=cursor.place_from(start))
    return None


def _is(cursor: Cursor, left: Expression, start: int) -> Expression:
    is_negated = cursor.accept("NOT")
    if cursor.accept("NULL"):
        return IsNull(left, is_negated, place=cursor.place_from(start))
    if cursor.accept("DISTINCT"):
        cursor.expect("FROM", where="after DISTINCT")
        right = parse_value(cursor)
        return IsDistinct(left, right, is_negated, place=cursor.place_from(start))
    hint = " Compare with = instead." if cursor.is_word("TRUE") or cursor.is_word("FALSE") else ""
    raise cursor.unexpected("Expected NULL or DISTINCT FROM after IS" + (" NOT" if is_negated else ""), hint=hint)


def parse_value(cursor: Cursor) -> Expression:
    """An expression without comparisons: operands between ||, + -, * / %."""
    operands = [_signed(cursor)]
    operators: list[str] = []
    while cursor.token.kind is Kind.SYMBOL and cursor.token.value in _OPERATORS:
        operators.append(cursor.advance().value)
        operands.append(_signed(cursor))
    if cursor.is_word("AT") and cursor.ahead(1).value == "TIME":
        message = "AT TIME ZONE is not supported. Use CONVERT_TZ(timestamp, 'UTC', 'Europe/Lisbon')."
        raise cursor.error_at(cursor.token, message)
    if not operators:
        return operands[0]
    products, sums = _fold(operands, operators, "*/%")
    parts, _ = _fold(products, sums, "+-")
    if len(parts) == 1:
        return parts[0]
    return Concatenation(tuple(parts), place=Place(parts[0].place.start, parts[-1].place.end))


def _fold(operands: Sequence[Expression], operators: Sequence[str], folded: str) -> tuple[list[Expression], list[str]]:
    """Join operands between operators of one precedence; the other operators are left, and what is between them."""
    results: list[Expression] = []
    left: list[str] = []
    first, rest = operands[0], list[Operand]()

    def close() -> None:
        place = Place(first.place.start, rest[-1].place.end if rest else first.place.end)
        results.append(Arithmetic(first, tuple(rest), place=place) if rest else first)

    for operator, operand in zip(operators, operands[1:], strict=True):
        if operator in folded:
            rest.append(Operand(operator, operand, place=operand.place))
        else:
            close()
            left.append(operator)
            first, rest = operand, []
    close()
    return results, left


def _signed(cursor: Cursor) -> Expression:
    token = cursor.token
    if token.kind is Kind.SYMBOL and token.value in {"-", "+"}:
        cursor.advance()
        if token.value == "-" and cursor.token.kind in NUMBERS:
            return _parts(cursor, _number(cursor, start=token.start, sign="-"), token.start)
        cursor.enter()
        operand = _signed(cursor)
        cursor.leave()
        return Sign(token.value, operand, place=cursor.place_from(token.start))
    return _parts(cursor, _primary(cursor), token.start)


def _parts(cursor: Cursor, base: Expression, start: int) -> Expression:
    steps: list[FieldAccess | ElementAccess] = []
    while cursor.token.kind is Kind.SYMBOL:
        at = cursor.token.start
        if cursor.is_symbol("->") and not cursor.is_symbol("*", ahead=1):
            cursor.advance()
            steps.append(FieldAccess(cursor.identifier("a field"), place=cursor.place_from(at)))
        elif cursor.is_symbol("["):
            cursor.advance()
            cursor.enter()
            index = parse_value(cursor)
            cursor.leave()
            cursor.expect_symbol("]", where="after the index")
            steps.append(ElementAccess(index, place=cursor.place_from(at)))
        else:
            break
    return Access(base, tuple(steps), place=cursor.place_from(start)) if steps else base


def _primary(cursor: Cursor) -> Expression:
    token = cursor.token
    if token.kind is Kind.SYMBOL and token.value == "(":
        cursor.advance()
        inside = parse_expression(cursor)
        cursor.expect_symbol(")", where="to close the parenthesis")
        return inside
    literal = accept_literal(cursor)
    if literal is not None:
        return literal
    if cursor.is_word("CASE"):
        return _case(cursor)
    if cursor.is_word("CAST"):
        return _cast(cursor)
    constructor = parse_constructor(cursor, parse_expression)
    if constructor is not None:
        return constructor
    if cursor.is_symbol("(", ahead=1) and token.kind in {Kind.WORD, Kind.NAME}:
        return parse_call(cursor, parse_expression)
    return _column(cursor)


def _column(cursor: Cursor) -> Expression:
    token = cursor.token
    if cursor.ahead(1).kind is Kind.STRING and token.value in {*PRIMITIVES, "DECIMAL", "INTERVAL"}:
        return _typed_literal(cursor)
    name = cursor.identifier("a column or expression")
    if not cursor.is_symbol(".") or cursor.is_symbol("*", ahead=1):
        return ColumnReference(name, place=name.place)
    cursor.advance()
    column = cursor.identifier("a column")
    if cursor.is_symbol("."):
        raise cursor.error_at(cursor.token, "Write -> before the field of a STRUCT, as in orders.address->city.")
    return ColumnReference(column, name, place=cursor.place_from(name.place.start))


def _typed_literal(cursor: Cursor) -> Expression:
    """DECIMAL '1.5'; no other type has such literals."""
    token = cursor.advance()
    text = cursor.string("the value")
    place = cursor.place_from(token.start)
    if token.value == "DECIMAL":
        digits = text.value.strip().removeprefix("-").replace(".", "", 1)
        if digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS:
            return DecimalLiteral(Decimal(text.value.strip()), place=place)
        raise cursor.error_at(token, "Write digits and a point in DECIMAL '...', as in DECIMAL '1.50'.")
    shown = cursor.text[text.place.start : text.place.end]
    if token.value == "INTERVAL":
        raise cursor.error_at(token, "Intervals are not values here. Use TIMESTAMPADD(MINUTES, 5, time).")
    raise cursor.error_at(token, f"Write CAST({shown} AS {token.value}) for a value of this type.")


def _case(cursor: Cursor) -> Expression:
    start = cursor.advance().start
    cursor.enter()
    operand = None if cursor.is_word("WHEN") else parse_value(cursor)
    branches: list[When] = []
    while cursor.is_word("WHEN") or not branches:
        at = cursor.token.start
        cursor.expect("WHEN", where="after CASE")
        condition = parse_expression(cursor)
        cursor.expect("THEN", where="after the condition of WHEN")
        branches.append(When(condition, parse_expression(cursor), place=cursor.place_from(at)))
    cursor.tried("WHEN")
    otherwise = parse_expression(cursor) if cursor.accept("ELSE") else None
    cursor.expect("END", where="to close CASE")
    cursor.leave()
    return Case(operand, tuple(branches), otherwise, place=cursor.place_from(start))


def _cast(cursor: Cursor) -> Expression:
    start = cursor.advance().start
    cursor.expect_symbol("(", where="after CAST, as in CAST(price AS DOUBLE)")
    value = parse_expression(cursor)
    cursor.expect("AS", where="and a type in CAST, as in CAST(price AS DOUBLE)")
    type_ = parse_type(cursor)
    cursor.expect_symbol(")", where="after the type")
    return Cast(value, type_, place=cursor.place_from(start))


def accept_literal(cursor: Cursor) -> Literal | None:
    """A literal without a sign, if one is next."""
    token = cursor.token
    place = Place(token.start, token.end)
    if token.kind is Kind.STRING:
        cursor.advance()
        return StringLiteral(token.value, place=place)
    if token.kind in NUMBERS:
        return _number(cursor, start=token.start)
    if token.kind is Kind.WORD and token.value in {"TRUE", "FALSE"}:
        cursor.advance()
        return BooleanLiteral(token.value == "TRUE", place=place)
    if token.kind is Kind.WORD and token.value == "NULL":
        cursor.advance()
        return NullLiteral(place=place)
    return None


def parse_literal(cursor: Cursor, what: str) -> Literal:
    """A literal, or raise."""
    start = cursor.token.start
    if cursor.is_symbol("-") and cursor.ahead(1).kind in NUMBERS:
        cursor.advance()
        return _number(cursor, start=start, sign="-")
    found = accept_literal(cursor)
    if found is None:
        raise cursor.unexpected(f"Expected text, a number, TRUE or FALSE as {what}", hint=cursor.hint_at_quotes())
    return found


def _number(cursor: Cursor, *, start: int, sign: str = "") -> Literal:
    token = cursor.advance()
    place = Place(start, token.end)
    if len(token.value) > _MAX_DIGITS:
        raise cursor.error_at(token, f"A number has at most {_MAX_DIGITS:,} digits.")
    if token.kind is Kind.INTEGER:
        value = int(sign + token.value)
        if not _MIN_BIGINT <= value <= _MAX_BIGINT:
            message = f"{cursor.written(token)} does not fit into BIGINT. With a point at its end it is a DECIMAL."
            raise cursor.error_at(token, message)
        return IntegerLiteral(value, place=place)
    if token.kind is Kind.DECIMAL:
        return DecimalLiteral(Decimal(sign + token.value), place=place)
    return _double(cursor, token, sign, place)


def _double(cursor: Cursor, token: Token, sign: str, place: Place) -> Literal:
    number = float(sign + token.value)
    if math.isinf(number):
        raise cursor.error_at(token, f"{cursor.written(token)} is too large for a DOUBLE.")
    return DoubleLiteral(number, place=place)
