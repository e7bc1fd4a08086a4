"""Expressions of the tree, whose columns have been resolved, as typed pieces of Spark's SQL."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Final

from streams.model.sources import ROWTIME, WINDOWEND, WINDOWSTART
from streams.model.types import BIGINT, BOOLEAN, STRING, UNIT
from streams.sql import operators
from streams.sql.analysis.catalog import Catalog
from streams.sql.analysis.literals import literal, time_ms
from streams.sql.analysis.mistakes import mistake, typing
from streams.sql.analysis.scope import shown
from streams.sql.analysis.types import resolved_type
from streams.sql.casts import cast
from streams.sql.errors import TypeProblem
from streams.sql.expressions import Expression, Lambda, condition, functions_of, sql_text
from streams.sql.functions.table import FUNCTIONS, RECORD_ORDER, call
from streams.sql.language.tree import expressions as tree
from streams.sql.language.tree.node import Node

Columns = Mapping[tuple[str, str], Expression]
"""What stands for each column: by the source's name in the query, and its own name."""
_MAX_CHARACTERS: Final = 400_000
_TIMES: Final = frozenset({ROWTIME, WINDOWSTART, WINDOWEND})
_NOTHING: Final[Mapping[Node, Expression]] = {}
_NO_PARAMETERS: Final[Mapping[str, Expression]] = {}


@dataclass(frozen=True, slots=True)
class Typer:
    """Types expressions; what `replaced` holds has been computed before."""

    catalog: Catalog
    columns: Columns
    replaced: Mapping[Node, Expression] = field(default_factory=lambda: _NOTHING)
    order: str = RECORD_ORDER
    """The order of the records, for aggregates that go by it."""
    parameters: Mapping[str, Expression] = field(default_factory=lambda: _NO_PARAMETERS)
    """Of the lambdas around the expression."""
    prefix: str = ""
    """What messages begin with."""

    def expression(self, node: Node) -> Expression:
        """An expression; StatementError where it has no type."""
        known = self.replaced.get(node)
        if known is not None:
            return known
        with typing(node, self.prefix):
            found = _TYPED[type(node)](self, node)
        if len(found.text) > _MAX_CHARACTERS:
            raise mistake(node, "This expression is too large. Compute a part of it in a statement of its own.")
        return found

    def predicate(self, node: tree.Expression, clause: str) -> Expression:
        """A condition that is false where it is NULL."""
        found = replace(self, prefix=f"Error in {clause} expression: ").expression(node)
        if found.type != BOOLEAN:
            message = (
                f"Type error in {clause} expression: it should evaluate to BOOLEAN, but {self.shown(node)} "
                f"evaluates to {found.type}."
            )
            raise mistake(node, message)
        return condition(found)

    def shown(self, node: tree.Argument) -> str:
        """An expression in a message."""
        return shown(node, qualified=len({source for source, _ in self.columns if source}) > 1)

    def call(self, node: tree.FunctionCall, arguments: Sequence[Expression | Lambda]) -> Expression:
        """A call whose arguments have been typed."""
        name = node.name.name.upper()
        users = None if name in FUNCTIONS else self.catalog.user_function(name)
        with typing(node, self.prefix):
            if users is not None:
                return users.call(arguments, order=self.order)
            return call(name, arguments, order=self.order)

    def argument(self, node: tree.Argument) -> Expression | Lambda:
        """An argument of a call."""
        if not isinstance(node, tree.Lambda):
            return self.expression(node)
        names = tuple(parameter.name for parameter in node.parameters)

        def body(values: Sequence[Expression]) -> Expression:
            inside = {**self.parameters, **dict(zip(names, values, strict=True))}
            return replace(self, parameters=inside).expression(node.body)

        return Lambda(names, body)

    def arguments(self, node: tree.FunctionCall) -> list[Expression | Lambda]:
        """The arguments of a call; the * of COUNT(*) is none."""
        return [self.argument(one) for one in node.arguments if not isinstance(one, tree.AllRows)]


