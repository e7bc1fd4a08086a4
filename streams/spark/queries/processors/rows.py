"""Rows of Spark as processors read and make them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streams.functions.conversion import from_arrow
from streams.model.plan import (
    DELETED,
    STREAM_TIME,
    TIME,
    Aggregate,
    Changes,
    ForeignKeyJoin,
    NewestRows,
    Processor,
    ProcessStep,
    SessionAggregates,
    UndoAggregates,
)
from streams.model.sources import ROWOFFSET, ROWPARTITION, ROWTIME, Column
from streams.model.types import SqlType, parse_type, spark_type

if TYPE_CHECKING:
    from pyspark.sql import Row

SIDE: Final = "__side"
SIGN: Final = "__sign"
CHANGE: Final = "__change"
COLUMNS_USED: Final = frozenset({ROWPARTITION, ROWOFFSET, STREAM_TIME})
"""Columns of the input that steps use if they are there."""
_TIME_OR_NAME: Final = re.compile(r"`(?:[^`]|``)*`|\btime\(3\)")
Pick: TypeAlias = Callable[["Row"], Any]


class Fields:
    """Takes values out of rows, all of which have the same fields."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        """`columns` are the types of those that have maps in them, which Arrow gives as lists of pairs."""
        self._types = columns
        self._positions: dict[str, int] = {}

    def read(self, rows: Iterable["Row"]) -> list["Row"]:
        """All rows in the order of the records that they come from, if that is known; else as Spark gives them."""
        found = list(rows)
        if found and not self._positions:
            names: Sequence[str] = found[0].__fields__
            self._positions = {name: position for position, name in enumerate(names)}
        if ROWPARTITION in self._positions and ROWOFFSET in self._positions:
            partition, offset = self._positions[ROWPARTITION], self._positions[ROWOFFSET]
            found.sort(key=lambda row: (row[partition], row[offset]))
        return found

    def has(self, name: str) -> bool:
        """Whether the rows that were read have such a field."""
        return name in self._positions

    def pick(self, name: str) -> Pick:
        """What takes a field out of a row; for rows that have been read."""
        position = self._positions[name]
        kind = self._types.get(name)
        if kind is None or "MAP<" not in kind:
            return lambda row: row[position]
        convert = from_arrow(parse_type(kind))
        return lambda row: convert(row[position])

    def pick_all(self, names: Sequence[str]) -> Callable[["Row"], list[object]]:
        """What takes several fields out of a row."""
        picks = [self.pick(name) for name in names]
        return lambda row: [pick(row) for pick in picks]


def argument_types(aggregates: Iterable[Aggregate]) -> dict[str, str]:
    """The types of the columns that aggregates read."""
    return {name: kind for one in aggregates for name, kind in zip(one.arguments, one.argument_types, strict=False)}


def column_types(columns: Iterable[Column]) -> dict[str, str]:
    """The types of columns by their names."""
    return {column.name: column.type for column in columns}


def type_from_arrow(kind: SqlType) -> str:
    """A type in Spark's SQL as Spark reads it from Arrow: all times have microseconds then."""
    return _TIME_OR_NAME.sub(lambda found: "time(6)" if found[0] == "time(3)" else found[0], spark_type(kind))


def output_names(step: ProcessStep) -> list[str]:
    """The columns of the rows that a step makes."""
    names = [column.name for column in step.output]
    return names if isinstance(step.processor, Changes) else [*names, DELETED]


def columns_needed(step: ProcessStep) -> list[str]:
    """The columns of its input that a step cannot do without."""
    time = [TIME] if step.reads_watermark else []
    return list(dict.fromkeys([*step.keys, *_own_columns(step.processor), ROWTIME, *time]))


def _own_columns(processor: Processor) -> list[str]:
    match processor:
        case SessionAggregates(aggregates=aggregates):
            return [name for one in aggregates for name in one.arguments]
        case UndoAggregates(aggregates=aggregates):
            return [*(name for one in aggregates for name in one.arguments), SIGN]
        case Changes(columns=columns):
            return [*columns, DELETED]
        case ForeignKeyJoin(left_key=left_key, left=left, right=right):
            return [*left_key, *left, *right, SIDE, SIGN, DELETED]
        case NewestRows(order=order, columns=columns):
            return [order, *columns, DELETED]
