"""What the last step of a plan gives out: the columns of a sink, or those of a client."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from streams.model.plan import DELETED, RESERVED
from streams.model.sources import PSEUDO_COLUMNS, ROWTIME, WINDOW_COLUMNS, Column, TimestampColumn
from streams.model.types import NULL, TIMESTAMP
from streams.sql.analysis.catalog import Catalog
from streams.sql.analysis.mistakes import mistake
from streams.sql.analysis.projection import Item
from streams.sql.analysis.scope import Scope
from streams.sql.expressions import Expression, functions_of, text_literal
from streams.sql.functions.table import call
from streams.sql.language.tree import expressions as tree
from streams.sql.language.tree.node import Node
from streams.sql.language.tree.queries import SelectAll
from streams.sql.planning.builder import Builder, select
from streams.sql.planning.flow import Flow, KeyColumn

_SYSTEM = frozenset({*PSEUDO_COLUMNS, *WINDOW_COLUMNS})


@dataclass(frozen=True, slots=True)
class Result:
    """The columns of a result, by their part of the record."""

    key: tuple[tuple[str, Expression], ...]
    value: tuple[tuple[str, Expression], ...]

    @property
    def key_columns(self) -> tuple[Column, ...]:
        """The key as the model holds it."""
        return _columns(self.key)

    @property
    def value_columns(self) -> tuple[Column, ...]:
        """The value as the model holds it."""
        return _columns(self.value)


def _columns(named: Sequence[tuple[str, Expression]]) -> tuple[Column, ...]:
    return tuple(Column(name, str(value.type)) for name, value in named)


def typed_items(flow: Flow, items: Sequence[Item], catalog: Catalog) -> list[tuple[str, Expression]]:
    """The columns of SELECT, all with types."""
    typer = flow.typer(catalog)
    found = []
    for item in items:
        value = typer.expression(item.expression)
        if value.type == NULL:
            raise mistake(item.node, "The type of this column is not known: write CAST(NULL AS type).")
        found.append((item.name, value))
    return found


def stored_result(flow: Flow, items: Sequence[Item], catalog: Catalog, sink: str, statement: Node) -> Result:
    """The columns of a sink: each column of the key has to be selected once."""
    typed = typed_items(flow, items, catalog)
    key: list[tuple[str, Expression]] = []
    taken: set[int] = set()
    for column in flow.key:
        number = _position(column, items, flow.scope, sink, statement)
        if number is None:
            key.append((column.name, column.value))
            continue
        taken.add(number)
        key.append((items[number].name, column.value))
    value = tuple(one for number, one in enumerate(typed) if number not in taken)
    _check_names(items, key, value, statement)
    if not value:
        raise mistake(statement, "The projection contains no value columns. Select a column that is not in the key.")
    return Result(tuple(key), value)


def _position(column: KeyColumn, items: Sequence[Item], scope: Scope, sink: str, statement: Node) -> int | None:
    """Which item is a column of the key; None if `*` may stand for it."""
    found = [number for number, item in enumerate(items) if item.expression in column.same_as]
    names = [scope.shown(one) for one in column.same_as]
    if not found and column.is_in_star and any(isinstance(item.node, SelectAll) for item in items):
        return None
    if not found:
        message = (
            f"Key missing from projection (ie, SELECT). The query used to build `{sink}` must include the key column "
            f"{' or '.join(names)} in its projection (eg, SELECT {names[0]}...)."
        )
        raise mistake(items[0].node if items else statement, message)
    equivalent = {items[number].expression for number in found}
    if len(found) > 1 and len(equivalent) == 1:
        shown = " and ".join(f"`{items[number].name}`" for number in found)
        message = (
            f"The projection contains a key column ({names[0]}) more than once, aliased as: {shown}. Each key column "
            f"must only be in the projection once. If you intended to copy the key into the value, use AS_VALUE: "
            f"AS_VALUE({names[0]}) AS {items[found[-1]].name}."
        )
        raise mistake(items[found[1]].node, message)
    return found[0]


def _check_names(
    items: Sequence[Item],
    key: Sequence[tuple[str, Expression]],
    value: Sequence[tuple[str, Expression]],
    statement: Node,
) -> None:
    nodes = {item.name: item.node for item in items}
    seen: set[str] = set()
    for name, _ in (*key, *value):
        node = nodes.get(name, statement)
        if name in _SYSTEM or name in RESERVED:
            message = f"'{name}' is a reserved column name. You cannot use it as an alias for a column."
            raise mistake(node, message)
        if name in seen:
            raise mistake(node, f"Column '{name}' is there twice. Give one of the two another name with AS.")
        seen.add(name)


def write_result(flow: Flow, result: Result, builder: Builder, timestamp: TimestampColumn | None) -> None:
    """The view that is written into the sink."""
    columns = (*result.key, *result.value)
    more = [(ROWTIME, _rowtime(flow, dict(columns), timestamp)), *flow.window_columns()]
    if flow.deleted is not None:
        more.append((DELETED, flow.deleted))
    _final(flow, columns, more, builder)


def _rowtime(flow: Flow, columns: Mapping[str, Expression], timestamp: TimestampColumn | None) -> str:
    """The time of a record; that of the result where the column of the time has none."""
    if timestamp is None:
        return flow.rowtime
    value = columns[timestamp.column]
    if timestamp.pattern is not None:
        value = call("STRINGTOTIMESTAMP", [value, text_literal(timestamp.pattern)])
    elif value.type == TIMESTAMP:
        value = call("UNIX_TIMESTAMP", [value])
    return f"coalesce({value.text}, {flow.rowtime})"


def give_result(flow: Flow, columns: Sequence[tuple[str, Expression]], builder: Builder) -> tuple[Column, ...]:
    """The view whose rows go to a client, and their columns."""
    names = {name for name, _ in columns}
    more = [] if ROWTIME in names else [(ROWTIME, flow.rowtime)]
    if flow.deleted is not None:
        more.append((DELETED, flow.deleted))
    _final(flow, columns, more, builder)
    return _columns(columns)


def _final(
    flow: Flow, columns: Sequence[tuple[str, Expression]], more: Sequence[tuple[str, str]], builder: Builder
) -> None:
    texts = [*((name, value.text) for name, value in columns), *more]
    builder.sql("result", select(texts, flow.view), functions_of(*(value for _, value in columns)))


def partitioned(flow: Flow, by: Sequence[tree.Expression], items: Sequence[Item], catalog: Catalog) -> Flow:
    """The rows of a stream under another key."""
    if flow.kind == "TABLE":
        message = "Partitioning a table is not supported: PARTITION BY is for streams. Use GROUP BY, or remove it."
        raise mistake(by[0], message)
    if flow.window is not None:
        raise mistake(by[0], "Implicit repartitioning of windowed sources is not supported. Remove PARTITION BY.")
    if isinstance(by[0], tree.NullLiteral):
        return replace(flow, key=())
    typer = flow.typer(catalog)
    keys = []
    generated = 0
    for node in dict.fromkeys(by):
        name = next((item.name for item in items if item.expression == node), "")
        if not name and isinstance(node, tree.ColumnReference):
            name = node.name.name
        if not name:
            taken = {item.name for item in items}
            while f"KSQL_COL_{generated}" in taken:
                generated += 1
            name = f"KSQL_COL_{generated}"
            generated += 1
        keys.append(KeyColumn(typer.expression(node), (node,), name, is_in_star=True))
    return replace(flow, key=tuple(keys))
