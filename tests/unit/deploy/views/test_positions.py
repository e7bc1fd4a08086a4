from datetime import datetime

import pytest

from core_broker.service.clock import ManualClock
from deploy.views.positions import Position, parse_position, resolve

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    "text,position",
    [
        ("beginning", Position("beginning")),
        ("Earliest", Position("beginning")),
        ("end", Position("end")),
        ("42", Position("offset", 42)),
        ("-10", Position("last", 10)),
        ("15m", Position("time", NOW_MS - 900_000)),
        ("-2h", Position("time", NOW_MS - 7_200_000)),
        ("1.5d ago", Position("time", NOW_MS - 129_600_000)),
        ("2026-11-16T10:30:00+00:00", Position("time", 1_794_825_000_000)),
    ],
)
def test_position_is_read_in_the_users_words(text: str, position: Position) -> None:
    assert parse_position(text, ManualClock(NOW_MS)) == position


def test_time_without_zone_is_the_users_own() -> None:
    expected = int(datetime.fromisoformat("2026-11-16T10:30").astimezone().timestamp() * 1000)
    assert parse_position("2026-11-16T10:30", ManualClock()) == Position("time", expected)


def test_nonsense_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(ValueError, match="'sometime' is not a position; say beginning, end"):
        parse_position("sometime", ManualClock())


@pytest.mark.parametrize(
    "position,offset",
    [
        (Position("beginning"), 5),
        (Position("end"), 20),
        (Position("offset", 7), 7),
        (Position("offset", 1), 5),
        (Position("offset", 99), 20),
        (Position("last", 3), 17),
        (Position("last", 99), 5),
        (Position("time", 1), 12),
    ],
    ids=str,
)
def test_position_stays_inside_the_partition(position: Position, offset: int) -> None:
    assert resolve(position, first=5, end=20, timed=12) == offset


def test_a_time_after_the_last_record_is_the_end() -> None:
    assert resolve(Position("time", 1), first=5, end=20, timed=-1) == 20
