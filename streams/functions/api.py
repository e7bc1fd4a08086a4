"""What files of users' functions are written with: `udf`, `udtf` and `udaf`.

The types of arguments and results are taken from annotations: Python's (`int` is BIGINT, `float` DOUBLE, `list[str]`
ARRAY<STRING>), or types of SQL as texts (`"DECIMAL(10, 2)"`), or they are given to the decorator.

    from streams.functions.api import udaf, udf, udtf

    @udf(description="The distance of two points.")
    def distance(x: float, y: float) -> float: ...

    @udtf
    def words(text: str) -> list[str]: ...          # one row for each

    @udaf
    class Product:
        def start(self): return 1.0
        def add(self, state, value: float): return state * value
        def merge(self, one, other): return one * other            # needed in session windows
        def undo(self, state, value): return state / value         # needed on tables
        def result(self, state) -> float: return state

NULL is None. A function that raises, or returns something else than its type, makes NULL; an aggregate ignores the row.
The state of an aggregate is stored: it may hold numbers, texts, bytes, times, lists, and dicts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, overload

from streams.functions.signature import FunctionKind

DEFINITION: Final = "__caudal_definition__"
"""The attribute under which decorated functions keep what they were decorated with."""

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Definition:
    """The arguments of a decorator."""

    kind: FunctionKind
    name: str | None = None
    arguments: tuple[str, ...] | None = None
    returns: str | None = None
    description: str | None = None
    author: str = ""
    version: str = ""


@overload
def udf(function: Decorated, /) -> Decorated: ...
@overload
def udf(
    name: str | None = None,
    /,
    *,
    arguments: Sequence[str] | None = None,
    returns: str | None = None,
    description: str | None = None,
    author: str = "",
    version: str = "",
) -> Callable[[Decorated], Decorated]: ...
def udf(given: Any = None, /, **options: Any) -> Any:
    """A function of single values. Several functions with the same name and other arguments are its overloads."""
    return _decorator("scalar", given, options)


@overload
def udtf(function: Decorated, /) -> Decorated: ...
@overload
def udtf(
    name: str | None = None,
    /,
    *,
    arguments: Sequence[str] | None = None,
    returns: str | None = None,
    description: str | None = None,
    author: str = "",
    version: str = "",
) -> Callable[[Decorated], Decorated]: ...
def udtf(given: Any = None, /, **options: Any) -> Any:
    """A function that returns a list, or yields: each item makes a row. `returns` is the ARRAY of them."""
    return _decorator("table", given, options)


@overload
def udaf(function: Decorated, /) -> Decorated: ...
@overload
def udaf(
    name: str | None = None,
    /,
    *,
    arguments: Sequence[str] | None = None,
    returns: str | None = None,
    description: str | None = None,
    author: str = "",
    version: str = "",
) -> Callable[[Decorated], Decorated]: ...
def udaf(given: Any = None, /, **options: Any) -> Any:
    """A class with the methods `start`, `add`, `result`, and `merge` and `undo` where they are needed."""
    return _decorator("aggregate", given, options)


def _decorator(kind: FunctionKind, given: Any, options: dict[str, Any]) -> Any:
    if callable(given):
        return _decorated(given, Definition(kind))
    arguments = options.pop("arguments", None)
    definition = Definition(kind, given, None if arguments is None else tuple(arguments), **options)
    return lambda function: _decorated(function, definition)


def _decorated(function: Any, definition: Definition) -> Any:
    setattr(function, DEFINITION, definition)
    return function
