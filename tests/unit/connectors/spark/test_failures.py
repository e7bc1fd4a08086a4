import pytest

from connect.api.errors import DataError, RetriableError
from connectors.spark.failures import MarkedFailure, find_failure, is_slow_start, is_transient
from core_broker.client.errors import Unreachable


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (RetriableError("the registry is away"), True),
        (Unreachable("the cluster is away"), True),
        (ConnectionResetError(), True),
        (DataError("no number"), False),
        (KeyError("a"), False),
    ],
)
def test_the_failure_of_an_executor_is_found_in_the_text_of_spark(error: Exception, passes: bool) -> None:
    failure = find_failure(f"org.apache.spark.SparkException: Job aborted\n\tat x\n{MarkedFailure(error)}\n\tat y")
    assert failure is not None
    assert failure.message == str(error)
    assert failure.is_transient is is_transient(error) is passes


@pytest.mark.parametrize(
    "text",
    [
        "Python worker failed to connect back.\n=== Streaming Query ===\nIdentifier: sink-a",
        "SparkException: EOFException occurred while reading the port number from pyspark.daemon's stdout.",
        "[CANNOT_OPEN_SOCKET] Can not open socket: [\"tried to connect to ('127.0.0.1', 1), timed out\"].",
    ],
)
def test_a_python_that_gets_up_too_slowly_for_spark_is_no_end_of_a_sink(text: str) -> None:
    assert is_slow_start(text)


def test_a_python_that_fails_is_not_taken_for_a_slow_one() -> None:
    assert not is_slow_start("Python worker exited unexpectedly (crashed): ModuleNotFoundError")
    assert find_failure("Python worker exited unexpectedly (crashed)") is None
