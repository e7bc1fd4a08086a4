"""A plan as a streaming query of Spark, up to what executors stage for the driver."""

import math
from collections.abc import Mapping
from typing import Any, Final

from pyspark import Accumulator
from pyspark.sql import DataFrame, SparkSession

from streams.model.plan import DELETED, STREAM_TIME, Input, ProcessStep, QueryPlan, SessionAggregates, SqlStep
from streams.model.sources import ROWTIME, WINDOWEND, WINDOWSTART
from streams.model.types import quoted
from streams.spark.queries.input_rows import InputRows
from streams.spark.queries.inputs import arrow_schema, input_columns, stream_frame
from streams.spark.queries.spec import QuerySpec, cluster_of
from streams.spark.queries.staging import STAGED, Stage
from streams.spark.queries.steps import last_view, prepare

_CONF: Final = {
    # Spark waits for nothing, and plans each batch as it was planned before.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.pollingDelay": "5ms",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    # Hadoop starts a process for each local file that it makes, to set its permissions: so no files of checksums, too.
    "fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}
_STATE_PARTITIONS_MAX: Final = 8
"""Each partition of state costs every batch two tasks and a file, however few records there are."""


def session_settings(plan: QueryPlan) -> dict[str, str]:
    """How the session of a query is set, beside what its SQL needs."""
    most = max((given.source.partitions or 1 for given in plan.inputs), default=1)
    partitions = plan.state_partitions or min(math.ceil(most / 2), _STATE_PARTITIONS_MAX)
    return {
        **_CONF,
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.streaming.noDataMicroBatches.enabled": str(_gives_out_final(plan)).lower(),
    }


def waits_itself(plan: QueryPlan) -> bool:
    """Whether the reader of its only input waits for records; else one input would wait while another has some."""
    return len(plan.inputs) == 1 and not _gives_out_final(plan)


def _gives_out_final(plan: QueryPlan) -> bool:
    """Whether rows wait until their time is over: a batch without records gives them out then. With updates, the next
    batch with records clears the state as well."""
    sessions = (step.processor for step in plan.steps if isinstance(step, ProcessStep))
    return plan.has_state and (
        plan.mode == "append" or any(isinstance(one, SessionAggregates) and one.is_final for one in sessions)
    )


def output_frame(
    session: SparkSession,
    spec: QuerySpec,
    start: Mapping[str, dict[str, Any]],
    late: "Accumulator[int] | None" = None,
) -> DataFrame:
    """The rows that a plan writes, as a stream; `late` counts rows that its processors leave out."""
    plan = spec.plan
    prepare(session, session_settings(plan))
    inputs = {}
    for given in plan.inputs:
        rows, columns = input_rows(spec, given)
        idle_ms = spec.trigger_ms if waits_itself(plan) else None
        inputs[given.view] = stream_frame(session, rows, columns, start[given.view], idle_ms=idle_ms)
    frame = last_view(session, spec, inputs, late)
    return frame.select(*(quoted(name) for name in _written(plan, frame.columns)))


def staged_frame(frame: DataFrame, stage: Stage) -> DataFrame:
    """What executors report of the rows that they have encoded."""
    return frame.mapInArrow(stage, STAGED)


def input_rows(spec: QuerySpec, given: Input) -> tuple[InputRows, str]:
    """What executors need to read an input, and its columns in Spark's SQL."""
    plan = spec.plan
    asked = any(STREAM_TIME in step.text for step in plan.steps if isinstance(step, SqlStep))
    columns = input_columns(given, has_stream_time=asked)
    rows = InputRows(
        input=given,
        cluster=cluster_of(spec.cluster),
        registry=spec.registry,
        schema=arrow_schema(columns),
        query=plan.name,
        home=spec.home,
        on_error=plan.on_error,
        dead_letter_topic=plan.dead_letter_topic,
        goes_on_after_loss=spec.is_transient,
    )
    return rows, columns


def explained(session: SparkSession, spec: QuerySpec, mode: str) -> str:
    """Spark's plan of a query, without running it."""
    java: Any = output_frame(session, spec, {given.view: {} for given in spec.plan.inputs})._jdf  # noqa: SLF001 - `explain` prints
    jvm: Any = session._jvm  # noqa: SLF001
    return str(jvm.PythonSQLUtils.explainString(java.queryExecution(), mode))


def _written(plan: QueryPlan, found: list[str]) -> list[str]:
    """The columns that are encoded."""
    if plan.sink is None:
        return [*(column.name for column in plan.columns), *([DELETED] if DELETED in found else [])]
    names = [column.name for column in plan.sink.columns] + [ROWTIME]
    names += [WINDOWSTART, WINDOWEND] if plan.sink.window else []
    return names + ([DELETED] if plan.sink.kind == "TABLE" else [])
