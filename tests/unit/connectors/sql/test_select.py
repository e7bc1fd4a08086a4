from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from connectors.sql.dialect import Dialect, MySql, Postgres, Sqlite, Table
from connectors.sql.position import Position
from connectors.sql.select import Criteria, Selection, selection, truncate

ITEMS = Table(name="items", schema="s")
TEN = datetime(2024, 7, 1, 10, tzinfo=UTC)
NOON = datetime(2024, 7, 1, 12)  # noqa: DTZ001
MADRID = ZoneInfo("Europe/Madrid")


def chosen(criteria: Criteria, dialect: Dialect, position: Position, *, end: datetime | None = None) -> Selection:
    return selection(criteria, dialect, position=position, end=end, zone=MADRID, limit=None)


@pytest.mark.parametrize(
    "criteria, position, end, statement, parameters",
    [
        (Criteria(table=ITEMS), Position(), None, "SELECT * FROM `s`.`items`", ()),
        (
            Criteria(table=ITEMS, incrementing_column="id"),
            Position(),
            None,
            "SELECT * FROM `s`.`items` ORDER BY `id`",
            (),
        ),
        (
            Criteria(table=ITEMS, incrementing_column="id", suffix="LIMIT 5"),
            Position(incrementing=7),
            None,
            "SELECT * FROM `s`.`items` WHERE `id` > %s ORDER BY `id` LIMIT 5",
            (7,),
        ),
        (
            Criteria(table=ITEMS, timestamp_columns=("at",)),
            Position(timestamp=TEN),
            TEN,
            "SELECT * FROM `s`.`items` WHERE `at` < %s AND `at` > %s ORDER BY `at`",
            (NOON, NOON),
        ),
        (
            Criteria(table=ITEMS, timestamp_columns=("at", "made"), incrementing_column="id"),
            Position(timestamp=TEN, incrementing=7),
            TEN,
            (
                "SELECT * FROM `s`.`items` WHERE COALESCE(`at`, `made`) < %s AND "
                "((COALESCE(`at`, `made`) = %s AND `id` > %s) OR COALESCE(`at`, `made`) > %s) "
                "ORDER BY COALESCE(`at`, `made`), `id`"
            ),
            (NOON, NOON, 7, NOON),
        ),
        (
            Criteria(query="SELECT i.*, '100%' AS x FROM items i", incrementing_column="i.id"),
            Position(incrementing=7),
            None,
            "SELECT i.*, '100%%' AS x FROM items i WHERE `i`.`id` > %s ORDER BY `i`.`id`",
            (7,),
        ),
    ],
)
def test_queries(
    criteria: Criteria, position: Position, end: datetime | None, statement: str, parameters: tuple[object, ...]
) -> None:
    assert chosen(criteria, MySql(), position, end=end) == Selection(statement=statement, parameters=parameters)


def test_postgresql_is_given_moments_not_times_of_day() -> None:
    found = chosen(Criteria(table=ITEMS, timestamp_columns=("at",)), Postgres(), Position(), end=TEN)
    assert found.parameters == (TEN,)


def test_postgresql_marks_rows_that_others_may_come_before() -> None:
    criteria = Criteria(table=ITEMS, incrementing_column="id", marks_open=True)
    assert "AS __connect_open FROM" in chosen(criteria, Postgres(), Position()).statement


def test_sqlite_compares_moments_as_text_of_one_form() -> None:
    found = chosen(Criteria(table=Table(name="items"), timestamp_columns=("at",)), Sqlite(), Position(), end=TEN)
    assert found.parameters == ("2024-07-01 12:00:00.000",)
    assert "strftime" in found.statement


@pytest.mark.parametrize("digits, wanted", [(0, 0), (3, 123_000), (6, 123_456), (9, 123_456)])
def test_a_window_ends_where_the_resolution_of_the_column_does(digits: int, wanted: int) -> None:
    assert truncate(TEN.replace(microsecond=123_456), digits).microsecond == wanted
