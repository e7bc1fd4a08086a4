"""A stream of rows for a processor, batch by batch, and the rows that it gives out."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from streams.model.plan import TIME, ProcessStep
from streams.model.sources import ROWOFFSET, ROWPARTITION, ROWTIME
from streams.spark.queries.processors.steps import apply


class ProcessorFeed:
    """Runs one step; each call is a batch, whose rows are given in the order of their offsets."""

    def __init__(
        self,
        session: SparkSession,
        folder: Path,
        step: ProcessStep,
        schema: str,
        *,
        watermark_ms: int | None = None,
        extensions: str = "",
    ) -> None:
        self._input, self._names = folder / "in", [part.split()[0].strip("`") for part in _parts(schema)]
        self._input.mkdir(parents=True, exist_ok=True)
        # In the folder of an earlier one, it goes on where that ended.
        self._batch = len(list(self._input.glob("*.parquet")))
        self._offset = self._batch * 1000
        self._given: list[dict[str, Any]] = []
        order = f"{ROWPARTITION} int, {ROWOFFSET} bigint"
        frame = session.readStream.schema(f"{schema}, {order}").parquet(str(self._input))
        frame = frame.selectExpr("*", f"timestamp_millis({ROWTIME}) AS {TIME}")
        if watermark_ms is not None:
            frame = frame.withWatermark(TIME, f"{watermark_ms} milliseconds")
        self._schema = session.createDataFrame([], f"{schema}, {order}").toArrow().schema
        self.late = session.sparkContext.accumulator(0)
        processed = apply(step, frame, extensions=extensions, late=self.late)
        writing = processed.writeStream.outputMode("update")
        self._query = (
            writing.option("checkpointLocation", str(folder / "checkpoint")).foreachBatch(self._take()).start()
        )

    def batch(self, *rows: Sequence[Any]) -> list[dict[str, Any]]:
        """The rows that come out when these have gone in, those of no-data batches behind included."""
        self._given.clear()
        named = [dict(zip(self._names, row, strict=True)) for row in rows]
        for row in named:
            row |= {ROWPARTITION: 0, ROWOFFSET: self._offset}
            self._offset += 1
        self._batch += 1
        draft = self._input / f".{self._batch}"
        pq.write_table(pa.Table.from_pylist(named, schema=self._schema), draft)
        draft.rename(self._input / f"{self._batch:05}.parquet")
        self._query.processAllAvailable()
        return list(self._given)

    def stop(self) -> None:
        """End the query."""
        self._query.stop()

    def _take(self) -> Callable[[DataFrame, int], None]:
        given = self._given

        def take(frame: DataFrame, _: int) -> None:
            given.extend(frame.toArrow().to_pylist(maps_as_pydicts="strict"))

        return take


def _parts(schema: str) -> list[str]:
    """The columns of a schema: commas inside of types are followed by no space."""
    return schema.split(", ")
