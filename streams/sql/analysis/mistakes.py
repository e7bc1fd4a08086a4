"""Errors in statements, at the part of the text that is wrong."""

from collections.abc import Iterator
from contextlib import contextmanager

from streams.errors import StatementError
from streams.sql.errors import TypeProblem, WrongArguments
from streams.sql.language.tree.node import Node


def mistake(node: Node, message: str) -> StatementError:
    """The error of a part of the tree."""
    return StatementError(message, start=node.place.start, end=node.place.end)


@contextmanager
def typing(node: Node, prefix: str = "") -> Iterator[None]:
    """Problems with types, met while this part of the tree is typed, are its errors."""
    try:
        yield
    except WrongArguments as problem:
        listed = "\n".join(f"{problem.name}{one}" for one in problem.alternatives)
        message = (
            f"{prefix}Function '{problem.name}' does not accept parameters {problem.given}.\n"
            f"Valid alternatives are:\n{listed}"
        )
        raise mistake(node, message) from problem
    except TypeProblem as problem:
        raise mistake(node, f"{prefix}{problem}") from problem
