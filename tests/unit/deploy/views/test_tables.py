from typing import Any

import pytest

from deploy.views.tables import ago, cell_text, describe_table, rows_as_csv, rows_as_objects

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


def test_cells_are_safe_for_a_terminal_and_cut() -> None:
    assert cell_text("clear \x1b[2J") == "clear \\x1b[2J"
    assert cell_text({"a": 1}) == '{"a": 1}'
    assert cell_text("x" * 1000) == "x" * 200 + "…"


def test_a_view_holds_nothing_but_columns() -> None:
    assert dict(describe_table(TABLE, 61_000))["Changed"] == "60 s ago"
    assert dict(describe_table({"name": "v", "format": "view", "columns": {"a": "int"}}, 0)) == {"Format": "view"}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s ago"), (119, "119 s ago"), (120, "2 min ago"), (7200, "2 h ago"), (172_800, "2 d ago")],
)
def test_ages_are_written_as_people_say_them(seconds: int, text: str) -> None:
    assert ago(5_000, now_ms=5_000 + 1000 * seconds) == text


def test_a_clock_that_went_back_is_no_moment_in_the_future() -> None:
    assert ago(10_000, now_ms=5_000) == "0 s ago"
