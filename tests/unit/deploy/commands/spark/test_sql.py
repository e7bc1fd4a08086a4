from typing import Any

import pytest

from deploy.commands.spark.sql import SqlOutput, _print_answer, _print_tables

ROWS: dict[str, Any] = {
    "columns": [{"name": "id", "type": "bigint"}, {"name": "[red]name", "type": "string"}],
    "rows": [[1234, "clear \x1b[2J"], [2, None]],
    "truncated": False,
}
TABLE: dict[str, Any] = {
    "name": "orders",
    "format": "parquet",
    "rows": 1234567,
    "files": 3,
    "bytes": 1536,
    "partitioned_by": ["day"],
    "changed_ms": 1000,
}


def test_rows_are_shown_without_steering_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    _print_answer(ROWS, SqlOutput.TABLE)
    shown = capsys.readouterr().out
    assert "[red]name" in shown
    assert "\\x1b[2J" in shown
    assert "null" in shown


def test_tables_are_shown_one_to_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    unknown = {**TABLE, "name": "sales.far", "rows": None, "changed_ms": None, "partitioned_by": []}
    _print_tables([TABLE, unknown], now_ms=61_000)
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines[2] == ["orders", "parquet", "1,234,567", "3", "1.5", "kB", "day", "60", "s", "ago"]
    assert lines[3] == ["sales.far", "parquet", "–", "3", "1.5", "kB", "–", "–"]
