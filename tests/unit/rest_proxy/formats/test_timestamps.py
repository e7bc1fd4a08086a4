import pytest

from rest_proxy.formats.timestamps import parse_timestamp


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("0", 0),
        ("1700000000123", 1_700_000_000_123),
        ("2023-11-14T22:13:20.123Z", 1_700_000_000_123),
        ("2023-11-14T22:13:20.123", 1_700_000_000_123),
        ("2023-11-15T00:13:20+02:00", 1_700_000_000_000),
        ("1969-12-31T23:59:59Z", -1000),
        ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
    ],
)
def test_timestamps_are_milliseconds_or_iso_8601(text: str, milliseconds: int) -> None:
    assert parse_timestamp(text) == milliseconds


@pytest.mark.parametrize("text", ["", "-1", "1e3", "now", "9" * 30, "٣", "\udcff"])
def test_any_other_text_is_not_a_timestamp(text: str) -> None:
    assert parse_timestamp(text) is None
