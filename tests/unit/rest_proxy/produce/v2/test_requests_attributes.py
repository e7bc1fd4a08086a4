"""What a record of API v2 may have besides key and value."""

import msgspec
import pytest

from core_broker.client.records import Header
from rest_proxy.errors import ProxyError
from rest_proxy.produce.v2.requests import Record

HEADERS: dict[bytes, list[Header]] = {
    b"null": [],
    b"[]": [],
    b'[{"key":"a","value":"MQ=="}]': [("a", b"1")],
    b'[{"name":"a","value":"MQ=="}]': [("a", b"1")],
    b'[{"key":"a","value":null},{"key":"a","value":""},{"key":"a"}]': [("a", None), ("a", b""), ("a", None)],
    b'[{"key":"","value":"MQ"}]': [("", b"1")],
    '[{"key":"\u00e9"}]'.encode(): [("\u00e9", None)],
}


@pytest.mark.parametrize(("text", "expected"), HEADERS.items())
def test_headers_in_both_shapes_in_their_order(text: bytes, expected: list[Header]) -> None:
    assert Record(headers=msgspec.Raw(text)).header_pairs() == expected


@pytest.mark.parametrize(
    "text",
    [
        b"{}",
        b'"a"',
        b"[1]",
        b"[null]",
        b"[{}]",
        b'[{"value":"MQ=="}]',
        b'[{"key":1}]',
        b'[{"key":"a","value":1}]',
        b'[{"key":"a","value":"not base64"}]',
        b'[{"key":"a","valeu":"MQ=="}]',
    ],
)
def test_other_headers_are_refused(text: bytes) -> None:
    with pytest.raises(ProxyError) as refused:
        Record(headers=msgspec.Raw(text)).header_pairs()
    assert refused.value.code == 42205


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1_767_225_600_123, 1_767_225_600_123),
        ("1767225600124", 1_767_225_600_124),
        ("2026-01-01T00:00:00.123Z", 1_767_225_600_123),
        ("2026-01-01T00:00:00.123", 1_767_225_600_123),
        ("2026-01-01T02:00:00.123456+02:00", 1_767_225_600_123),
        ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
        (1, 1),
    ],
)
def test_times_are_milliseconds_or_iso_8601(given: int | str, expected: int) -> None:
    assert Record(timestamp=given).timestamp_ms() == expected


@pytest.mark.parametrize(
    "given", [0, -1, 2**63, 10**30, "", "yesterday", "1e3", "1969-12-31T23:59:59Z", "9" * 5000, "\u0661"]
)
def test_other_times_are_refused(given: int | str) -> None:
    with pytest.raises(ProxyError) as refused:
        Record(timestamp=given).timestamp_ms()
    assert refused.value.code == 42205
    assert len(refused.value.message) < 300


def test_partitions_are_bounded() -> None:
    assert Record(partition=0).partition_id() == 0
    assert Record(partition=2**31 - 1).partition_id() == 2**31 - 1
    for number in (-1, 2**31, 10**30):
        with pytest.raises(ProxyError) as refused:
            Record(partition=number).partition_id()
        assert refused.value.code == 422
