"""The types of SQL that annotations of Python mean."""

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any, Final

from streams.model.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Map,
    SqlType,
    parse_type,
)

_PLAIN: Final[Mapping[object, SqlType]] = {
    bool: BOOLEAN,
    int: BIGINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    time: TIME,
    date: DATE,
    datetime: TIMESTAMP,
}
_LISTS: Final = frozenset({list, Sequence, Iterable, Iterator})


def sql_type(annotation: Any, function: Callable[..., object]) -> SqlType:
    """The type that an annotation of a function means; ValueError if it means none."""
    if isinstance(annotation, str):
        return _from_text(annotation, function)
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in {types.UnionType, typing.Union}:
        # NULL is possible everywhere.
        parts = tuple(part for part in parts if part is not types.NoneType)
        if len(parts) == 1:
            return sql_type(parts[0], function)
    elif origin in _LISTS and len(parts) == 1:
        return Array(sql_type(parts[0], function))
    elif origin in {dict, Mapping} and len(parts) == 2:
        return Map(sql_type(parts[0], function), sql_type(parts[1], function))
    raise ValueError(f"{annotation!r} is no type of SQL; write one as a text, such as 'DECIMAL(10, 2)'")


def _from_text(text: str, function: Callable[..., object]) -> SqlType:
    """Of a text: an annotation of Python that was not evaluated, or else a type of SQL."""
    try:
        scope = getattr(inspect.unwrap(function), "__globals__", {})
        # The text is a part of the user's own program, which has been run anyway.
        meant = eval(text, scope)
    except Exception:  # noqa: BLE001  # whatever it is, it is not Python
        return read_type(text)
    return read_type(text) if isinstance(meant, str) else sql_type(meant, function)


def read_type(text: str) -> SqlType:
    """A type of SQL in capital or small letters, except for the names of fields; ValueError for any other text."""
    try:
        return parse_type(text)
    except ValueError:
        return parse_type(text.upper())
