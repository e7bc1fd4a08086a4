"""When records happened, and which come too late."""

import numpy as np
import pyarrow as pa
import pytest

from streams.errors import WrongOption
from streams.model.plan import Lateness
from streams.model.sources import TimestampColumn
from streams.spark.queries.rowtimes import NEVER, RowTimes, late_rows, stream_times


def _times(*values: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array(values, np.int64)


def test_without_a_column_the_time_is_that_of_the_record() -> None:
    assert RowTimes(None).of(pa.array([5, -1, 0], pa.int64()), {}).to_pylist() == [5, None, 0]


@pytest.mark.parametrize(
    ("column", "pattern"),
    [
        (pa.array([7, None, -3], pa.int64()), None),
        (pa.array([7_000, None, -3_000], pa.timestamp("us", "UTC")), None),
        (pa.array(["1970-01-01T00:00:00.007Z", "x", "1969-12-31T00:00:00.000Z"]), "yyyy-MM-dd'T'HH:mm:ss.SSSX"),
    ],
)
def test_times_of_a_column_are_those_of_its_type_and_none_where_they_cannot_be(
    column: pa.Array, pattern: str | None
) -> None:
    times = RowTimes(TimestampColumn(column="AT", pattern=pattern)).of(pa.array([1, 1, 1], pa.int64()), {"AT": column})
    assert times.to_pylist() == [7, None, None]


def test_text_needs_a_pattern() -> None:
    with pytest.raises(WrongOption, match="timestamp_format"):
        RowTimes(TimestampColumn(column="AT")).of(pa.array([1], pa.int64()), {"AT": pa.array(["x"])})


def test_stream_time_never_goes_back() -> None:
    assert stream_times(_times(3, 5, 4), NEVER).tolist() == [3, 5, 5]
    assert stream_times(_times(3, 5, 4), 9).tolist() == [9, 9, 9]
    assert stream_times(_times(), 9).tolist() == []


def test_a_record_is_late_once_its_window_and_the_grace_are_over() -> None:
    lateness = Lateness(size_ms=10, advance_ms=10, grace_ms=5)
    times = _times(9, 9, 10)
    assert late_rows(times, _times(14, 15, 15), lateness).tolist() == [False, True, False]


def test_a_record_of_hopping_windows_is_late_when_the_last_of_them_is_closed() -> None:
    lateness = Lateness(size_ms=10, advance_ms=2, grace_ms=0)
    # 9 belongs to the windows that begin at 0, 2, 4, 6 and 8; the last one ends at 18.
    assert late_rows(_times(9, 9), _times(17, 18), lateness).tolist() == [False, True]


def test_without_windows_a_record_is_late_when_it_is_older_than_the_grace() -> None:
    lateness = Lateness(size_ms=0, advance_ms=0, grace_ms=5)
    assert late_rows(_times(10, 10), _times(15, 16), lateness).tolist() == [False, True]
