"""INSERT INTO ... VALUES as values of Python."""

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from streams.errors import StatementError
from streams.model.pull import PullPlan
from streams.sql.analysis.values import check_values, insert_values
from streams.sql.language.tree.statements import InsertValues
from tests.support.sql_catalog import KnownSources, read_one

ALL = """CREATE STREAM S (K STRING KEY, B BOOLEAN, I INT, L BIGINT, D DOUBLE, X DECIMAL(4, 2), S STRING, Y BYTES,
  T TIME, DA DATE, TS TIMESTAMP, A ARRAY<INT>, M MAP<STRING, DOUBLE>, R STRUCT<F INT, G STRING>)
  WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON')"""
TABLE = "CREATE TABLE T (ID INT PRIMARY KEY, V STRING) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON')"
WINDOWED = """CREATE TABLE W (K STRING PRIMARY KEY, V INT)
  WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON', WINDOW_TYPE='SESSION')"""
HEADERS = "CREATE STREAM H (V INT, X BYTES HEADER('x')) WITH (KAFKA_TOPIC='h', VALUE_FORMAT='JSON')"


@pytest.fixture(scope="module")
def catalog() -> KnownSources:
    return KnownSources(ALL, TABLE, WINDOWED, HEADERS)


def inserted(catalog: KnownSources, text: str, *computed: object) -> dict[str, object]:
    """The row, if the engine computes these values; without any, it must not be asked."""
    statement = read_one(text)
    assert isinstance(statement, InsertValues)

    def compute(plan: PullPlan) -> tuple[object, ...]:
        assert len(plan.columns) == len(computed), f"the engine is asked for {plan.sql}"
        return computed

    return insert_values(statement, catalog.known[statement.target.name], catalog, compute)


