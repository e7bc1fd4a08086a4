"""GROUP BY: the rows of each group become one row of a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from streams.model.plan import (
    Lateness,
)
from streams.model.sources import WindowInfo
from streams.model.types import NULL, Map, contains
from streams.sql.analysis.catalog import Catalog
from streams.sql.analysis.mistakes import mistake, typing
from streams.sql.analysis.projection import Item
from streams.sql.analysis.scope import NO_SOURCE, Scope
from streams.sql.analysis.typed import function_kind
from streams.sql.expressions import Expression, Lambda
from streams.sql.functions.model import Match
from streams.sql.functions.table import FUNCTIONS, find
from streams.sql.language.tree import expressions as tree
from streams.sql.language.tree.node import Node
from streams.sql.language.tree.queries import HoppingWindow, Query, SessionWindow, Window
from streams.sql.planning.flow import Flow, references

_DAY_MS: Final = 86_400_000
_LITERALS: Final = frozenset({"count", "ignore_nulls"})
"""Parameters of aggregates that are literals, not columns."""
SIGN: Final = "__sign"
CHANGE: Final = "__change"


@dataclass(frozen=True, slots=True)
class Grouping:
    """What GROUP BY computes: the names in intermediate views, and what SELECT and HAVING say about it."""

    group_by: tuple[tree.Expression, ...]
    keys: tuple[Expression, ...]
    """What the groups are made by."""
    calls: tuple[tree.FunctionCall, ...]
    """The aggregates."""
    arguments: tuple[tuple[Expression, ...], ...]
    inputs: dict[str, Expression]
    """The columns that aggregates take, by the text of the expression."""

    @property
    def key_names(self) -> list[str]:
        """The columns of the groups in intermediate views."""
        return [f"key_{number}" for number in range(len(self.keys))]

    def prepared(self) -> list[tuple[str, Expression]]:
        """What is computed of each row before it is aggregated."""
        keys = list(zip(self.key_names, self.keys, strict=True))
        return [*keys, *((f"value_{number}", value) for number, value in enumerate(self.inputs.values()))]

    def argument_names(self, arguments: Sequence[Expression]) -> list[str]:
        """The columns that an aggregate takes."""
        texts = list(self.inputs)
        return [f"value_{texts.index(one.text)}" for one in arguments]


def window_of(window: Window) -> tuple[WindowInfo, int, int]:
    """A window, how far apart two of them begin, and the grace period, in milliseconds."""
    if isinstance(window, SessionWindow):
        size = advance = window.gap.ms
        info = WindowInfo(kind="SESSION")
    else:
        size = window.size.ms
        advance = window.advance.ms if isinstance(window, HoppingWindow) else size
        info = WindowInfo(kind="HOPPING" if isinstance(window, HoppingWindow) else "TUMBLING", size_ms=size)
    grace = window.grace.ms if window.grace is not None else max(_DAY_MS - size, 0)
    return info, advance, grace


def lateness_of(window: Window) -> Lateness:
    """When a record is too late for all its windows."""
    info, advance, grace = window_of(window)
    if info.size_ms is None:
        # A session ends when nothing has come for as long as the gap.
        return Lateness(size_ms=0, advance_ms=0, grace_ms=advance + grace)
    return Lateness(size_ms=info.size_ms, advance_ms=advance, grace_ms=grace)


def aggregates_in(nodes: Sequence[Node], catalog: Catalog) -> tuple[tree.FunctionCall, ...]:
    """The calls of aggregates in expressions, each once."""
    found: dict[Node, None] = {}
    for node in nodes:
        found.update(dict.fromkeys(references(node, lambda one: function_kind(one, catalog) == "AGGREGATE")))
    return tuple(one for one in found if isinstance(one, tree.FunctionCall))


def grouping_of(
    flow: Flow, query: Query, items: Sequence[Item], having: tree.Expression | None, catalog: Catalog
) -> Grouping:
    """What has to be computed for a GROUP BY."""
    typer = flow.typer(catalog)
    group_by = tuple(dict.fromkeys(flow.scope.resolved(one, "GROUP BY") for one in query.group_by))
    keys = tuple(typer.expression(one) for one in group_by)
    for node, key in zip(group_by, keys, strict=True):
        if contains(key.type, Map) or key.type == NULL:
            raise mistake(node, f"GROUP BY needs values that can be a key, not {key.type}.")
    calls = aggregates_in([*(item.expression for item in items), *([having] if having else [])], catalog)
    if not calls:
        message = "GROUP BY requires aggregate functions in either the SELECT or HAVING clause. Add one, as COUNT(*)."
        raise mistake(query.group_by[0], message)
    arguments: list[tuple[Expression, ...]] = []
    inputs: dict[str, Expression] = {}
    for call in calls:
        typed = [one for one in typer.arguments(call) if not isinstance(one, Lambda)]
        arguments.append(tuple(typed))
        count = columns_taken(call, typed, catalog)
        inputs.update({one.text: one for one in typed[:count]})
    return Grouping(group_by, keys, calls, tuple(arguments), inputs)


def match_of(call: tree.FunctionCall, arguments: Sequence[Expression], catalog: Catalog) -> Match:
    """The overload of an aggregate that takes some arguments."""
    name = call.name.name.upper()
    users = None if name in FUNCTIONS else catalog.user_function(name)
    types = [one.type for one in arguments]
    with typing(call):
        return find(name, types) if users is None else users.match(types)


def columns_taken(call: tree.FunctionCall, arguments: Sequence[Expression], catalog: Catalog) -> int:
    """How many of the arguments are columns; literals are behind them."""
    parameters = match_of(call, arguments, catalog).overload.parameters
    return len(arguments) - sum(parameter.name in _LITERALS for parameter in parameters)


def check_grouped(items: Sequence[Item], having: tree.Expression | None, grouping: Grouping, scope: Scope) -> None:
    """Refuse columns outside of aggregates by which nothing is grouped."""
    known = {*grouping.group_by, *grouping.calls}
    for node, clause in (*((item.expression, "SELECT") for item in items), (having, "HAVING")):
        if node is None:
            continue
        wrong = [
            one
            for one in references(node, lambda part: part in known or isinstance(part, tree.ColumnReference))
            if isinstance(one, tree.ColumnReference)
            and one not in known
            and one.source is not None
            and one.source.name != NO_SOURCE
        ]
        if wrong:
            shown = ", ".join(scope.shown(one) for one in wrong)
            message = (
                f"Non-aggregate {clause} expression(s) not part of GROUP BY: {shown}\n"
                f"Either add the column(s) to the GROUP BY or remove them from the {clause}."
            )
            raise mistake(wrong[0] if wrong[0].place.end else node, message)
