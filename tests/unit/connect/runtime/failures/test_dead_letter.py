"""What is told of failures."""

from connect.api.errors import DataError
from connect.runtime.failures.letter import stack_trace


def test_a_trace_begins_with_the_line_that_tools_of_kafka_connect_show() -> None:
    lines = stack_trace(_raised(DataError("bad record"))).splitlines()
    assert lines[0] == "org.apache.kafka.connect.errors.DataException: bad record"
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[-1] == "connect.api.errors.DataError: bad record"


def test_a_trace_of_what_nobody_expected_begins_with_its_own_name() -> None:
    assert stack_trace(_raised(KeyError("a"))).startswith("builtins.KeyError: 'a'\n")


def _raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:  # noqa: BLE001 - whatever it is
        return caught
