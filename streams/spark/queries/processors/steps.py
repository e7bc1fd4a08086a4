"""Processors as steps of a query: a frame with state for each key."""

from typing import Final, Literal, assert_never

from pyspark import Accumulator
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import expr
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from streams.model.plan import TIME, Changes, ForeignKeyJoin, NewestRows, ProcessStep, SessionAggregates, UndoAggregates
from streams.model.types import BOOLEAN, contains, quoted, spark_type
from streams.model.types import TIME as SQL_TIME
from streams.spark.queries.processors.checks import check_aggregates
from streams.spark.queries.processors.foreign_key_processor import ForeignKeyProcessor
from streams.spark.queries.processors.rows import COLUMNS_USED, columns_needed, output_names, type_from_arrow
from streams.spark.queries.processors.session_processor import SessionProcessor
from streams.spark.queries.processors.table_processors import ChangesProcessor, NewestProcessor, UndoProcessor

_KEY: Final = "__key_"
_DELAY: Final = "spark.watermarkDelayMs"
"""Where Spark notes in the metadata of a column that it has a watermark."""


def apply(
    step: ProcessStep,
    frame: DataFrame,
    *,
    mode: Literal["append", "update"] = "update",
    extensions: str = "",
    late: "Accumulator[int] | None" = None,
) -> DataFrame:
    """The rows that a step makes of a frame; ValueError if that cannot be: a column or an aggregate is missing.

    `mode` is that of the plan; with `append`, Spark has several such steps in one query. `late` counts rows for
    sessions that have been closed.
    """
    check_aggregates(step, extensions)
    needed = columns_needed(step)
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        raise ValueError(f"{step.input} has no columns {', '.join(missing)}, which {step.view} needs")
    names = [*needed, *(name for name in frame.columns if name in COLUMNS_USED - {*needed})]
    keys = [_group_key(name, frame) for name in step.keys]
    delay_ms = _delay(frame) if step.reads_watermark else None
    rows = frame.select(*(_input(name, frame, delay_ms) for name in names), *keys)
    kinds = {column.name: column.sql_type for column in step.output}
    made = output_names(step)
    schema = ", ".join(f"{quoted(name)} {type_from_arrow(kinds.get(name, BOOLEAN))}" for name in made)
    # The flavour with rows, not the one with pandas: it keeps BIGINTs beside NULLs exact, and is no slower.
    grouped = rows.groupBy(*(quoted(_KEY + name) for name in step.keys))
    processed = grouped.transformWithState(
        _processor(step, extensions, delay_ms, late), schema, mode.title(), "None" if delay_ms is None else "EventTime"
    )
    exact = (f"CAST({quoted(name)} AS {spark_type(kinds.get(name, BOOLEAN))}) AS {quoted(name)}" for name in made)
    return processed.selectExpr(*exact) if any(contains(kind, SQL_TIME) for kind in kinds.values()) else processed


def _input(name: str, frame: DataFrame, delay_ms: int | None) -> Column:
    """A column of the input. Spark itself would drop rows before the watermark, which is not when sessions are closed:
    it gets a time that is never late, with the note that this is the column with the watermark."""
    if name != TIME or delay_ms is None:
        return frame[quoted(name)]
    return expr("TIMESTAMP '9999-12-31 00:00:00'").alias(name, metadata={_DELAY: delay_ms})


def _group_key(name: str, frame: DataFrame) -> Column:
    """What rows are grouped by: Spark's state for Python has no TIME among its keys."""
    key = frame[quoted(name)]
    has_time = "time(" in frame.schema[name].dataType.simpleString()
    return (key.cast("string") if has_time else key).alias(_KEY + name)


def _processor(
    step: ProcessStep, extensions: str, delay_ms: int | None, late: "Accumulator[int] | None"
) -> StatefulProcessor:
    match step.processor:
        case SessionAggregates() as sessions:
            return SessionProcessor(step, sessions, extensions, delay_ms, late)
        case UndoAggregates() as undo:
            return UndoProcessor(step, undo, extensions)
        case Changes() as changes:
            return ChangesProcessor(step, changes, extensions)
        case ForeignKeyJoin() as join:
            return ForeignKeyProcessor(step, join, extensions)
        case NewestRows() as newest:
            return NewestProcessor(step, newest, extensions)
        case _ as never:
            assert_never(never)


def _delay(frame: DataFrame) -> int | None:
    """The delay of the watermark on `__time`, if it has one."""
    delay = frame.schema[TIME].metadata.get(_DELAY)
    return None if delay is None else int(delay)
