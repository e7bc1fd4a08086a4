import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from streams.spark.topics.fetching import HEADERS, RawBatch
from streams.spark.topics.ranges import OffsetRange
from streams.spark.topics.rows import RAW_SCHEMA, raw_columns, spark_schema, timestamps


def batch(headers: pa.Array | None) -> RawBatch:
    return RawBatch(
        pa.array([None, b"k"], pa.binary()),
        pa.array([b"v", None], pa.binary()),
        pa.array([7, 9]),
        pa.array([-1, 1_700_000_000_123]),
        pa.array([-1, 0], pa.int32()),
        headers,
    )


@pytest.mark.parametrize("include_headers", [True, False])
def test_the_columns_are_those_that_spark_expects(include_headers: bool) -> None:
    expected = to_arrow_schema(spark_schema(include_headers=include_headers), timezone="UTC")
    columns = raw_columns(batch(None), OffsetRange("t", 3, 0, 10), include_headers=include_headers)
    assert pa.RecordBatch.from_arrays(columns, schema=expected).validate(full=True) is None
    assert list(RAW_SCHEMA)[: len(expected)] == list(expected)


def test_headers_are_null_where_there_are_none() -> None:
    headers = pa.array([None, [{"key": "a", "value": b"1"}]], HEADERS)
    found = raw_columns(batch(headers), OffsetRange("t", 3, 0, 10), include_headers=True)
    assert found[-1].to_pylist() == [None, [{"key": "a", "value": b"1"}]]
    without = raw_columns(batch(None), OffsetRange("t", 3, 0, 10), include_headers=True)
    assert without[-1].to_pylist() == [None, None]


def test_times_that_spark_cannot_hold_become_the_nearest() -> None:
    found = timestamps(pa.array([-(2**63), -1, 2**63 - 1])).cast(pa.int64()).to_pylist()
    assert found == [-(2**63 - 1) // 1000 * 1000 + 1000, -1000, (2**63 - 1) // 1000 * 1000]
