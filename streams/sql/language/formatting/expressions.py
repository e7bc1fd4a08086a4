"""Expressions, with as few parentheses as they need."""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final

from streams.sql.language.formatting.types import format_name, format_type
from streams.sql.language.tree.expressions import (
    Access,
    AllRows,
    Argument,
    Arithmetic,
    ArrayConstructor,
    Between,
    BooleanLiteral,
    Case,
    Cast,
    ColumnReference,
    Comparison,
    Concatenation,
    DecimalLiteral,
    DoubleLiteral,
    FieldAccess,
    FunctionCall,
    InList,
    IntegerLiteral,
    IsDistinct,
    IsNull,
    Lambda,
    Like,
    Logical,
    MapConstructor,
    Not,
    NullLiteral,
    Sign,
    StringLiteral,
    StructConstructor,
    UnitArgument,
)
from streams.sql.language.variables import escaped


class Level(IntEnum):
    """How strongly the parts of an expression hold together: weaker ones inside stand in parentheses."""

    OR = 1
    AND = 2
    NOT = 3
    PREDICATE = 4
    CONCATENATION = 5
    SUM = 6
    PRODUCT = 7
    SIGN = 8
    PRIMARY = 9


def format_expression(node: Argument, above: Level = Level.OR) -> str:
    """An expression, in parentheses if it holds together more weakly than what it is written into."""
    text = _FORMATS[type(node)](node)
    return f"({text})" if _level(node) < above else text


def format_string(text: str) -> str:
    """A string literal."""
    return "'" + escaped(text).replace("'", "''") + "'"


def _level(node: Argument) -> Level:
    match node:
        case Logical(operator):
            return Level.OR if operator == "OR" else Level.AND
        case Not() | Lambda():
            return Level.NOT
        case Comparison() | Between() | InList() | Like() | IsNull() | IsDistinct():
            return Level.PREDICATE
        case Concatenation():
            return Level.CONCATENATION
        case Arithmetic(_, rest):
            return Level.SUM if rest[0].operator in "+-" else Level.PRODUCT
        case Sign():
            return Level.SIGN
        case IntegerLiteral() | DecimalLiteral() | DoubleLiteral():
            return Level.SIGN if _format_number(node).startswith("-") else Level.PRIMARY
        case _:
            return Level.PRIMARY


def _format_number(node: IntegerLiteral | DecimalLiteral | DoubleLiteral) -> str:
    match node:
        case IntegerLiteral(number):
            return str(number)
        case DecimalLiteral(decimal):
            text = format(decimal, "f")
            return text if "." in text else text + "."
        case DoubleLiteral(double):
            text = repr(double).upper()
            return text if "E" in text else text + "E0"


def _not(negated: bool) -> str:
    return "NOT " if negated else ""


def _logical(node: Logical) -> str:
    inside = Level(_level(node) + 1)
    return f" {node.operator} ".join([format_expression(term, inside) for term in node.terms])


def _comparison(node: Comparison) -> str:
    left = format_expression(node.left, Level.CONCATENATION)
    return f"{left} {node.operator} {format_expression(node.right, Level.CONCATENATION)}"


def _between(node: Between) -> str:
    value = format_expression(node.value, Level.CONCATENATION)
    low = format_expression(node.low, Level.CONCATENATION)
    high = format_expression(node.high, Level.CONCATENATION)
    return f"{value} {_not(node.is_negated)}BETWEEN {low} AND {high}"


def _in_list(node: InList) -> str:
    value = format_expression(node.value, Level.CONCATENATION)
    return f"{value} {_not(node.is_negated)}IN ({', '.join([format_expression(item) for item in node.items])})"


def _like(node: Like) -> str:
    value = format_expression(node.value, Level.CONCATENATION)
    pattern = format_expression(node.pattern, Level.CONCATENATION)
    escape = "" if node.escape is None else f" ESCAPE {format_string(node.escape.value)}"
    return f"{value} {_not(node.is_negated)}LIKE {pattern}{escape}"


def _is_null(node: IsNull) -> str:
    return f"{format_expression(node.value, Level.CONCATENATION)} IS {_not(node.is_negated)}NULL"


