import resource
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core_broker.service.clock import ManualClock
from deploy.doctor.finding import Context, Level
from deploy.doctor.machine import clock, memory_bytes, open_files, tools

_MEMINFO = "MemTotal:       16000000 kB\nMemFree:          500000 kB\nMemAvailable:    8000000 kB\n"


def _ms(year: int) -> int:
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp() * 1000)


def test_memory_is_what_is_available_and_not_only_what_is_free() -> None:
    assert memory_bytes(_MEMINFO, None) == (16_000_000 * 1024, 8_000_000 * 1024)


def test_memory_of_a_container_is_what_it_is_allowed() -> None:
    assert memory_bytes(_MEMINFO, (1_000_000, 400_000)) == (1_000_000, 400_000)
    assert memory_bytes(_MEMINFO, (1 << 60, 1 << 60)) == memory_bytes(_MEMINFO, None)


@pytest.mark.parametrize(
    ("year", "level"), [(1970, Level.PROBLEM), (2025, Level.WARNING), (2090, Level.OK), (2201, Level.PROBLEM)]
)
def test_clock_that_cannot_be_right_is_reported(year: int, level: Level) -> None:
    (finding,) = clock(Context(environment={}, data=Path(), clock=ManualClock(_ms(year))))
    assert finding.level is level


def test_low_limit_of_open_files_is_reported_with_the_command_that_raises_it() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
    try:
        (finding,) = open_files(Context(environment={}, data=Path()))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert finding.level is Level.WARNING
    assert finding.next_steps[0].startswith("raise it:  ulimit -n ")


def test_missing_tools_are_only_worth_knowing(tmp_path: Path) -> None:
    (tmp_path / "kcat").write_text("#!/bin/sh\n")
    (tmp_path / "kcat").chmod(0o755)
    (finding,) = tools(Context(environment={"PATH": str(tmp_path)}, data=Path()))
    assert finding.level is Level.NOTE
    assert "kcat" in finding.found
