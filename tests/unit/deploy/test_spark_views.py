from typing import Any

import pytest

from deploy.spark_views import ago, print_rows, print_table, print_tables, rows_as_csv, rows_as_objects, size

ANSWER: dict[str, Any] = {
    "columns": [
        {"name": "id", "type": "bigint"},
        {"name": "[red]name", "type": "string"},
        {"name": "more", "type": "struct<a:int>"},
    ],
    "rows": [[1234, "line\nbreak \x1b[2J", {"a": 1}], [2, None, None], [3, 'say "x"', [True]]],
    "truncated": False,
}
TABLE: dict[str, Any] = {
    "name": "orders",
    "format": "parquet",
    "rows": 1234567,
    "files": 3,
    "bytes": 1536,
    "partitioned_by": ["day"],
    "location": "file:/warehouse/orders",
    "changed_ms": 1000,
    "columns": {"id": "bigint", "day": "date"},
}


def test_rows_are_objects_for_programs() -> None:
    assert rows_as_objects(ANSWER)[1] == {"id": 2, "[red]name": None, "more": None}


def test_rows_are_csv_for_spreadsheets() -> None:
    assert rows_as_csv(ANSWER) == (
        'id,[red]name,more\n1234,"line\nbreak \x1b[2J","{""a"": 1}"\n2,,\n3,"say ""x""",[true]\n'
    )


def test_rows_for_people_do_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(ANSWER)
    shown = capsys.readouterr().out
    assert "[red]name" in shown
    assert "\x1b[2J" not in shown
    assert "\\x1b[2J" in shown
    assert '{"a": 1}' in shown
    assert "null" in shown


def test_long_values_are_cut_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows({"columns": [{"name": "a", "type": "string"}], "rows": [["x" * 1000]]})
    assert "x" * 200 + "…" in capsys.readouterr().out


def test_tables_are_told_one_to_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    unknown = {**TABLE, "name": "sales.far", "rows": None, "changed_ms": None, "partitioned_by": []}
    print_tables([TABLE, unknown], now_ms=61_000)
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines[2] == ["orders", "parquet", "1,234,567", "3", "1.5", "kB", "day", "60", "s", "ago"]
    assert lines[3] == ["sales.far", "parquet", "–", "3", "1.5", "kB", "–", "–"]


def test_a_table_is_told_with_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(TABLE, now_ms=61_000)
    shown = capsys.readouterr().out
    assert "1,234,567" in shown
    assert "file:/warehouse/orders" in shown
    assert ["day", "date", "yes"] in [line.split() for line in shown.splitlines()]


def test_a_view_has_columns_and_holds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_table({"name": "v", "format": "view", "columns": {"a": "int"}}, now_ms=0)
    shown = capsys.readouterr().out
    assert "Files" not in shown
    assert ["a", "int"] in [line.split() for line in shown.splitlines()]


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_540_000, "1.5 MB"), (10**19, "10000.0 PB")]
)
def test_sizes_are_short(count: int, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s ago"), (119, "119 s ago"), (120, "2 min ago"), (7200, "2 h ago"), (172_800, "2 d ago")],
)
def test_moments_are_told_as_people_do(seconds: int, text: str) -> None:
    assert ago(5_000, now_ms=5_000 + 1000 * seconds) == text


def test_a_clock_that_went_back_is_no_moment_in_the_future() -> None:
    assert ago(10_000, now_ms=5_000) == "0 s ago"
