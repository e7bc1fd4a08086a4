import datetime as dt

import pytest

from connect.transforms.epoch import ms_of
from connect.transforms.java.date_format import DateFormat

NOW_MS = ms_of(dt.datetime(2026, 11, 16, tzinfo=dt.UTC))


def at(*parts: int, ms: int = 0) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC) + dt.timedelta(milliseconds=ms)  # type: ignore[misc,arg-type]  # year, month, day


MOMENT = at(2026, 1, 5, 14, 7, 9, ms=45)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("yyyy-MM-dd", "2026-01-05"),
        ("yyyy-MM-dd HH:mm:ss", "2026-01-05 14:07:09"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "2026-01-05T14:07:09.045Z"),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "2026-01-05T14:07:09Z"),
        ("yyyy MM dd HH mm ss SSS z", "2026 01 05 14 07 09 045 UTC"),
        ("yyyyMMddHHmmssSSS", "20260105140709045"),
        ("yy/M/d", "26/1/5"),
        ("y", "2026"),
        ("yyyyy", "02026"),
        ("MMM MMMM LLL", "Jan January Jan"),
        ("EEE EEEE u", "Mon Monday 1"),
        ("h:mm a K k", "2:07 PM 2 14"),
        ("D DDD F W w", "5 005 1 2 2"),
        ("S SSSSSS", "45 000045"),
        ("Z X XX zzzz G", "+0000 Z Z Coordinated Universal Time AD"),
        ("'it''s' ''yyyy''", "it's '2026'"),
        ("100%", None),
        ("yyyy 100'%'", "2026 100%"),
    ],
)
def test_times_are_written_by_patterns(pattern: str, expected: str | None) -> None:
    assert DateFormat(pattern, now_ms=NOW_MS).format(MOMENT) == (pattern if expected is None else expected)


