"""Times in text by Java's patterns."""

import pytest

from streams.errors import WrongOption
from streams.spark.queries.timestamp_patterns import TimestampPattern

_NOON = 1_700_000_000_000  # 2023-11-14T22:13:20Z


@pytest.mark.parametrize(
    ("pattern", "text", "milliseconds"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss", "2023-11-14T22:13:20", _NOON),
        ("yyyy-MM-dd'T'HH:mm:ssX", "2023-11-14T22:13:20Z", _NOON),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "2023-11-14T23:13:20+01:00", _NOON),
        ("yyyy-MM-dd HH:mm:ss.SSS VV", "2023-11-14 23:13:20.045 Europe/Berlin", _NOON + 45),
        ("yyyy-MM-dd HH:mm:ss.SSSSSS", "2023-11-14 22:13:20.045678", _NOON + 45),
        ("d MMM yyyy h:mm:ss a", "14 Nov 2023 10:13:20 PM", _NOON),
        ("yy-DDD HH:mm:ss", "23-318 22:13:20", _NOON),
        ("yyyyMMddHHmmss", "20231114221320", _NOON),
        ("yyyy-MM-dd['T'HH:mm]", "1970-01-02", 86_400_000),
        ("HH 'o''clock'", "01 o'clock", 3_600_000),
        ("yyyy-MM-dd", "2023-02-30", None),
        ("yyyy-MM-dd", "2023-02-03 and more", None),
        ("yyyy-MM-dd VV", "2023-02-03 Nowhere/Else", None),
    ],
)
def test_texts_are_read_by_their_pattern(pattern: str, text: str, milliseconds: int | None) -> None:
    assert TimestampPattern(pattern).milliseconds(text) == milliseconds


def test_no_text_has_no_time() -> None:
    assert TimestampPattern("yyyy").milliseconds(None) is None


@pytest.mark.parametrize("pattern", ["yyyy-QQ", "yyyy 'open"])
def test_a_pattern_that_cannot_be_read_is_refused(pattern: str) -> None:
    with pytest.raises(WrongOption, match="timestamp_format"):
        TimestampPattern(pattern)
