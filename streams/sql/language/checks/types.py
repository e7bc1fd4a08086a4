"""Types: names that do not exist, bounds of DECIMAL, fields that occur twice."""

from collections.abc import Collection, Iterator
from typing import Final

from streams.sql.language.checks.problem import Problem, at
from streams.sql.language.tree.node import Identifier, Node, walk
from streams.sql.language.tree.types import TYPE_NAMES, CustomType, DecimalType, MapType, StructType
from streams.sql.language.words import closest

MAX_PRECISION: Final = 38
_NAMES_ELSEWHERE: Final = {
    "BINARY": "BYTES",
    "BLOB": "BYTES",
    "BOOL": "BOOLEAN",
    "BYTE": "INTEGER",
    "CHAR": "STRING",
    "CLOB": "STRING",
    "DATETIME": "TIMESTAMP",
    "FLOAT": "DOUBLE",
    "INT64": "BIGINT",
    "JSON": "STRING",
    "LONG": "BIGINT",
    "NUMBER": "DECIMAL(p, s)",
    "NUMERIC": "DECIMAL(p, s)",
    "REAL": "DOUBLE",
    "SHORT": "INTEGER",
    "SMALLINT": "INTEGER",
    "TEXT": "STRING",
    "TINYINT": "INTEGER",
    "UUID": "STRING",
    "VARBINARY": "BYTES",
}


def check_types(root: Node, known: Collection[str]) -> Iterator[Problem]:
    """All types below a node; `known` are names that CREATE TYPE has given."""
    for node in walk(root):
        match node:
            case CustomType(name):
                yield from _custom(node, name, known)
            case DecimalType(precision, scale):
                yield from _decimal(node, precision, scale)
            case StructType(fields):
                yield from repeated(
                    [item.name for item in fields], "Field {} occurs twice in this STRUCT. Rename one of the two."
                )
            case _:
                pass


def _custom(node: CustomType, name: Identifier, known: Collection[str]) -> Iterator[Problem]:
    if name.name in known:
        return
    meant = _NAMES_ELSEWHERE.get(name.name) or closest(name.name, [*TYPE_NAMES, *known], similarity=0.8)
    if meant is not None:
        yield at(node, f"There is no type {name.name}. Write {meant}, or define it with CREATE TYPE.")


def _decimal(node: DecimalType, precision: int, scale: int) -> Iterator[Problem]:
    if not 1 <= precision <= MAX_PRECISION:
        yield at(node, f"The precision of a DECIMAL is between 1 and {MAX_PRECISION}, not {precision}.")
    elif not 0 <= scale <= precision:
        yield at(node, f"The scale of DECIMAL({precision}, ...) is between 0 and {precision}, not {scale}.")


def contains_map(node: Node) -> bool:
    """Whether a type has a MAP in it."""
    return any(isinstance(part, MapType) for part in walk(node))


def repeated(names: list[Identifier], message: str) -> Iterator[Problem]:
    """A problem at each name that was there before; its message has a place for the name."""
    seen: set[str] = set()
    for name in names:
        if name.name in seen:
            yield at(name, message.format(name.name))
        seen.add(name.name)
