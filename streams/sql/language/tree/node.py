"""What all parts of the tree have in common."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Final

from streams.errors import StatementError
from streams.sql.language.source import NOWHERE, Place

MAX_HEIGHT: Final = 150
"""Nodes above each other. What walks, compares or prints a tree may call itself for each of them."""


@dataclass(frozen=True, slots=True)
class Node:
    """A part of the tree. Two are equal when they say the same, wherever it stands."""

    place: Place = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Identifier(Node):
    """A name as it is stored: in upper case, unless it was written in quotes."""

    name: str


_CHILD_FIELDS: Final[dict[type[Node], tuple[str, ...]]] = {}


def _child_fields(kind: type[Node]) -> tuple[str, ...]:
    found = _CHILD_FIELDS.get(kind)
    if found is None:
        found = _CHILD_FIELDS[kind] = tuple(item.name for item in fields(kind) if item.name != "place")
    return found


def children(node: Node) -> Iterator[Node]:
    """The nodes right below a node, in the order of the text."""
    for name in _child_fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, Node))


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it, parents first."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(tuple(children(current))))


def refuse_high_tree(root: Node) -> None:
    """Raise StatementError at the first node that has too many above it."""
    level: list[Node] = [root]
    for _ in range(MAX_HEIGHT):
        level = [child for node in level for child in children(node)]
        if not level:
            return
    raise too_deep(level[0].place)


def too_deep(place: Place) -> StatementError:
    """The error of nesting without end."""
    return StatementError(
        "Nested too deeply here. Compute a part of it in a statement of its own.", start=place.start, end=place.end
    )