VALUES = [
    ("B", "true", True),
    ("B", "'y'", True),
    ("B", "'F'", False),
    ("I", "-5", -5),
    ("I", "'7'", 7),
    ("L", "9000000000", 9_000_000_000),
    ("L", "1 + 2 * 3 - 7 / 2", 4),
    ("L", "-7 % 4", -3),
    ("D", "1", 1.0),
    ("D", "1.5", 1.5),
    ("D", "'2.5'", 2.5),
    ("X", "1.5", Decimal("1.50")),
    ("X", "3", Decimal("3.00")),
    ("S", "5", "5"),
    ("S", "TRUE", "true"),
    ("S", "'a' || NULL || 'b'", "ab"),
    ("S", "UCASE('a') + 'b'", "Ab"),
    ("S", "CAST(1.0E10 AS STRING)", "1.0E10"),
    ("S", "CONCAT('a', 'b')", "ab"),
    ("Y", "'YQ=='", b"a"),
    ("Y", "TO_BYTES('ff', 'hex')", b"\xff"),
    ("T", "'05:06:07.089'", time(5, 6, 7, 89_000)),
    ("DA", "'2024-02-29'", date(2024, 2, 29)),
    ("TS", "'2024-02-29T01:02:03.004+01:00'", datetime(2024, 2, 29, 0, 2, 3, 4000, tzinfo=UTC)),
    ("TS", "FROM_UNIXTIME(1000)", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
    ("A", "ARRAY[1, '2', NULL]", [1, 2, None]),
    ("A", "TRANSFORM(FILTER(ARRAY[1, 2], X => CAST(X AS BOOLEAN)), X => X + 1)", None),
    ("M", "MAP('a' := 1)", {"a": 1.0}),
    ("R", "STRUCT(F := 1)", {"F": 1, "G": None}),
    ("I", "REDUCE(ARRAY[1, 2], 3, (S, X) => S + X)", 6),
]


@pytest.mark.parametrize(("column", "text", "expected"), VALUES, ids=lambda one: str(one)[:50])
def test_value(catalog: KnownSources, column: str, text: str, expected: object) -> None:
    if expected is None:
        with pytest.raises(StatementError):
            inserted(catalog, f"INSERT INTO S ({column}) VALUES ({text})")
        return
    row = inserted(catalog, f"INSERT INTO S (K, {column}) VALUES ('k', {text})")
    assert row[column] == expected
    assert type(row[column]) is type(expected)
    assert row["K"] == "k"


def test_columns_that_are_not_named_are_null(catalog: KnownSources) -> None:
    row = inserted(catalog, "INSERT INTO T (V, ID, ROWTIME) VALUES ('v', 1, 1234)")
    assert row == {"ID": 1, "V": "v", "ROWTIME": 1234}
    assert inserted(catalog, "INSERT INTO T VALUES (1, NULL)") == {"ID": 1, "V": None}


MISTAKES = [
    ("INSERT INTO T VALUES (1)", "Expected a value for each column", "1"),
    ("INSERT INTO T (ID, NOPE) VALUES (1, 2)", "Column name NOPE does not exist", "NOPE"),
    ("INSERT INTO T (V) VALUES ('x')", "primary key column(s) ID is required", "T"),
    ("INSERT INTO T VALUES ('x', 'y')", "ID: Expected type INTEGER", "'x'"),
    ("INSERT INTO T VALUES (3000000000, 'y')", "BIGINT", "3000000000"),
    ("INSERT INTO S (X) VALUES (123.456)", "does not fit into DECIMAL(4, 2)", "123.456"),
    ("INSERT INTO S (R) VALUES (STRUCT(Q := 1))", "has no field `Q`", "STRUCT(Q := 1)"),
    ("INSERT INTO S (S) VALUES (REGEXP_REPLACE('a', 5, 'c'))", "does not accept parameters", None),
    ("INSERT INTO S (S) VALUES (NOPE('a'))", "NOPE", "NOPE('a')"),
    ("INSERT INTO S (I) VALUES (CAST('x' AS INT))", "Expected type INTEGER", None),
    ("INSERT INTO S (I) VALUES (COUNT(1))", "is an aggregate", "COUNT(1)"),
    ("INSERT INTO S (B) VALUES (1 < 'a')", "Cannot compare", "1 < 'a'"),
    ("INSERT INTO T (ID, ROWTIME) VALUES (1, -1)", "at least 0", "T"),
    ("INSERT INTO W (K, V) VALUES ('k', 1)", "windowed table", "W"),
    ("INSERT INTO H (V, X) VALUES (1, 'YQ==')", "HEADER columns: X", "X"),
]


@pytest.mark.parametrize(("text", "message", "part"), MISTAKES)
def test_mistake(catalog: KnownSources, text: str, message: str, part: str | None) -> None:
    with pytest.raises(StatementError) as caught:
        inserted(catalog, text)
    assert message in caught.value.message
    assert part is None or text[caught.value.start : caught.value.end] == part


def test_the_engine_is_asked_once_for_what_is_not_computed_here(catalog: KnownSources) -> None:
    text = """INSERT INTO S (K, S, I, B, M, R, TS)
      VALUES ('k', FORMAT_TIMESTAMP(FROM_UNIXTIME(UNIX_TIMESTAMP() + (60 * 1000)), 'yyyy-MM-dd''T''HH:mm:ssX'), 2 + 3,
        1 < 2, MAP_UNION(MAP('a' := 1), MAP('b' := 2)), CASE WHEN TRUE THEN STRUCT(F := LEN('abc')) END, NULL)"""
    row = inserted(catalog, text, "2024-01-01T00:00:00Z", True, {"a": 1, "b": 2}, {"F": 3})
    assert (row["S"], row["I"], row["B"]) == ("2024-01-01T00:00:00Z", 5, True)
    assert row["M"] == {"a": 1.0, "b": 2.0}
    assert row["R"] == {"F": 3, "G": None}


def test_what_the_engine_computes_has_to_fit(catalog: KnownSources) -> None:
    with pytest.raises(StatementError, match="I: Expected type INTEGER"):
        inserted(catalog, "INSERT INTO S (I) VALUES (SUBSTRING('abc', 1))", "abc")
    with pytest.raises(StatementError, match="primary key"):
        inserted(catalog, "INSERT INTO T (ID) VALUES (CASE WHEN FALSE THEN 1 END)", None)


def test_mistakes_show_without_the_engine(catalog: KnownSources) -> None:
    good = read_one("INSERT INTO T VALUES (CASE WHEN TRUE THEN 1 END, SUBSTRING('abc', 1))")
    bad = read_one("INSERT INTO T VALUES (1, SUBSTRING('abc'))")
    assert isinstance(good, InsertValues)
    assert isinstance(bad, InsertValues)
    check_values(good, catalog.known["T"], catalog)
    with pytest.raises(StatementError, match="SUBSTRING"):
        check_values(bad, catalog.known["T"], catalog)
