"""Plans run by Spark over rows that a test gives, in one batch or in several."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from pyspark.sql import DataFrame, Row, SparkSession

from streams.model.plan import DELETED, STREAM_TIME, TIME, Input, ProcessStep, QueryPlan, SqlStep
from streams.model.pull import PullPlan
from streams.model.sources import ROWOFFSET, ROWPARTITION, ROWTIME, WINDOW_COLUMNS, Source
from streams.model.types import quoted, spark_type
from streams.spark.queries.processors.steps import apply

Rows: TypeAlias = Sequence[Mapping[str, Any]]
"""Rows of a topic; those with `None` in the place of the value have `__deleted`."""
_RECORD: Final = {ROWTIME: "bigint", ROWPARTITION: "int", ROWOFFSET: "bigint"}
_TIMES: Final = (f"timestamp_millis(`{ROWTIME}`) AS `{TIME}`", f"`{ROWTIME}` AS `{STREAM_TIME}`")
"""What the reader adds to a record; here, none comes after a later one."""


def add_input(spark: SparkSession, one: Input, rows: Rows) -> DataFrame:
    """The view of a topic."""
    frame = _frame(spark, one.source, rows).selectExpr("*", *_TIMES)
    frame.createOrReplaceTempView(quoted(one.view))
    return frame


def _frame(spark: SparkSession, source: Source, rows: Rows, first: int = 0) -> DataFrame:
    kinds = {column.name: spark_type(column.sql_type) for column in source.columns} | _RECORD
    if source.window is not None:
        kinds |= dict.fromkeys(WINDOW_COLUMNS, "bigint")
    if source.kind == "TABLE":
        kinds[DELETED] = "boolean"
    schema = ", ".join(f"{quoted(name)} {kind}" for name, kind in kinds.items())
    complete = [
        {ROWTIME: number * 1000, ROWPARTITION: 0, ROWOFFSET: first + number, DELETED: False, **row}
        for number, row in enumerate(rows)
    ]
    return spark.createDataFrame([tuple(row.get(name) for name in kinds) for row in complete], schema)


def run_steps(spark: SparkSession, plan: QueryPlan) -> DataFrame:
    """The last view of a plan whose inputs are there."""
    frame = None
    for step in plan.steps:
        if isinstance(step, ProcessStep):
            frame = apply(step, spark.table(quoted(step.input)), mode=plan.mode)
        else:
            assert isinstance(step, SqlStep), step
            frame = spark.sql(step.text)
        frame.createOrReplaceTempView(quoted(step.view))
    assert frame is not None
    _check_result(frame, plan)
    return frame


def _check_result(frame: DataFrame, plan: QueryPlan) -> None:
    """The columns of the last view, with their types, are those that the contract promises."""
    sink = plan.sink
    promised = plan.columns if sink is None else sink.columns
    found = dict(frame.dtypes)
    for column in promised:
        wanted = spark_type(column.sql_type).replace("`", "")
        assert found.pop(column.name).replace("`", "") == wanted, (column, frame.dtypes)
    expected = {ROWTIME: "bigint"}
    if sink is not None and sink.window is not None:
        expected |= dict.fromkeys(WINDOW_COLUMNS, "bigint")
    if sink is not None and sink.kind == "TABLE":
        expected[DELETED] = "boolean"
    if sink is not None:
        assert found == expected, frame.dtypes


def results(spark: SparkSession, plan: QueryPlan, rows: Mapping[str, Rows]) -> list[dict[str, Any]]:
    """The rows that a plan makes of the rows of its sources, by their names."""
    for one in plan.inputs:
        add_input(spark, one, rows[one.source.name])
    return [row.asDict(recursive=True) for row in run_steps(spark, plan).collect()]


def pulled(spark: SparkSession, plan: PullPlan, sources: Mapping[str, Source], rows: Mapping[str, Rows]) -> list[Row]:
    """The rows of a pull query that Spark answers."""
    assert plan.sql is not None
    for name in plan.tables:
        frame = _frame(spark, sources[name], rows[name]).drop(DELETED, ROWPARTITION, ROWOFFSET)
        frame.createOrReplaceTempView(quoted(name))
    for one in plan.inputs:
        add_input(spark, one, rows[one.source.name])
    return spark.sql(plan.sql).collect()


def streamed(
    spark: SparkSession, folder: Path, plan: QueryPlan, batches: Sequence[Mapping[str, Rows]]
) -> list[list[dict[str, Any]]]:
    """The rows that a plan gives out for each batch of rows of its sources."""
    written: list[list[dict[str, Any]]] = []
    for one in plan.inputs:
        place = folder / one.view
        for number, batch in enumerate(batches):
            # One file for each batch, by names in their order.
            frame = _frame(spark, one.source, batch[one.source.name], number * 100).coalesce(1)
            frame.write.parquet(str(place / f"batch-{number:03d}"))
        schema = spark.read.parquet(str(place / "batch-000")).schema
        stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        frame = stream.parquet(f"{place}/*").selectExpr("*", *_TIMES)
        if one.watermark_ms is not None:
            frame = frame.withWatermark(TIME, f"{one.watermark_ms} milliseconds")
        frame.createOrReplaceTempView(quoted(one.view))

    def collect(frame: DataFrame, _: int) -> None:
        written.append([row.asDict(recursive=True) for row in frame.collect()])

    writer = run_steps(spark, plan).writeStream.outputMode(plan.mode).foreachBatch(collect)
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    return written
