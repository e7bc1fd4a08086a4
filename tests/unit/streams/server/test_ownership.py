"""Which server runs the queries."""

from pathlib import Path

from core_broker.service.clock import ManualClock
from streams.server.ownership import server_id


def test_a_server_keeps_its_id_and_comes_before_those_that_are_added_later(tmp_path: Path) -> None:
    clock = ManualClock(now_ms=1_700_000_000_000)
    older, newer = tmp_path / "older", tmp_path / "newer"
    older.mkdir()
    newer.mkdir()
    first = server_id(older, "z.example:8088", clock)
    clock.advance(1)
    second = server_id(newer, "a.example:8088", clock)
    assert first < second
    assert server_id(older, "z.example:9099", clock) == first


def test_a_file_that_is_no_id_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "server.id").write_text("\x00 broken")
    found = server_id(tmp_path, "[::1]:8088", ManualClock(now_ms=7))
    assert found == "000000000000007-___1__8088"
    assert (tmp_path / "server.id").read_text() == found
