"""Statuses of HTTP."""

import pytest

from connect.api.errors import ConfigError
from connectors.http.status_codes import StatusCodes, is_outage, retry_after_ms
from core_broker.service.clock import ManualClock


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("", [], [200, 400, 500]),
        ("429", [429], [428, 430]),
        ("404-410", [404, 407, 410], [403, 411]),
        ("500-", [500, 599], [499]),
        (" 408 , 500 - 502 ", [408, 500, 502], [409, 503]),
    ],
)
def test_statuses_are_numbers_and_ranges(text: str, inside: list[int], outside: list[int]) -> None:
    codes = StatusCodes.parse("key", text)
    assert all(status in codes for status in inside)
    assert not any(status in codes for status in outside)


@pytest.mark.parametrize("text", ["x", "5", "400-500-600", "-500", "4xx"])
def test_what_is_no_status_is_refused_with_its_key(text: str) -> None:
    with pytest.raises(ConfigError, match="the.key"):
        StatusCodes.parse("the.key", text)


@pytest.mark.parametrize(
    ("status", "is_so"), [(400, False), (404, False), (422, False), (401, True), (429, True), (503, True)]
)
def test_outages_are_not_about_a_record(status: int, is_so: bool) -> None:
    assert is_outage(status) is is_so


@pytest.mark.parametrize(
    ("header", "milliseconds"),
    [
        (None, None),
        ("", None),
        ("0", 0),
        ("7", 7000),
        ("999999", 3_600_000),
        ("soon", None),
        ("Thu, 01 Jan 1970 00:00:15 GMT", 5000),
        ("Thu, 01 Jan 1970 00:00:01 GMT", 0),
        ("Thu, 01 Jan 2037 00:00:01 GMT", 3_600_000),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, milliseconds: int | None) -> None:
    assert retry_after_ms(header, ManualClock(now_ms=10_000)) == milliseconds
