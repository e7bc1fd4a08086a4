"""What all kinds of joins have in common: the columns behind a join, its key, and internal topics between two."""

from dataclasses import dataclass, replace

from streams.model.plan import DELETED, Lateness
from streams.model.sources import ROWTIME, Column
from streams.model.types import quoted
from streams.sql.analysis.catalog import Catalog
from streams.sql.analysis.scope import NO_SOURCE, Origin, Scope
from streams.sql.expressions import Expression, functions_of
from streams.sql.functions.table import RECORD_ORDER
from streams.sql.language.tree import expressions as tree
from streams.sql.language.tree.node import Identifier
from streams.sql.language.tree.queries import JoinKind
from streams.sql.planning.builder import Builder, select
from streams.sql.planning.conditions import Sides, Used, synthetic_name
from streams.sql.planning.flow import Flow, KeyColumn, source_flow

KEY = "key"
"""The column of what is compared in the views of joins."""


@dataclass(frozen=True, slots=True)
class Context:
    """What the joins of a query have in common."""

    scope: Scope
    used: Used
    catalog: Catalog
    builder: Builder

    def read(self, origin: Origin, lateness: Lateness | None = None) -> Flow:
        """The rows of a source."""
        view = self.builder.input(origin.source, lateness=lateness)
        return replace(source_flow(view, origin), scope=self.scope, follows_time=lateness is not None)

    def columns(self, flow: Flow) -> list[tuple[str, Expression]]:
        """The columns that the query needs, under their names behind the join."""
        return [
            (column_name(self.scope, owner, name), value)
            for (owner, name), value in flow.columns.items()
            if (owner, name) in self.used and owner != NO_SOURCE
        ]

    def joined(self, *flows: Flow) -> dict[tuple[str, str], Expression]:
        """The same columns, as they are found behind the join."""
        return {
            (owner, name): Expression(quoted(column_name(self.scope, owner, name)), value.type)
            for flow in flows
            for (owner, name), value in flow.columns.items()
            if (owner, name) in self.used and owner != NO_SOURCE
        }

    def key(self, left: Flow, sides: Sides) -> KeyColumn:
        """The key of a join: a column of either side, or one that only the join has."""
        columns: list[tree.Expression] = [
            one for one in (sides.left, sides.right) if isinstance(one, tree.ColumnReference)
        ]
        name = synthetic_name(self.scope)
        if sides.join.kind is JoinKind.FULL or not columns:
            columns = [tree.ColumnReference(Identifier(name), Identifier(NO_SOURCE))]
        elif len(left.key) == 1 and sides.left in left.key[0].same_as:
            # In a chain of joins by one key, the columns of all sources mean it.
            columns = list(dict.fromkeys((*left.key[0].same_as, *columns)))
        return KeyColumn(Expression(quoted(KEY), sides.left_value.type), tuple(columns), name)

    def behind(self, flow: Flow, view: str, key: KeyColumn, *flows: Flow) -> Flow:
        """The rows of a join of some flows."""
        columns = self.joined(*flows)
        if key.name in self.scope.added:
            columns[NO_SOURCE, key.name] = key.value
        return replace(flow, view=view, columns=columns, key=(key,))


def column_name(scope: Scope, source: str, name: str) -> str:
    """A column in the views behind a join."""
    number = [origin.name for origin in scope.origins].index(source)
    return f"{number}_{name}"


def cut(flow: Flow, builder: Builder, lateness: Lateness | None) -> Flow:
    """Write the rows of a join into an internal topic, and read them again in the next plan."""
    keys = [(f"key_{number}", one.value) for number, one in enumerate(flow.key)]
    owned = {one: column_name(flow.scope, *one) for one in flow.columns if one[0] != NO_SOURCE}
    columns = [(name, flow.columns[one]) for one, name in owned.items()]
    texts = [(name, value.text) for name, value in (*keys, *columns)] + [(ROWTIME, flow.rowtime)]
    texts += flow.window_columns()
    if flow.deleted is not None:
        texts.append((DELETED, flow.deleted))
    view = builder.cut(
        select(texts, flow.view),
        [Column(name, str(value.type)) for name, value in keys],
        [Column(name, str(value.type)) for name, value in columns],
        kind=flow.kind,
        window=flow.window,
        functions=functions_of(*(value for _, value in (*keys, *columns))),
        lateness=lateness,
    )
    key = tuple(
        replace(one, value=Expression(quoted(name), value.type))
        for one, (name, value) in zip(flow.key, keys, strict=True)
    )
    read = {one: Expression(quoted(name), flow.columns[one].type) for one, name in owned.items()}
    read |= {(NO_SOURCE, one.name): one.value for one in key if (NO_SOURCE, one.name) in flow.columns}
    return replace(
        flow,
        view=view,
        columns=read,
        key=key,
        rowtime=quoted(ROWTIME),
        deleted=quoted(DELETED) if flow.deleted is not None else None,
        order=RECORD_ORDER,
        has_time=True,
        follows_time=lateness is not None,
    )