def function_kind(node: Node, catalog: Catalog) -> str | None:
    """SCALAR, AGGREGATE or TABLE, if this is a call of a function that exists."""
    if not isinstance(node, tree.FunctionCall):
        return None
    name = node.name.name.upper()
    if name in FUNCTIONS:
        return FUNCTIONS[name].kind.value
    users = catalog.user_function(name)
    return None if users is None else users.kind.value


def _column(typer: Typer, node: tree.ColumnReference) -> Expression:
    if node.source is None:
        return typer.parameters[node.name.name]
    found = typer.columns.get((node.source.name, node.name.name))
    if found is None:
        raise mistake(node, f"Column '{node.name.name}' cannot be used here.")
    return found


def _unit(_: Typer, node: tree.UnitArgument) -> Expression:
    return Expression(sql_text(node.unit), UNIT, literal=node.unit)


def _call(typer: Typer, node: tree.FunctionCall) -> Expression:
    kind = function_kind(node, typer.catalog)
    if kind == "AGGREGATE":
        raise mistake(node, f"{node.name.name} is an aggregate, which needs a GROUP BY and cannot be used here.")
    if kind == "TABLE":
        raise mistake(node, f"{node.name.name} makes several rows of one, and can be used in SELECT only.")
    return typer.call(node, typer.arguments(node))


def _access(typer: Typer, node: tree.Access) -> Expression:
    found = typer.expression(node.base)
    for step in node.steps:
        if isinstance(step, tree.FieldAccess):
            found = operators.field(found, step.name.name)
        else:
            found = operators.subscript(found, typer.expression(step.index))
    return found


def _sign(typer: Typer, node: tree.Sign) -> Expression:
    value = typer.expression(node.operand)
    negative = operators.negate(value)
    return negative if node.operator == "-" else value


def _arithmetic(typer: Typer, node: tree.Arithmetic) -> Expression:
    found = typer.expression(node.first)
    for step in node.rest:
        right = typer.expression(step.operand)
        with typing(step, typer.prefix):
            found = operators.arithmetic(step.operator, found, right)
        if len(found.text) > _MAX_CHARACTERS:
            break
    return found


def _concatenation(typer: Typer, node: tree.Concatenation) -> Expression:
    return reduce(operators.concatenate, [typer.expression(part) for part in node.parts])


def _logical(typer: Typer, node: tree.Logical) -> Expression:
    terms = [typer.expression(term) for term in node.terms]
    for term in terms[1:]:
        operators.logical(node.operator, terms[0], term)
    text = f" {node.operator} ".join(term.text for term in terms)
    return Expression(f"({text})", BOOLEAN, functions=functions_of(*terms))


def _not(typer: Typer, node: tree.Not) -> Expression:
    return operators.negation(typer.expression(node.operand))


def _comparison(typer: Typer, node: tree.Comparison) -> Expression:
    left, right = _compared(typer, node.left, node.right)
    try:
        return operators.compare(node.operator, left, right)
    except TypeProblem as problem:
        one, other = typer.shown(node.left), typer.shown(node.right)
        comparison = operators.COMPARISONS[node.operator]
        message = f"Cannot compare {one} ({left.type}) to {other} ({right.type}) with {comparison}."
        raise mistake(node, f"{typer.prefix}{message}") from problem


def _compared(typer: Typer, left: tree.Expression, right: tree.Expression) -> tuple[Expression, Expression]:
    """Both sides; a text beside ROWTIME or the bound of a window is a point in time."""
    one, other = typer.expression(left), typer.expression(right)
    if _is_time(left):
        return one, _as_time(right, other)
    return (_as_time(left, one), other) if _is_time(right) else (one, other)


def _is_time(node: Node) -> bool:
    return isinstance(node, tree.ColumnReference) and node.name.name in _TIMES


