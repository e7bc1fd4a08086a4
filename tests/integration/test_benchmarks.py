"""The benchmarks run, at a size that takes seconds: figures nobody can reproduce are worth nothing."""

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from tests.benchmarks.__main__ import PARTS, run_all, show, unpin
from tests.benchmarks.measure import TINY

_EXPENSIVE = {"connect", "platform", "spark"}
"""Those that start the most processes: `make test-all` runs them, too."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=pytest.mark.slow if part in _EXPENSIVE else ()) for part in PARTS]
)
def test_every_benchmark_runs_and_names_how_it_was_measured(part: str, tmp_path: Path) -> None:
    try:
        rows = list(run_all(TINY, tmp_path, [part]))
    finally:
        unpin(os.getpid())
    assert rows
    assert all(row.what and row.result and row.how for row in rows)
    console = Console(record=True, width=200, file=io.StringIO())
    show(rows, console)
    assert rows[0].what.split()[0] in console.export_text()
