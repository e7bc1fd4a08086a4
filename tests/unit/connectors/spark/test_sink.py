import pytest

from connect.api.errors import ConnectError, RetriableError
from connectors.spark.sink import failure_of
from streams.spark.engine.messages import JobStatus


def failed(kind: str, error: str) -> ConnectError:
    return failure_of(JobStatus(state="failed", error=error, error_kind=kind, counters={}))


@pytest.mark.parametrize("kind", ["Py4JError", "Py4JNetworkError", "ConnectionRefusedError"])
def test_a_java_that_died_under_a_query_is_an_outage_and_not_the_end_of_the_task(kind: str) -> None:
    trace = f"Traceback (most recent call last):\n  File x\n{kind}: An error occurred while calling o139.isActive\n"
    error = failed(kind, trace)
    assert isinstance(error, RetriableError)
    assert str(error) == f"Spark's Java has died: {kind}: An error occurred while calling o139.isActive"


def test_a_query_that_failed_by_itself_ends_the_task() -> None:
    assert not isinstance(failed("StreamingQueryException", "[STREAM_FAILED] no"), RetriableError)
