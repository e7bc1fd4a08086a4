"""Expressions: comparisons with NULL, lambdas, constructors, where aggregates and table functions may stand."""

from collections.abc import Iterator
from typing import Final

from streams.sql.language.checks.problem import Problem, at
from streams.sql.language.checks.types import repeated
from streams.sql.language.tree.expressions import (
    AllRows,
    ArrayConstructor,
    Between,
    Case,
    Comparison,
    FunctionCall,
    InList,
    Lambda,
    Like,
    MapConstructor,
    NullLiteral,
    StructConstructor,
    UnitArgument,
)
from streams.sql.language.tree.node import Identifier, Node, children, walk
from streams.sql.language.words import words

AGGREGATES: Final = words(
    """
    ATTR AVG COLLECT_LIST COLLECT_SET CORRELATION COUNT COUNT_DISTINCT EARLIEST_BY_OFFSET HISTOGRAM
    LATEST_BY_OFFSET MAX MIN STDDEV_SAMP STDDEV_SAMPLE SUM SUM_LIST TOPK TOPKDISTINCT
    """
)
TABLE_FUNCTIONS: Final = frozenset({"EXPLODE", "CUBE_EXPLODE"})
_LAMBDAS: Final = {"FILTER": (1, 1), "TRANSFORM": (1, 2), "REDUCE": (1, 1)}
"""Functions that take lambdas, and how few and how many."""
_UNIT_FUNCTIONS: Final = frozenset({"TIMESTAMPADD", "TIMESTAMPSUB", "DATEADD", "DATESUB", "TIMEADD", "TIMESUB"})


def check_expressions(root: Node) -> Iterator[Problem]:
    """All expressions below a node."""
    for node in walk(root):
        match node:
            case Comparison() | Between() | InList() | Like():
                yield from _null_comparison(node)
            case Case():
                yield from _case(node)
            case FunctionCall():
                yield from _call(node)
            case ArrayConstructor() | MapConstructor() | StructConstructor():
                yield from _constructor(node)
            case _:
                pass
    yield from _reused_parameters(root)


def _null_comparison(node: Comparison | Between | InList | Like) -> Iterator[Problem]:
    if isinstance(node, Like) and node.escape is not None and len(node.escape.value) != 1:
        yield at(node.escape, "The escape character of LIKE is one character.")
    operands = (node.value,) if isinstance(node, InList) else tuple(children(node))  # NULLs in a list do no harm
    if not any(isinstance(operand, NullLiteral) for operand in operands):
        return
    instead = "IS NOT NULL" if isinstance(node, Comparison) and node.operator == "<>" else "IS NULL"
    yield at(node, f"Comparison with NULL not supported: it would never be true. Write {instead}.")


def _case(node: Case) -> Iterator[Problem]:
    for branch in node.branches:
        if node.operand is not None and isinstance(branch.condition, NullLiteral):
            yield at(branch.condition, "Comparison with NULL not supported: write CASE WHEN ... IS NULL THEN ...")


def _call(node: FunctionCall) -> Iterator[Problem]:
    name = node.name.name.upper()
    lambdas = [argument for argument in node.arguments if isinstance(argument, Lambda)]
    if lambdas and name not in _LAMBDAS:
        yield at(lambdas[0], f"{name} takes no lambda. Only FILTER, REDUCE and TRANSFORM do.")
    elif lambdas and any(not isinstance(argument, Lambda) for argument in node.arguments[-len(lambdas) :]):
        yield at(lambdas[0], f"A lambda is the last argument of {name}. Move it to the end.")
    elif name in _LAMBDAS and not _LAMBDAS[name][0] <= len(lambdas) <= _LAMBDAS[name][1]:
        yield at(node, f"{name} needs a lambda as its last argument, as in {_EXAMPLES[name]}.")
    for argument in node.arguments:
        if isinstance(argument, AllRows) and name != "COUNT":
            yield at(argument, f"{name} does not take *. Only COUNT(*) does.")
        if isinstance(argument, UnitArgument) and name not in _UNIT_FUNCTIONS:
            yield at(
                argument,
                f"{argument.unit} is a unit of time, which {name} does not take. As a column, write `{argument.unit}`.",
            )


_EXAMPLES: Final = {
    "FILTER": "FILTER(prices, p => p > 10)",
    "TRANSFORM": "TRANSFORM(prices, p => p * 2)",
    "REDUCE": "REDUCE(prices, 0, (total, p) => total + p)",
}


def _constructor(node: ArrayConstructor | MapConstructor | StructConstructor) -> Iterator[Problem]:
    if isinstance(node, StructConstructor):
        yield from repeated(
            [entry.name for entry in node.entries], "Field {} occurs twice in this STRUCT. Rename one of the two."
        )
        return
    items = node.items if isinstance(node, ArrayConstructor) else tuple(entry.value for entry in node.entries)
    kind, one = ("ARRAY", "An ARRAY") if isinstance(node, ArrayConstructor) else ("MAP", "A MAP")
    if not items:
        yield at(node, f"An empty {kind} has no type. Write at least one element.")
    elif all(isinstance(item, NullLiteral) for item in items):
        yield at(node, f"{one} of NULLs has no type. Write CAST(NULL AS type) for one of them.")


def _reused_parameters(root: Node) -> Iterator[Problem]:
    """A lambda's parameters differ from each other and from those of the lambdas around it."""
    pending: list[tuple[Node, frozenset[str]]] = [(root, frozenset())]
    while pending:
        node, outer = pending.pop()
        if isinstance(node, Lambda):
            yield from repeated(
                list(node.parameters), "Parameter {} occurs twice in this lambda. Rename one of the two."
            )
            yield from _hidden(node.parameters, outer)
            outer |= {parameter.name for parameter in node.parameters}
        pending.extend((child, outer) for child in children(node))


def _hidden(parameters: tuple[Identifier, ...], outer: frozenset[str]) -> Iterator[Problem]:
    for parameter in parameters:
        if parameter.name in outer:
            yield at(parameter, f"{parameter.name} is a parameter of the lambda around this one. Choose another name.")


def calls_of(root: Node, names: frozenset[str]) -> list[FunctionCall]:
    """Calls of certain functions at a node and below it."""
    return [node for node in walk(root) if isinstance(node, FunctionCall) and node.name.name.upper() in names]
