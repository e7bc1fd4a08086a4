"""The items of SELECT: `*` spelled out, and the names that columns get which have none."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streams.model.types import Struct
from streams.sql.analysis.mistakes import mistake
from streams.sql.analysis.scope import NO_SOURCE, Origin, Scope
from streams.sql.analysis.typed import Typer
from streams.sql.language.tree import expressions as tree
from streams.sql.language.tree.node import Identifier, Node
from streams.sql.language.tree.queries import Query, SelectAll, SelectExpression, SelectFields


@dataclass(frozen=True, slots=True)
class Item:
    """A column of the result: its name, its expression, and where the statement says it."""

    name: str
    expression: tree.Expression
    node: Node


def selected(query: Query, scope: Scope, typer: Typer, *, without: Sequence[str] = ()) -> tuple[Item, ...]:
    """The columns of the result in their order; `*` leaves out the columns in `without`."""
    names = _Names(scope)
    items: list[Item] = []
    for item in query.items:
        match item:
            case SelectAll():
                items.extend(_all(item, scope, without))
            case SelectFields(struct):
                items.extend(_fields(item, scope.resolved(struct, "SELECT"), typer, names))
            case SelectExpression(expression, alias):
                resolved = scope.resolved(expression, "SELECT")
                name = names.of(resolved) if alias is None else alias.name
                items.append(Item(name, resolved, item))
    _refuse_repeated(items)
    return tuple(items)


class _Names:
    """Names of columns without an alias."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._taken = {name for origin in scope.origins for name in origin.types}
        self._generated = 0
        self._fields: dict[str, int] = {}

    def of(self, expression: tree.Expression) -> str:
        match expression:
            case tree.ColumnReference(name, source):
                holders = [origin for origin in self._scope.origins if name.name in origin.types]
                prefixed = source is not None and source.name != NO_SOURCE and len(holders) > 1
                return f"{source.name}_{name.name}" if prefixed and source is not None else name.name
            case tree.Access(_, steps) if isinstance(steps[-1], tree.FieldAccess):
                return self.field(steps[-1].name.name)
            case _:
                return self._next()

    def field(self, name: str) -> str:
        """The name of a field, and a number behind it if there was one before."""
        count = self._fields.get(name, 0)
        self._fields[name] = count + 1
        return f"{name}_{count}" if count else name

    def _next(self) -> str:
        while f"KSQL_COL_{self._generated}" in self._taken:
            self._generated += 1
        self._generated += 1
        return f"KSQL_COL_{self._generated - 1}"


def _all(item: SelectAll, scope: Scope, without: Sequence[str]) -> Iterator[Item]:
    if item.source is None:
        for name in scope.added:
            if name not in without:
                yield Item(name, tree.ColumnReference(Identifier(name), Identifier(NO_SOURCE)), item)
    origins: Sequence[Origin] = scope.origins
    if item.source is not None:
        origins = [origin for origin in origins if origin.name == item.source.name]
        if not origins:
            raise mistake(item.source, f"{item.source.name} is not a stream or table of this query.")
    for origin in origins:
        for name in origin.declared:
            if name not in without:
                shown = f"{origin.name}_{name}" if len(scope.origins) > 1 else name
                yield Item(shown, tree.ColumnReference(Identifier(name), Identifier(origin.name)), item)


def _fields(item: SelectFields, struct: tree.Expression, typer: Typer, names: _Names) -> Iterator[Item]:
    kind = typer.expression(struct).type
    if not isinstance(kind, Struct):
        raise mistake(item, f"->* needs a STRUCT, not {kind}.")
    base, steps = (struct.base, struct.steps) if isinstance(struct, tree.Access) else (struct, ())
    for field in kind.fields:
        step = tree.FieldAccess(Identifier(field.name), place=item.place)
        yield Item(names.field(field.name), tree.Access(base, (*steps, step), place=item.place), item)


def _refuse_repeated(items: Sequence[Item]) -> None:
    seen: set[str] = set()
    for item in items:
        if item.name in seen:
            message = f"Column '{item.name}' is selected more than once. Give one of the two another name with AS."
            raise mistake(item.node, message)
        seen.add(item.name)
