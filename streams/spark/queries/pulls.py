"""SELECTs of what there is now: over snapshots of tables, and over streams until their present end."""

from collections.abc import Mapping
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.ipc
from pyspark.sql import DataFrame, SparkSession

from streams.errors import EngineError
from streams.formats.registry import RegistrySettings
from streams.model.pull import PullPlan
from streams.model.types import parse_type, quoted, spark_type
from streams.spark.queries.input_rows import InputRows
from streams.spark.queries.inputs import arrow_schema, input_columns, table_frame
from streams.spark.queries.spec import cluster_of
from streams.spark.queries.staging import json_rows
from streams.spark.queries.steps import add_view, prepare, register_functions
from streams.spark.topics.decoded import cast_column

_BYTES_MAX: Final = 48 << 20
"""Of a result, as JSON."""


class Snapshot(msgspec.Struct, frozen=True):
    """A table as it is now: a file of Arrow, with these columns and their types."""

    file: str
    columns: tuple[tuple[str, str], ...]


def run_select(
    session: SparkSession,
    plan: PullPlan,
    tables: Mapping[str, Snapshot],
    *,
    cluster: dict[str, str],
    registry: RegistrySettings,
    extensions: str,
) -> list[msgspec.Raw]:
    """The rows of a SELECT as JSON values."""
    assert plan.sql is not None, "what has no SELECT is looked up without Spark"
    prepare(session, {"spark.sql.adaptive.enabled": "false"})
    for name, snapshot in tables.items():
        add_view(_snapshot_frame(session, snapshot), name)
    for given in plan.inputs:
        columns = input_columns(given, has_stream_time=False)
        rows = InputRows(
            input=given,
            cluster=cluster_of(cluster),
            registry=registry,
            schema=arrow_schema(columns),
            goes_on_after_loss=True,
        )
        add_view(table_frame(session, rows, columns), given.view)
    register_functions(session, plan.functions, extensions)
    frame = session.sql(plan.sql)
    if plan.limit is not None:
        frame = frame.limit(plan.limit)
    found: list[msgspec.Raw] = []
    size = 0
    for batch in frame.toArrow().to_batches():
        for row in json_rows(batch, plan.columns):
            data = msgspec.json.encode(row)
            size += len(data)
            if size > _BYTES_MAX:
                reason = f"the result has more than {_BYTES_MAX >> 20} MB: choose fewer columns, or add a LIMIT"
                raise EngineError("ResultTooLarge", reason)
            found.append(msgspec.Raw(data))
    return found


def _snapshot_frame(session: SparkSession, snapshot: Snapshot) -> DataFrame:
    """A snapshot with the types that SQL expects."""
    columns = ", ".join(f"{quoted(name)} {spark_type(parse_type(kind))}" for name, kind in snapshot.columns)
    schema = arrow_schema(columns)
    with pa.memory_map(snapshot.file) as file, pa.ipc.open_file(file) as reader:
        table = reader.read_all()
        arrays = [cast_column(table.column(field.name).combine_chunks(), field.type) for field in schema]
        return session.createDataFrame(pa.Table.from_arrays(arrays, schema=schema))
