"""What a check finds."""

from dataclasses import dataclass

from streams.sql.language.source import Place
from streams.sql.language.tree.node import Node


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake: a sentence that says what to write instead, and the place."""

    message: str
    place: Place


def at(node: Node, message: str) -> Problem:
    """A problem with a part of the tree."""
    return Problem(message, node.place)
