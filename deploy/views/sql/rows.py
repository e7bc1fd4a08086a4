"""The rows of a SELECT: their columns, cells, and the table that a push query keeps up to date."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from deploy.views.text import printable

Row = tuple[Any, ...]

CELL_CHARACTERS_MAX: Final = 200
KEYS_MAX: Final = 10_000
"""Rows of a table that are kept: those that changed last."""
JUST_CHANGED_S: Final = 1.0
_NUMBERS: Final = ("INTEGER", "BIGINT", "DOUBLE", "DECIMAL")
_OPENING, _CLOSING = "<(", ">)"
_MISSING: Final = "null"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a result."""

    name: str
    type: str
    is_key: bool = False

    @property
    def heading(self) -> str:
        """Its name, as tables take it: numbers are aligned to the right."""
        return f"{self.name}#" if self.type.startswith(_NUMBERS) else self.name


def columns_of(schema: str) -> list[Column]:
    """The columns of a header such as "`ID` INTEGER KEY, `TAGS` ARRAY<STRING>"."""
    return [_column(part.strip()) for part in _parts(schema) if part.strip()]


def cell(value: object, *, is_whole: bool = False) -> str:
    """A value in a table, cut to what can be read there."""
    match value:
        case None:
            text = _MISSING
        case bool():
            text = "true" if value else "false"
        case str():
            text = value
        case dict() | list():
            text = json.dumps(value, ensure_ascii=False)
        case _:
            text = str(value)
    shown = printable(text).replace("\t", " ").replace("\n", "\\n")
    return shown if is_whole or len(shown) <= CELL_CHARACTERS_MAX else f"{shown[:CELL_CHARACTERS_MAX]}…"


def as_object(columns: Sequence[Column], row: Sequence[Any], *, is_deleted: bool = False) -> dict[str, Any]:
    """A row by the names of its columns, for programs; a deleted row of a table says so."""
    found = {column.name: value for column, value in zip(columns, row, strict=False)}
    return {**found, "_deleted": True} if is_deleted else found


@dataclass(slots=True)
class LiveTable:
    """The rows of a push query over a table: each key once, with its latest values."""

    keys: tuple[int, ...]
    """The places of the key columns."""
    changes: int = 0
    _rows: dict[Row, tuple[Row, float]] = field(default_factory=dict)
    """Rows by their keys, the one that changed last at the end, and when they changed."""

    def take(self, values: Sequence[Any], *, is_deleted: bool, now_s: float) -> None:
        """A row that has come; one may delete the row of its key."""
        key = tuple(_hashable(values[place]) for place in self.keys)
        self.changes += 1
        self._rows.pop(key, None)
        if not is_deleted:
            self._rows[key] = tuple(values), now_s
        if len(self._rows) > KEYS_MAX:
            del self._rows[next(iter(self._rows))]

    def __len__(self) -> int:
        return len(self._rows)

    def latest(self, count: int, *, now_s: float) -> list[tuple[Row, bool]]:
        """The rows that changed last, in the order of their keys; and whether each has just changed."""
        chosen = islice(reversed(self._rows.items()), count)
        ordered = sorted(chosen, key=lambda item: tuple(map(_sortable, item[0])))
        return [(row, now_s - changed_s < JUST_CHANGED_S) for _, (row, changed_s) in ordered]


def _sortable(value: object) -> tuple[int, float, str]:
    """Numbers by size, before texts by letters."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return 0, float(value), ""
    return 1, 0.0, str(value)


def _hashable(value: object) -> object:
    return json.dumps(value, sort_keys=True) if isinstance(value, (dict, list)) else value


def _column(text: str) -> Column:
    if text.startswith("`"):
        end = 1
        while end < len(text):
            if text[end] == "`":
                if text[end + 1 : end + 2] != "`":
                    break
                end += 1
            end += 1
        name, rest = text[1:end].replace("``", "`"), text[end + 1 :].strip()
    else:
        name, _, rest = text.partition(" ")
    for mark in (" PRIMARY KEY", " KEY"):
        if rest.endswith(mark):
            return Column(name, rest.removesuffix(mark), is_key=True)
    return Column(name, rest)


def _parts(schema: str) -> list[str]:
    """The text between commas that are neither in a name nor within a type."""
    parts, depth, is_quoted, begin = [], 0, False, 0
    for place, letter in enumerate(schema):
        if letter == "`":
            is_quoted = not is_quoted
        elif is_quoted:
            continue
        elif letter in _OPENING:
            depth += 1
        elif letter in _CLOSING:
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(schema[begin:place])
            begin = place + 1
    return [*parts, schema[begin:]]


def header_columns(header: Mapping[str, Any]) -> list[Column]:
    """The columns that a header names, in either of ksqlDB's forms."""
    if names := header.get("columnNames"):
        return [Column(str(name), str(kind)) for name, kind in zip(names, header["columnTypes"], strict=True)]
    return columns_of(str(header.get("schema") or ""))
