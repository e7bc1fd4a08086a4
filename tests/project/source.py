"""The source files of the project, as syntax trees."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("core_broker", "schema_registry", "rest_proxy", "connect", "connectors", "streams", "deploy")


def modules(*folders: str) -> Iterator[str]:
    """Paths of all modules below some folders, relative to the root of the project."""
    for folder in folders:
        yield from (path.relative_to(ROOT).as_posix() for path in sorted((ROOT / folder).rglob("*.py")))


@cache
def text(path: str) -> str:
    """The source of a module."""
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def tree(path: str) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(text(path), path)
