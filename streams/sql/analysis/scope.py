"""The columns that a query can name, and expressions in which every column says which stream or table it is of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Final, TypeVar, cast

from streams.model.sources import PSEUDO_COLUMNS, WINDOW_COLUMNS, Source
from streams.model.types import BYTES, STRING, Array, Field, SqlType, Struct, parse_type
from streams.sql.analysis.mistakes import mistake
from streams.sql.language.formatting.expressions import format_expression
from streams.sql.language.tree.expressions import Argument, ColumnReference, Lambda
from streams.sql.language.tree.node import Identifier, Node
from streams.sql.language.words import closest

HEADERS: Final = Array(Struct((Field("KEY", STRING), Field("VALUE", BYTES))))
"""The type of a column of all headers."""
NO_SOURCE: Final = ""
"""What the columns are of that a query adds itself: window bounds, and the key of a join."""
_T = TypeVar("_T", bound=Node)


@dataclass(frozen=True)
class Origin:
    """A stream or table in FROM, by its name in the query."""

    name: str
    source: Source

    @cached_property
    def types(self) -> dict[str, SqlType]:
        """All its columns, with those that every source has."""
        found = {column.name: column.sql_type for column in self.source.columns}
        for header in self.source.headers:
            found[header.name] = HEADERS if header.key is None else BYTES
        added = {**PSEUDO_COLUMNS, **(WINDOW_COLUMNS if self.source.window else {})}
        return {**{name: parse_type(kind) for name, kind in added.items()}, **found}

    @cached_property
    def declared(self) -> tuple[str, ...]:
        """What `*` stands for."""
        bounds = tuple(WINDOW_COLUMNS) if self.source.window else ()
        value = [column.name for column in self.source.value]
        headers = [header.name for header in self.source.headers]
        return (*(column.name for column in self.source.key), *bounds, *value, *headers)


def _rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """A node with other parts."""
    changed: dict[str, object] = {}
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, Node):
            changed[field.name] = change(value)
        elif isinstance(value, tuple) and field.name != "place":
            changed[field.name] = tuple(change(item) if isinstance(item, Node) else item for item in value)
    return replace(node, **changed) if changed else node  # type: ignore[arg-type]  # fields of the node's class


def shown(node: Argument, *, qualified: bool) -> str:
    """An expression as text, with or without the names of sources before columns."""

    def plain(part: Node) -> Node:
        if isinstance(part, ColumnReference):
            is_added = part.source is not None and part.source.name == NO_SOURCE
            return part if qualified and not is_added else replace(part, source=None)
        return _rebuilt(part, plain)

    return format_expression(cast("Argument", plain(node)))


class Scope:
    """What names mean in a query."""

    def __init__(self, origins: Sequence[Origin], added: dict[str, SqlType] | None = None) -> None:
        self.origins = tuple(origins)
        self.added = added or {}

    def origin(self, name: str) -> Origin | None:
        """The stream or table of this name."""
        return next((origin for origin in self.origins if origin.name == name), None)

    def type(self, reference: ColumnReference) -> SqlType:
        """The type of a column, once it says what it is of."""
        if reference.source is None or reference.source.name == NO_SOURCE:
            return self.added[reference.name.name]
        origin = self.origin(reference.source.name)
        if origin is None:
            raise mistake(reference.source, f"{reference.source.name} is not a stream or table of this query.")
        return origin.types[reference.name.name]

    def resolved(self, node: _T, clause: str) -> _T:
        """The same, with the source's name before every column."""
        return cast("_T", self._resolved(node, clause, frozenset()))

    def _resolved(self, node: Node, clause: str, parameters: frozenset[str]) -> Node:
        match node:
            case ColumnReference(name, None) if name.name in parameters:
                return node
            case ColumnReference():
                return self._reference(node, clause)
            case Lambda():
                for parameter in node.parameters:
                    self._check_parameter(parameter)
                parameters |= {parameter.name for parameter in node.parameters}
            case _:
                pass
        return _rebuilt(node, lambda part: self._resolved(part, clause, parameters))

    def shown(self, node: Argument) -> str:
        """An expression as the user may have written it: with names of sources only where there are several."""
        return shown(node, qualified=len(self.origins) > 1)

    def _check_parameter(self, parameter: Identifier) -> None:
        if any(parameter.name in origin.types for origin in self.origins):
            message = f"{parameter.name} is a column already, and cannot be a lambda's parameter. Choose another name."
            raise mistake(parameter, message)

    def _reference(self, node: ColumnReference, clause: str) -> ColumnReference:
        name = node.name.name
        if node.source is None and name in self.added:
            return replace(node, source=Identifier(NO_SOURCE))
        origins = [
            origin
            for origin in self.origins
            if name in origin.types and (node.source is None or node.source.name == origin.name)
        ]
        if len(origins) > 1:
            could = " or ".join(f"{origin.name}.{name}" for origin in origins)
            raise mistake(node, f"{clause} column '{name}' is ambiguous. Could be {could}.")
        if not origins:
            raise mistake(node, f"{clause} column '{name}' cannot be resolved.{self._meant(name)}")
        return replace(node, source=Identifier(origins[0].name))

    def _meant(self, name: str) -> str:
        names = {column for origin in self.origins for column in origin.types}
        exact = next((one for one in sorted(names) if one.upper() == name.upper()), None)
        if exact is not None:
            return f" Did you mean `{exact}`? Names in other than upper case need backquotes."
        meant = closest(name, sorted(names))
        return f" Did you mean {meant}?" if meant else ""
