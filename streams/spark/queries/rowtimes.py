"""When records happened: ROWTIME of each, the stream time, and which come too late."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streams.errors import WrongOption
from streams.model.plan import Lateness
from streams.model.sources import TimestampColumn
from streams.spark.queries.timestamp_patterns import TimestampPattern

Times: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
NEVER: int = -(1 << 63)
"""Before any record."""


class RowTimes:
    """Takes the time of records from a column, or from the records themselves."""

    def __init__(self, chosen: TimestampColumn | None) -> None:
        self._chosen = chosen
        self._pattern = None if chosen is None or chosen.pattern is None else TimestampPattern(chosen.pattern)

    def of(self, timestamps_ms: pa.Array, columns: dict[str, pa.Array]) -> pa.Array:
        """Times in milliseconds; null where there is none, or none that a record may have."""
        if self._chosen is None:
            times = timestamps_ms
        else:
            times = self._milliseconds(columns[self._chosen.column])
        return pc.if_else(pc.greater_equal(times, 0), times, pa.scalar(None, pa.int64()))

    def _milliseconds(self, column: pa.Array) -> pa.Array:
        if pa.types.is_timestamp(column.type):
            return column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
        if pa.types.is_integer(column.type):
            return column.cast(pa.int64())
        if self._pattern is None:
            raise WrongOption("timestamp_format", None, "must be given if the timestamp is taken from text")
        return pa.array(map(self._pattern.milliseconds, column.to_pylist()), pa.int64())


def stream_times(times: Times, before: int) -> Times:
    """The largest time so far at each record, itself included."""
    return np.maximum(np.maximum.accumulate(times), before) if len(times) else times


def late_rows(times: Times, stream: Times, lateness: Lateness) -> Mask:
    """Which records come when the last window that they belong to has been closed."""
    if lateness.size_ms == 0:
        return times < stream - lateness.grace_ms
    advance = lateness.advance_ms or lateness.size_ms
    closed_at = times - times % advance + lateness.size_ms + lateness.grace_ms
    return closed_at <= stream
