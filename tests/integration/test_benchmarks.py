"""The benchmarks run, at a size that takes seconds: figures nobody can reproduce are worth nothing."""

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from tests.benchmarks.__main__ import run_all, show, unpin
from tests.benchmarks.measure import TINY


@pytest.mark.timeout(300)
def test_every_benchmark_runs_and_names_how_it_was_measured(tmp_path: Path) -> None:
    try:
        rows = list(run_all(TINY, tmp_path))
    finally:
        unpin(os.getpid())
    assert len(rows) > 15
    assert all(row.what and row.result and row.how for row in rows)
    console = Console(record=True, width=200, file=io.StringIO())
    show(rows, console)
    text = console.export_text()
    assert "CPU-s/GB" in text
    assert "p99.9" in text
