"""Names: of streams and tables, and those that every stream has already."""

import re
from collections.abc import Iterator
from typing import Final

from streams.sql.language.checks.problem import Problem, at
from streams.sql.language.tree.node import Identifier

PSEUDO_COLUMNS: Final = frozenset({"ROWTIME", "ROWPARTITION", "ROWOFFSET", "WINDOWSTART", "WINDOWEND"})
WINDOW_BOUNDS: Final = frozenset({"WINDOWSTART", "WINDOWEND"})
_SOURCE_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")


def check_source_name(name: Identifier) -> Iterator[Problem]:
    """The name of a stream or table."""
    if not _SOURCE_NAME.fullmatch(name.name):
        message = f"Names of streams and tables have letters, digits, _ and - only, unlike {name.name!r}."
        yield at(name, message)


def check_column_name(name: Identifier) -> Iterator[Problem]:
    """The name of a declared column."""
    if name.name in PSEUDO_COLUMNS:
        yield at(name, f"{name.name} is a column that Caudal adds itself. Choose another name.")
