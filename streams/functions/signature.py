"""What is known about a user's function without running it."""

from typing import Any, Final, Literal, TypeAlias
from zlib import crc32

import msgspec

PREFIX: Final = "udf:"
"""What the names of users' functions begin with in plans."""
FunctionKind: TypeAlias = Literal["scalar", "aggregate", "table"]


class Argument(msgspec.Struct, frozen=True):
    """One argument of a function: its name, and its type as `str(SqlType)` prints it."""

    name: str
    type: str


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """One function that a file defines; several with the same name are its overloads."""

    name: str
    """In upper case."""
    kind: FunctionKind
    arguments: tuple[Argument, ...]
    result: str
    """Its type; for a table function that of one row."""
    is_variadic: bool = False
    """Whether the last argument may be repeated."""
    has_undo: bool = False
    """Whether an aggregate can be used on tables."""
    has_merge: bool = False
    """Whether an aggregate can be used in session windows."""
    description: str = ""
    author: str = ""
    version: str = ""
    file: str = ""
    """The name of its file in the folder."""

    @property
    def types(self) -> tuple[str, ...]:
        """The types of its arguments."""
        return tuple(one.type for one in self.arguments)

    @property
    def spark_name(self) -> str:
        """The name of this overload in Spark's SQL: the same in every process that has read the file."""
        return f"udf_{self.name.lower()}_{crc32(', '.join(self.types).encode()):08x}"


class Loaded(msgspec.Struct, frozen=True):
    """A signature, and the function or class itself."""

    signature: Signature
    target: Any
