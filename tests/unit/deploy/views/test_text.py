import pytest

from deploy.views.text import printable, size, trace_summary

PYTHON = """Traceback (most recent call last):
  File "connect/converters/json/reading.py", line 57, in decoded
    raise DataError(broken)
connect.api.errors.DataError: JSON is malformed
and goes on here

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "connect/runtime/tasks/running_task.py", line 76, in _run
    self._live()
connect.runtime.failures.error_policy.ToleranceExceeded: Tolerance exceeded in error handler
"""
JAVA = """org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler
\tat org.apache.kafka.connect.runtime.errors.RetryWithToleranceOperator.execAndHandleError(Retry.java:230)
Caused by: org.apache.kafka.connect.errors.DataException: Converting byte[] failed
\tat org.apache.kafka.connect.json.JsonConverter.toConnectData(JsonConverter.java:366)
Caused by: java.io.IOException: no JSON
\t... 17 more
"""


@pytest.mark.parametrize(
    "trace,line",
    [
        (None, ""),
        ("  \n", ""),
        ("something without a stack", "something without a stack"),
        (PYTHON, "ToleranceExceeded: Tolerance exceeded in error handler ← DataError: JSON is malformed"),
        (PYTHON.partition("\nThe above")[0], "DataError: JSON is malformed"),
        ("Traceback (most recent call last):\n  File x\nKeyError\n", "KeyError"),
        (
            JAVA,
            (
                "org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler"
                " ← java.io.IOException: no JSON"
            ),
        ),
    ],
)
def test_a_trace_is_one_line_with_its_first_cause(trace: str | None, line: str) -> None:
    assert trace_summary(trace) == line


def test_text_from_outside_does_not_steer_the_terminal() -> None:
    assert printable("a\x1b[2Jb\r\x9b\n\tc") == "a\\x1b[2Jb\\x0d\\x9b\n\tc"
    assert "\x1b" not in trace_summary("Failed: \x1b[31mred")


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1_540_000, "1.5 MB"), (10**19, "10000 PB")]
)
def test_sizes_are_short(count: int, text: str) -> None:
    assert size(count) == text