def _is_distinct(node: IsDistinct) -> str:
    left = format_expression(node.left, Level.CONCATENATION)
    right = format_expression(node.right, Level.CONCATENATION)
    return f"{left} IS {_not(node.is_negated)}DISTINCT FROM {right}"


def _concatenation(node: Concatenation) -> str:
    return " || ".join([format_expression(part, Level.SUM) for part in node.parts])


def _arithmetic(node: Arithmetic) -> str:
    inside = Level(_level(node) + 1)
    rest = [f" {item.operator} {format_expression(item.operand, inside)}" for item in node.rest]
    return format_expression(node.first, inside) + "".join(rest)


def _sign(node: Sign) -> str:
    # Two signs next to each other would be a comment, and a number would take the sign for itself.
    is_bare = _level(node.operand) >= Level.PRIMARY and not isinstance(
        node.operand, IntegerLiteral | DecimalLiteral | DoubleLiteral
    )
    inside = format_expression(node.operand)
    return node.operator + (inside if is_bare else f"({inside})")


def _access(node: Access) -> str:
    # What a number with a point is followed by must not become part of it.
    base = format_expression(node.base, Level.PRIMARY)
    if isinstance(node.base, Access):
        base = f"({base})"
    steps = [
        f"->{format_name(step.name)}"
        if isinstance(step, FieldAccess)
        else f"[{format_expression(step.index, Level.CONCATENATION)}]"
        for step in node.steps
    ]
    return base + "".join(steps)


def _case(node: Case) -> str:
    operand = "" if node.operand is None else f" {format_expression(node.operand, Level.CONCATENATION)}"
    branches = [
        f" WHEN {format_expression(branch.condition)} THEN {format_expression(branch.result)}"
        for branch in node.branches
    ]
    otherwise = "" if node.otherwise is None else f" ELSE {format_expression(node.otherwise)}"
    return f"CASE{operand}{''.join(branches)}{otherwise} END"


def _lambda(node: Lambda) -> str:
    names = ", ".join([format_name(name) for name in node.parameters])
    parameters = names if len(node.parameters) == 1 else f"({names})"
    return f"{parameters} => {format_expression(node.body)}"


def _call(node: FunctionCall) -> str:
    return f"{format_name(node.name)}({', '.join([format_expression(argument) for argument in node.arguments])})"


def _array(node: ArrayConstructor) -> str:
    return f"ARRAY[{', '.join([format_expression(item) for item in node.items])}]"


def _map(node: MapConstructor) -> str:
    entries = [f"{format_expression(entry.key)} := {format_expression(entry.value)}" for entry in node.entries]
    return f"MAP({', '.join(entries)})"


def _struct(node: StructConstructor) -> str:
    entries = [f"{format_name(entry.name)} := {format_expression(entry.value)}" for entry in node.entries]
    return f"STRUCT({', '.join(entries)})"


def _column(node: ColumnReference) -> str:
    return format_name(node.name) if node.source is None else f"{format_name(node.source)}.{format_name(node.name)}"


_FORMATS: Final[dict[type[Any], Callable[[Any], str]]] = {
    StringLiteral: lambda node: format_string(node.value),
    IntegerLiteral: _format_number,
    DecimalLiteral: _format_number,
    DoubleLiteral: _format_number,
    BooleanLiteral: lambda node: "TRUE" if node.value else "FALSE",
    NullLiteral: lambda _: "NULL",
    ColumnReference: _column,
    Access: _access,
    Sign: _sign,
    Arithmetic: _arithmetic,
    Concatenation: _concatenation,
    Comparison: _comparison,
    Between: _between,
    InList: _in_list,
    Like: _like,
    IsNull: _is_null,
    IsDistinct: _is_distinct,
    Not: lambda node: f"NOT {format_expression(node.operand, Level.NOT)}",
    Logical: _logical,
    Case: _case,
    Cast: lambda node: f"CAST({format_expression(node.value)} AS {format_type(node.type)})",
    FunctionCall: _call,
    Lambda: _lambda,
    UnitArgument: lambda node: str(node.unit),
    AllRows: lambda _: "*",
    ArrayConstructor: _array,
    MapConstructor: _map,
    StructConstructor: _struct,
}
"""A table rather than one long match. `Any`: each function takes the class that it stands beside."""
