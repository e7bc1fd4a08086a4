"""Stack traces of failures."""

import re
import traceback
from collections.abc import Callable

import pytest

from connect.api.errors import DataError
from connect.runtime.failures.traces import stack_trace


def test_a_trace_begins_with_the_line_that_tools_of_kafka_connect_show() -> None:
    lines = stack_trace(_raised(DataError("bad record"))).splitlines()
    assert lines[0] == "org.apache.kafka.connect.errors.DataException: bad record"
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[-1] == "connect.api.errors.DataError: bad record"


def test_a_trace_of_what_nobody_expected_begins_with_its_own_name() -> None:
    assert stack_trace(_raised(KeyError("a"))).startswith("builtins.KeyError: 'a'\n")


def _cause() -> None:
    try:
        _context()
    except ValueError as error:
        raise DataError("second") from error


def _context() -> None:
    try:
        raise KeyError("first")
    except KeyError:
        int("no number")
        raise


def _suppressed() -> None:
    try:
        raise KeyError("first")
    except KeyError:
        raise LookupError("alone") from None


def _circle() -> None:
    first, second = DataError("first"), DataError("second")
    first.__cause__, second.__cause__ = second, first
    raise first


def _noted() -> None:
    error = DataError("noted\non two lines")
    error.add_note("a note")
    raise error


def _group() -> None:
    raise ExceptionGroup("several", [DataError("one"), KeyError("two")])


@pytest.mark.parametrize("work", [_cause, _context, _suppressed, _circle, _noted, _group])
def test_a_trace_says_what_pythons_own_says(work: Callable[[], None]) -> None:
    error = _caught(work)
    expected = "".join(traceback.format_exception(error))
    assert _without_marks(stack_trace(error)).partition(": ")[2].endswith(_without_marks(expected))


def test_a_trace_of_what_recurs_without_end_is_short() -> None:
    def recur() -> None:
        recur()

    trace = stack_trace(_caught(recur))
    assert trace.count("in recur") < 250
    assert trace.splitlines()[-1].startswith("RecursionError: ")


def test_an_error_that_was_never_raised_has_no_frames() -> None:
    assert stack_trace(DataError("x")).splitlines()[1:] == ["connect.api.errors.DataError: x"]


def _without_marks(trace: str) -> str:
    """Python marks parts of lines; groups have a frame around them."""
    return "".join(line for line in trace.splitlines(keepends=True) if not re.fullmatch(r"[\s|]*[~^]+\s*", line))


def _caught(work: Callable[[], object]) -> Exception:
    try:
        work()
    except Exception as error:  # noqa: BLE001 - whatever it is
        return error
    raise AssertionError("nothing was raised")


def _raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:  # noqa: BLE001 - whatever it is
        return caught
