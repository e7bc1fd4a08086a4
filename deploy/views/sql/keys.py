"""Which columns of a push query identify its rows, so that a newer row takes the place of an older one."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from deploy.views.sql.rows import Column
from streams.sql.language.tree.expressions import ColumnReference, Expression
from streams.sql.language.tree.node import Identifier
from streams.sql.language.tree.queries import Query, SelectAll, SelectExpression

KeysOf = Callable[[str], Sequence[str] | None]
"""The key columns of a table by its name; None for a stream, and for what is not known."""
_BOUNDS: Final = ("WINDOWSTART", "WINDOWEND")


def key_places(query: Query, columns: Sequence[Column], keys_of: KeysOf) -> tuple[int, ...] | None:
    """The places of the key columns in the result; None if its rows are events, which do not replace each other."""
    if query.group_by:
        places = _expression_places(query, query.group_by)
        windows = _expression_places(query, [ColumnReference(Identifier(name)) for name in _BOUNDS])
        if query.window is not None and not windows:
            return None  # one row for each window, and nothing distinguishes them
        found = {*places, *windows} if len(places) == len(set(query.group_by)) else set()
    else:
        keys = _keys_of_sources(query, keys_of)
        found = set() if keys is None else {place for place, one in enumerate(columns) if one.name in keys}
    return tuple(sorted(found)) if found and max(found) < len(columns) else None


def _keys_of_sources(query: Query, keys_of: KeysOf) -> set[str] | None:
    """The key columns of the tables that are read, and of their windows; None if a stream is among them."""
    found: set[str] = set()
    for source in query.sources:
        keys = keys_of(source.name.name)
        if keys is None:
            return None
        found |= {*keys, *(f"{source.known_as}_{key}" for key in keys)}
    return {*found, *_BOUNDS, *_aliases(query, found)}


def _aliases(query: Query, names: set[str]) -> Iterable[str]:
    for item in query.items:
        if isinstance(item, SelectExpression) and item.alias is not None:
            expression = item.expression
            if isinstance(expression, ColumnReference) and expression.name.name in names:
                yield item.alias.name


def _expression_places(query: Query, wanted: Iterable[Expression]) -> list[int]:
    """Where expressions are selected as they are; nothing behind a `*`, whose columns are not known here."""
    places = []
    chosen = set(wanted)
    for place, item in enumerate(query.items):
        if isinstance(item, SelectAll):
            break
        if isinstance(item, SelectExpression) and item.expression in chosen:
            places.append(place)
    return places
