"""Rows at one point of a plan: the view, what its columns are, and what its key is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from streams.model.plan import DELETED, STREAM_TIME, TIME
from streams.model.sources import ROWOFFSET, ROWPARTITION, ROWTIME, WINDOW_COLUMNS, Kind, WindowInfo
from streams.model.types import quoted
from streams.sql.analysis.catalog import Catalog
from streams.sql.analysis.scope import Origin, Scope
from streams.sql.analysis.typed import Typer
from streams.sql.expressions import Expression, functions_of
from streams.sql.functions.table import RECORD_ORDER
from streams.sql.language.tree import expressions as tree
from streams.sql.language.tree.node import Identifier, Node, children
from streams.sql.planning.builder import Builder, select

BY_TIME: Final = f"struct(`{ROWTIME}`, `{ROWPARTITION}`, `{ROWOFFSET}`)"
"""The order of records of several partitions, which only time gives."""
_DELETED: Final = f"`{DELETED}`"


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of the key: its value, and the expressions in SELECT that mean it."""

    value: Expression
    same_as: tuple[tree.Expression, ...]
    name: str
    """The name that it has if SELECT gives it no other."""
    is_in_star: bool = False
    """Whether `*` stands for it, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Rows that flow into the rest of a plan."""

    view: str
    kind: Kind
    columns: dict[tuple[str, str], Expression]
    key: tuple[KeyColumn, ...] = ()
    scope: Scope
    window: WindowInfo | None = None
    rowtime: str = f"`{ROWTIME}`"
    deleted: str | None = None
    """Whether a row of a table is deleted."""
    order: str = RECORD_ORDER
    replaced: dict[Node, Expression] = field(default_factory=dict)
    has_time: bool = True
    """Whether the watermark is still known to Spark."""
    follows_time: bool = False
    """Whether rows know the stream time at which they were read."""

    def typer(self, catalog: Catalog) -> Typer:
        """What types expressions over these rows."""
        return Typer(catalog, self.columns, self.replaced, self.order)

    def window_columns(self) -> list[tuple[str, str]]:
        """The bounds of the window, if the key is windowed."""
        return [(name, quoted(name)) for name in WINDOW_COLUMNS] if self.window is not None else []

    def time_columns(self) -> list[tuple[str, str]]:
        """What intermediate views carry along beside the columns."""
        names = [] if self.order == quoted(ROWTIME) else [ROWPARTITION, ROWOFFSET]
        names += [TIME] if self.has_time else []
        names += [STREAM_TIME] if self.has_time and self.follows_time else []
        return [(ROWTIME, self.rowtime), *((name, quoted(name)) for name in names)]


def source_columns(origin: Origin) -> dict[tuple[str, str], Expression]:
    """The columns of a view of a topic."""
    return {(origin.name, name): Expression(quoted(name), kind) for name, kind in origin.types.items()}


def source_key(origin: Origin) -> tuple[KeyColumn, ...]:
    """The key of a stream or table."""
    found = []
    for column in origin.source.key:
        reference = tree.ColumnReference(Identifier(column.name), Identifier(origin.name))
        found.append(KeyColumn(Expression(quoted(column.name), column.sql_type), (reference,), column.name))
    return tuple(found)


def source_flow(view: str, origin: Origin) -> Flow:
    """The rows of a topic."""
    source = origin.source
    return Flow(
        view=view,
        kind=source.kind,
        columns=source_columns(origin),
        key=source_key(origin),
        scope=Scope([origin]),
        window=source.window,
        deleted=f"`{DELETED}`" if source.kind == "TABLE" else None,
    )


def filtered(flow: Flow, predicate: Expression | None, builder: Builder) -> Flow:
    """The rows of a stream for which a condition holds; of a table, the others are deleted."""
    if predicate is None:
        return flow
    if flow.deleted is None:
        view = builder.sql("filtered", f"SELECT * FROM {flow.view} WHERE {predicate.text}", predicate.functions)
        return replace(flow, view=view)
    others, gone = "*", f"NOT {predicate.text}"
    if flow.deleted == _DELETED:
        others, gone = f"* EXCEPT ({_DELETED})", f"({_DELETED} OR {gone})"
    text = f"SELECT {others}, {gone} AS {_DELETED} FROM {flow.view}"
    return replace(flow, view=builder.sql("filtered", text, predicate.functions), deleted=_DELETED)


def exploded(flow: Flow, calls: Sequence[tree.FunctionCall], catalog: Catalog, builder: Builder) -> Flow:
    """A row for each item of the arrays that table functions give; short ones are filled up with NULL."""
    typer = flow.typer(catalog)
    arrays: list[Expression] = []
    replaced: dict[Node, Expression] = {}
    for number, call in enumerate(calls):
        made = typer.call(call, typer.arguments(call))
        arrays.append(made)
        replaced[call] = Expression(f"`__item_{number}`", made.type)
    lists = [(f"__list_{number}", made.text) for number, made in enumerate(arrays)]
    text = f"SELECT *, {', '.join(f'{text} AS {quoted(name)}' for name, text in lists)} FROM {flow.view}"
    view = builder.sql("listed", text, functions_of(*arrays))
    zipped = ", ".join(f"coalesce({quoted(name)}, array())" for name, _ in lists)
    names = ", ".join(f"`__item_{number}`" for number in range(len(lists)))
    exploded_view = builder.sql(
        "exploded", f"SELECT * FROM {view} LATERAL VIEW inline(arrays_zip({zipped})) AS {names}"
    )
    return replace(flow, view=exploded_view, replaced={**flow.replaced, **replaced})


def selected_view(
    flow: Flow,
    columns: Sequence[tuple[str, Expression]],
    what: str,
    builder: Builder,
    more: Sequence[tuple[str, str]] = (),
) -> str:
    """A view of some columns, and what intermediate views carry along."""
    texts = [*((name, value.text) for name, value in columns), *more]
    return builder.sql(what, select(texts, flow.view), functions_of(*(value for _, value in columns)))


def references(node: Node, wanted: Callable[[Node], bool]) -> list[Node]:
    """The outermost parts of an expression that fulfil a condition, each once."""
    found: dict[Node, None] = {}
    pending = [node]
    while pending:
        current = pending.pop()
        if wanted(current):
            found[current] = None
        else:
            pending.extend(reversed(tuple(children(current))))
    return list(found)
