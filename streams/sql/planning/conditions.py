"""ON: which side of a condition belongs to which side of the join, and whether such sides can be joined."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from streams.model.types import SqlType
from streams.sql.analysis.catalog import Catalog
from streams.sql.analysis.mistakes import mistake
from streams.sql.analysis.scope import Origin, Scope
from streams.sql.analysis.typed import Typer
from streams.sql.expressions import Expression
from streams.sql.language.formatting.expressions import format_expression
from streams.sql.language.tree import expressions as tree
from streams.sql.language.tree.node import Node, walk
from streams.sql.language.tree.queries import Join, JoinKind
from streams.sql.planning.flow import Flow, source_flow

Used = frozenset[tuple[str, str]]
"""The columns that a query needs, by source and name."""


@dataclass(frozen=True, slots=True)
class Sides:
    """Both sides of ON."""

    join: Join
    left: tree.Expression
    right: tree.Expression
    left_value: Expression
    right_value: Expression

    @property
    def shown(self) -> str:
        """The condition as errors show it."""
        left, right = format_expression(self.left), format_expression(self.right)
        return f"{left}{{{self.left_value.type}}} = {right}{{{self.right_value.type}}}"


def used_columns(nodes: Iterable[Node]) -> Used:
    """All columns in some expressions."""
    return frozenset(
        (part.source.name, part.name.name)
        for node in nodes
        for part in walk(node)
        if isinstance(part, tree.ColumnReference) and part.source is not None
    )


def _sources_in(node: Node) -> set[str]:
    return {source for source, _ in used_columns([node])}


def sides_of(left: Flow, right: Origin, join: Join, scope: Scope, catalog: Catalog) -> Sides:
    """Both sides of a join's condition, with types."""
    condition = scope.resolved(join.condition, "JOIN ON")
    if not isinstance(condition, tree.Comparison) or condition.operator != "=":
        raise mistake(join.condition, "Unsupported join expression: ON is one equality, as in A.ID = B.ID.")
    one, other = condition.left, condition.right
    if _sources_in(one) == {right.name}:
        one, other = other, one
    if _sources_in(other) != {right.name} or len(_sources_in(one)) != 1 or _sources_in(one) == {right.name}:
        message = (
            "Invalid comparison expression in join: each side of = must reference exactly one source and not the same "
            f"source. Got {format_expression(condition)}."
        )
        raise mistake(join.condition, message)
    if not _sources_in(one) <= {name for name, _ in left.columns}:
        raise mistake(join.condition, "This compares with what is joined later. Move it to the ON of that JOIN.")
    right_value = source_flow("", right).typer(catalog).expression(other)
    found = Sides(join, one, other, left.typer(catalog).expression(one), right_value)
    if found.left_value.type != right_value.type:
        message = (
            f"Invalid join condition: types don't match. Got {found.shown}. Consider using "
            "CAST(<expression> AS <type>) on one of the two."
        )
        raise mistake(join.condition, message)
    return found


def synthetic_name(scope: Scope) -> str:
    """The name of a key that no source has."""
    taken = {name for origin in scope.origins for name in origin.types}
    name, number = "ROWKEY", 0
    while name in taken:
        number += 1
        name = f"ROWKEY_{number}"
    return name


def synthetic_key(join: Join, scope: Scope, typer: Typer) -> dict[str, SqlType]:
    """The name and type of the key of the last join of a query, if it is not a column of its sides."""
    condition = scope.resolved(join.condition, "JOIN ON")
    if not isinstance(condition, tree.Comparison):
        return {}
    has_column = any(isinstance(one, tree.ColumnReference) for one in (condition.left, condition.right))
    if has_column and join.kind is not JoinKind.FULL:
        return {}
    return {synthetic_name(scope): typer.expression(condition.left).type}


def check_full(joins: Sequence[tuple[Join, Origin]]) -> None:
    """Refuse FULL JOIN among more than two sources."""
    for join, _ in joins if len(joins) > 1 else ():
        if join.kind is JoinKind.FULL:
            message = "FULL OUTER JOIN of more than two streams or tables is not supported. Use two statements."
            raise mistake(join, message)


def check_sides(left: Flow, right: Origin, join: Join) -> None:
    """Refuse a stream on the right of a table, and windows on one side only."""
    if (left.kind, right.source.kind) == ("TABLE", "STREAM"):
        message = (
            "Join between a table and a stream is not supported: the stream has to be on the left. Write "
            f"FROM {join.source.name.name} JOIN the table."
        )
        raise mistake(join, message)
    window, other = left.window, right.source.window
    if (window is None) != (other is None):
        message = "Implicit repartitioning of windowed sources is not supported: join two windowed sources, or none."
        raise mistake(join, message)
    if window is None or other is None:
        return
    if right.source.kind == "TABLE":
        raise mistake(join, f"{right.source.name} is a windowed table, which has no single row for a key to join.")
    if (window.kind == "SESSION") != (other.kind == "SESSION"):
        message = f"Incompatible windowed sources: {window.kind} with {other.kind}. Session windows join only sessions."
        raise mistake(join, message)


def check_primary(right: Origin, sides: Sides) -> None:
    """Refuse anything but the primary key of a table on its side."""
    keys = [column.name for column in right.source.key]
    if len(keys) == 1 and isinstance(sides.right, tree.ColumnReference) and sides.right.name.name == keys[0]:
        return
    message = f"Invalid join condition: joins on multiple keys are not yet supported. Got {sides.shown}."
    if len(keys) == 1:
        message = (
            "Invalid join condition: stream-table and table-table joins require to join on the table's primary key, "
            f"{right.name}.{keys[0]}. Got {sides.shown}."
        )
    raise mistake(sides.join.condition, message)


def check_foreign(left: Flow, right: Origin, join: Join, *, is_only: bool) -> None:
    """Refuse foreign-key joins that cannot be planned."""
    if not is_only:
        message = (
            "Invalid join condition: foreign-key table-table joins are not supported as part of n-way joins. Use two "
            "statements."
        )
        raise mistake(join.condition, message)
    if join.kind not in {JoinKind.INNER, JoinKind.LEFT}:
        message = f"Invalid join type: foreign-key joins are INNER or LEFT, not {join.kind.value}."
        raise mistake(join, message)
    if right.source.window is not None or left.window is not None:
        raise mistake(join, "Foreign-key joins of windowed tables are not supported.")
