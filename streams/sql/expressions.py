"""A piece of Spark's SQL with its type, and the small parts that such pieces are put together from."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streams.model.types import BOOLEAN, STRING, SqlType


@dataclass(frozen=True, slots=True)
class Expression:
    """A piece of Spark's SQL; `literal` is its value if that is known, `functions` are the Python functions in it."""

    text: str
    type: SqlType
    literal: object = None
    functions: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Lambda:
    """A lambda function: the names of its parameters, and its body once it is known what stands for them."""

    parameters: tuple[str, ...]
    body: Callable[[Sequence[Expression]], Expression]


def condition(predicate: Expression) -> Expression:
    """What WHERE, HAVING and CASE make of a predicate: NULL is not true."""
    return Expression(f"coalesce({predicate.text}, false)", BOOLEAN, functions=predicate.functions)


def functions_of(*parts: Expression) -> frozenset[str]:
    """The Python functions that any of them calls."""
    return frozenset().union(*(part.functions for part in parts))


def text_literal(value: str) -> Expression:
    """A text as a literal."""
    return Expression(sql_text(value), STRING, literal=value)


def sql_text(value: str) -> str:
    """A text between quotes; nothing in it can end the literal."""
    return "'" + re.sub(r"[\\']", r"\\\g<0>", value) + "'"


def sql_double(value: float) -> str:
    """A double in Spark's SQL."""
    if math.isfinite(value):
        return f"{value!r}D"
    name = "NaN" if math.isnan(value) else "Infinity"
    return f"double('{'-' if value < 0 else ''}{name}')"