@pytest.mark.parametrize(
    ("moment", "pattern", "expected"),
    [
        (at(2024, 12, 30), "YYYY ww", "2025 01"),
        (at(2021, 1, 1), "YYYY ww", "2021 01"),
        (at(2022, 12, 31), "YY w", "22 53"),
        (at(2026, 1, 1, 0), "h K k H", "12 0 24 0"),
        (at(2026, 1, 1, 12), "h a", "12 PM"),
        (at(999, 1, 1), "yyyy-MM-dd", "0999-01-01"),
        (at(1969, 12, 31, 23, 59, 59, ms=999), "yyyy-MM-dd HH:mm:ss.SSS", "1969-12-31 23:59:59.999"),
    ],
)
def test_odd_times_are_written_as_java_does(moment: dt.datetime, pattern: str, expected: str) -> None:
    assert DateFormat(pattern, now_ms=NOW_MS).format(moment) == expected


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("yyyy-MM-dd", "2026-01-05", at(2026, 1, 5)),
        ("yyyy-MM-dd", "2026-1-5", at(2026, 1, 5)),
        ("yyyy-MM-dd", "2026-01-05 and more", at(2026, 1, 5)),
        ("yyyy-MM-dd", "2026-13-32", at(2027, 2, 1)),
        ("yyyy-MM-dd", "2026-02-30", at(2026, 3, 2)),
        ("yyyy-MM-dd", "2026-00-00", at(2025, 11, 30)),
        ("yyyy-MM-dd", "2026- 1- 5", at(2026, 1, 5)),
        ("yyyy-MM-dd HH:mm:ss", "2026-01-05 24:61:61", at(2026, 1, 6, 1, 2, 1)),
        ("yyyy-MM-dd HH:mm:ss.SSS", "2026-01-05 14:07:09.5", at(2026, 1, 5, 14, 7, 9, ms=5)),
        ("yyyy-MM-dd HH:mm:ss.SSS", "2026-01-05 14:07:09.500000", at(2026, 1, 5, 14, 15, 29)),
        ("yyyy-MM-dd'T'HH:mm:ss", "2026-01-05T14:07:09+02:00", at(2026, 1, 5, 14, 7, 9)),
        ("yyyy-MM-dd'T'HH:mm:ssX", "2026-01-05T14:07:09+02", at(2026, 1, 5, 12, 7, 9)),
        ("yyyy-MM-dd'T'HH:mm:ssXX", "2026-01-05T14:07:09-0230", at(2026, 1, 5, 16, 37, 9)),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "2026-01-05T14:07:09+02:00", at(2026, 1, 5, 12, 7, 9)),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "2026-01-05T14:07:09Z", at(2026, 1, 5, 14, 7, 9)),
        ("yyyy-MM-dd HH:mm z", "2026-01-05 14:07 GMT+1:00", at(2026, 1, 5, 13, 7)),
        ("yyyy-MM-dd HH:mm z", "2026-01-05 14:07 PST", at(2026, 1, 5, 22, 7)),
        ("yyyy-MM-dd HH:mm Z", "2026-01-05 14:07 -0100", at(2026, 1, 5, 15, 7)),
        ("yyyyMMddHHmmss", "20260105140709", at(2026, 1, 5, 14, 7, 9)),
        ("yyyyMMdd", "20260105", at(2026, 1, 5)),
        ("yyyyDDD", "2026005", at(2026, 1, 5)),
        ("D yyyy", "32 2026", at(2026, 2, 1)),
        ("EEE, d MMM yyyy HH:mm:ss Z", "mon, 5 jan 2026 14:07:09 +0000", at(2026, 1, 5, 14, 7, 9)),
        ("MMMM d, yyyy h:mm a", "January 5, 2026 2:07 PM", at(2026, 1, 5, 14, 7)),
        ("h a", "12 AM", at(1970, 1, 1)),
        ("h a", "12 PM", at(1970, 1, 1, 12)),
        ("K:mm a", "11:30 pm", at(1970, 1, 1, 23, 30)),
        ("kk", "24", at(1970, 1, 1)),
        ("HH:mm", "10:30", at(1970, 1, 1, 10, 30)),
        ("yy", "26", at(2026, 1, 1)),
        ("yy", "46", at(2046, 1, 1)),
        ("yy", "47", at(1947, 1, 1)),
        ("yy", "2031", at(2031, 1, 1)),
        ("yy", "7", at(7, 1, 1)),
        ("YYYY-ww-u", "2025-01-1", at(2024, 12, 30)),
        ("yyyy ww", "2026 02", at(2026, 1, 4)),
        ("yyyy-MM-dd HH:mm:ss", "1969-12-31 23:59:59", at(1969, 12, 31, 23, 59, 59)),
    ],
)
def test_texts_are_read_leniently(pattern: str, text: str, expected: dt.datetime) -> None:
    assert DateFormat(pattern, now_ms=NOW_MS).parse(text) == ms_of(expected)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd", "not a date"),
        ("yyyy-MM-dd", "2026/01/05"),
        ("yyyy-MM-dd", "2026-W01-1"),
        ("yyyy-MM-dd", ""),
        ("MMM", "Foo"),
        ("X", "UTC"),
        ("yyyy", "99999"),
        ("yyyy G", "5 BC"),
        ("yyyy", "9" * 100),
    ],
)
def test_texts_that_do_not_fit_are_told(pattern: str, text: str) -> None:
    assert DateFormat(pattern, now_ms=NOW_MS).parse(text) is None


@pytest.mark.parametrize("pattern", ["bad-format", "yyyy'T", "XXXX", "yyyy-MM-ddTHH:mm"])
def test_patterns_that_are_none_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError):
        DateFormat(pattern, now_ms=NOW_MS)


@pytest.mark.parametrize("pattern", ["yyyy-MM-dd HH:mm:ss.SSS", "yyyyMMddHHmmssSSS", "d MMM yyyy h:mm:ss.SSS a Z"])
@pytest.mark.parametrize("moment", [MOMENT, at(2000, 2, 29, 23, 59, 59, ms=999), at(1901, 1, 1), at(9999, 12, 31)])
def test_what_was_written_is_read_back(pattern: str, moment: dt.datetime) -> None:
    form = DateFormat(pattern, now_ms=NOW_MS)
    assert form.parse(form.format(moment)) == ms_of(moment)