def _as_time(node: Node, value: Expression) -> Expression:
    if isinstance(node, tree.StringLiteral):
        milliseconds = time_ms(node.value)
        return Expression(f"bigint('{milliseconds}')", BIGINT, literal=milliseconds)
    return value


def _between(typer: Typer, node: tree.Between) -> Expression:
    value, low = _compared(typer, node.value, node.low)
    _, high = _compared(typer, node.value, node.high)
    found = operators.between(value, low, high)
    return operators.negation(found) if node.is_negated else found


def _in(typer: Typer, node: tree.InList) -> Expression:
    value = typer.expression(node.value)
    items = [typer.expression(item) for item in node.items]
    if _is_time(node.value):
        items = [_as_time(one, item) for one, item in zip(node.items, items, strict=True)]
    found = operators.contained(value, items)
    return operators.negation(found) if node.is_negated else found


def _like(typer: Typer, node: tree.Like) -> Expression:
    escape = None if node.escape is None else node.escape.value
    value, pattern = typer.expression(node.value), typer.expression(node.pattern)
    return operators.like(value, pattern, escape, negated=node.is_negated)


def _is_null(typer: Typer, node: tree.IsNull) -> Expression:
    found = operators.is_null(typer.expression(node.value))
    return operators.negation(found) if node.is_negated else found


def _is_distinct(typer: Typer, node: tree.IsDistinct) -> Expression:
    operator = "IS NOT DISTINCT FROM" if node.is_negated else "IS DISTINCT FROM"
    return operators.compare(operator, *_compared(typer, node.left, node.right))


def _case(typer: Typer, node: tree.Case) -> Expression:
    branches = []
    for branch in node.branches:
        when: tree.Expression = branch.condition
        if node.operand is not None:
            when = tree.Comparison("=", node.operand, when, place=when.place)
        branches.append((typer.expression(when), typer.expression(branch.result)))
    otherwise = None if node.otherwise is None else typer.expression(node.otherwise)
    return operators.case(branches, otherwise)


def _cast(typer: Typer, node: tree.Cast) -> Expression:
    return cast(typer.expression(node.value), resolved_type(node.type, typer.catalog))


def _array(typer: Typer, node: tree.ArrayConstructor) -> Expression:
    return operators.array([typer.expression(item) for item in node.items])


def _map(typer: Typer, node: tree.MapConstructor) -> Expression:
    return operators.map_of([(typer.expression(entry.key), typer.expression(entry.value)) for entry in node.entries])


def _struct(typer: Typer, node: tree.StructConstructor) -> Expression:
    fields = [(entry.name.name, typer.expression(entry.value)) for entry in node.entries]
    return operators.struct([(name, _not_null_type(value)) for name, value in fields])


def _not_null_type(value: Expression) -> Expression:
    """Spark stores no fields of the type of NULL."""
    return cast(value, STRING) if str(value.type) == "NULL" else value


_TYPED: Final[Mapping[type[Node], Callable[[Typer, Any], Expression]]] = {
    **dict.fromkeys(
        (
            tree.StringLiteral,
            tree.IntegerLiteral,
            tree.DecimalLiteral,
            tree.DoubleLiteral,
            tree.BooleanLiteral,
            tree.NullLiteral,
        ),
        lambda _, node: literal(node),
    ),
    tree.ColumnReference: _column,
    tree.UnitArgument: _unit,
    tree.FunctionCall: _call,
    tree.Access: _access,
    tree.Sign: _sign,
    tree.Arithmetic: _arithmetic,
    tree.Concatenation: _concatenation,
    tree.Logical: _logical,
    tree.Not: _not,
    tree.Comparison: _comparison,
    tree.Between: _between,
    tree.InList: _in,
    tree.Like: _like,
    tree.IsNull: _is_null,
    tree.IsDistinct: _is_distinct,
    tree.Case: _case,
    tree.Cast: _cast,
    tree.ArrayConstructor: _array,
    tree.MapConstructor: _map,
    tree.StructConstructor: _struct,
}
"""How each kind of node is typed."""
