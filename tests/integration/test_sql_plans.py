"""Plans of SQL as Spark runs them: the rows are those that ksqlDB would write."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streams.model.session import SESSION
from tests.support.spark_java import needs_java
from tests.support.spark_session import small_session
from tests.support.sql_catalog import KnownSources
from tests.support.sql_plan_runs import pulled, results, streamed
from tests.support.sql_values import register

pytestmark = [
    needs_java,
    # Connections of Spark to Python are closed when they are collected.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ORDERS = """CREATE STREAM ORDERS (ID STRING KEY, ITEM STRING, N INT, PRICE DOUBLE, TAGS ARRAY<STRING>,
  `ADDRESS` STRUCT<CITY STRING, ZIP INT>) WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON')"""
PAYMENTS = """CREATE STREAM PAYMENTS (ORDER_ID STRING KEY, AMOUNT DOUBLE)
  WITH (KAFKA_TOPIC='payments', VALUE_FORMAT='JSON')"""
ITEMS = """CREATE TABLE ITEMS (ID STRING PRIMARY KEY, NAME STRING, STOCK INT)
  WITH (KAFKA_TOPIC='items', VALUE_FORMAT='JSON')"""
PRICES = """CREATE TABLE PRICES (ID STRING PRIMARY KEY, PRICE DOUBLE)
  WITH (KAFKA_TOPIC='prices', VALUE_FORMAT='JSON')"""
ROWS: list[dict[str, Any]] = [
    {"ID": "1", "ITEM": "pen", "N": 3, "PRICE": 1.5, "TAGS": ["a", "b"], "ADDRESS": ("Bern", 3000)},
    {"ID": "2", "ITEM": "ink", "N": None, "PRICE": 7.0, "TAGS": [], "ADDRESS": None},
    {"ID": "3", "ITEM": "pen", "N": 4, "PRICE": None, "TAGS": None, "ADDRESS": ("Rome", None)},
    {"ID": "4", "ITEM": None, "N": 9, "PRICE": 2.0, "TAGS": ["c"], "ADDRESS": ("Bern", 3001)},
]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session as plans need it."""
    properties = {
        "spark.sql.catalogImplementation": "in-memory",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        **SESSION,
    }
    with small_session(tmp_path_factory.mktemp("spark"), properties) as session:
        register(session)
        yield session


@pytest.fixture
def catalog() -> KnownSources:
    """Two streams and two tables."""
    return KnownSources(ORDERS, PAYMENTS, ITEMS, PRICES)


def stored(spark: SparkSession, catalog: KnownSources, text: str, **rows: Any) -> list[dict[str, Any]]:
    """What a persistent query of one plan writes."""
    (plan,) = catalog.create(text).query.plans
    return results(spark, plan, {"ORDERS": ROWS, **rows})


def test_filter_and_projection_of_stream(spark: SparkSession, catalog: KnownSources) -> None:
    text = "CREATE STREAM S AS SELECT ID, UCASE(ITEM) AS ITEM, N * 2 AS N2, ADDRESS->CITY FROM ORDERS WHERE N > 3"
    assert stored(spark, catalog, text) == [
        {"ID": "3", "ITEM": "PEN", "N2": 8, "CITY": "Rome", "ROWTIME": 2000},
        {"ID": "4", "ITEM": None, "N2": 18, "CITY": "Bern", "ROWTIME": 3000},
    ]


def test_comparisons_with_null_are_false(spark: SparkSession, catalog: KnownSources) -> None:
    text = "CREATE STREAM S AS SELECT ID, N FROM ORDERS WHERE NOT (N > 3)"
    assert [row["ID"] for row in stored(spark, catalog, text)] == ["1", "2"]


def test_partition_by(spark: SparkSession, catalog: KnownSources) -> None:
    text = "CREATE STREAM S AS SELECT ITEM, ID, N FROM ORDERS PARTITION BY ITEM"
    assert stored(spark, catalog, text)[0] == {"ITEM": "pen", "ID": "1", "N": 3, "ROWTIME": 0}


def test_table_functions_are_zipped(spark: SparkSession, catalog: KnownSources) -> None:
    text = "CREATE STREAM S AS SELECT ID, EXPLODE(TAGS) AS TAG, EXPLODE(ARRAY[1]) + 1 AS ONE FROM ORDERS"
    rows = [(row["ID"], row["TAG"], row["ONE"]) for row in stored(spark, catalog, text)]
    assert rows == [("1", "a", 2), ("1", "b", None), ("2", None, 2), ("3", None, 2), ("4", "c", 2)]
    single = "CREATE STREAM S AS SELECT ID, EXPLODE(TAGS) AS TAG FROM ORDERS"
    assert [row["TAG"] for row in stored(spark, catalog, single)] == ["a", "b", "c"]


def test_groups_of_stream(spark: SparkSession, catalog: KnownSources) -> None:
    text = """CREATE TABLE T AS SELECT ITEM, COUNT(*) AS C, SUM(N) AS S, LATEST_BY_OFFSET(ID) AS L, AS_VALUE(ITEM) AS I
      FROM ORDERS GROUP BY ITEM HAVING COUNT(*) > 1"""
    rows = sorted(stored(spark, catalog, text), key=lambda row: str(row["ITEM"]))
    assert rows == [
        {"ITEM": "ink", "C": 1, "S": 0, "L": "2", "I": "ink", "ROWTIME": 1000, "__deleted": True},
        {"ITEM": "pen", "C": 2, "S": 7, "L": "3", "I": "pen", "ROWTIME": 2000, "__deleted": False},
    ]


def test_groups_by_expression(spark: SparkSession, catalog: KnownSources) -> None:
    text = "CREATE TABLE T AS SELECT LEN(ITEM) + 1 AS L, COUNT(*) + 10 AS C FROM ORDERS GROUP BY LEN(ITEM) + 1"
    (row,) = stored(spark, catalog, text)
    assert (row["L"], row["C"]) == (4, 13)


def test_windows(spark: SparkSession, catalog: KnownSources) -> None:
    text = """CREATE TABLE T AS SELECT ITEM, COUNT(*) AS C, WINDOWSTART AS S FROM ORDERS
      WINDOW HOPPING (SIZE 4 SECONDS, ADVANCE BY 2 SECONDS) GROUP BY ITEM"""
    rows = sorted(stored(spark, catalog, text), key=lambda row: (row["ITEM"], row["WINDOWSTART"]))
    assert [(row["ITEM"], row["S"], row["WINDOWEND"], row["C"]) for row in rows] == [
        ("ink", -2000, 2000, 1),
        ("ink", 0, 4000, 1),
        ("pen", -2000, 2000, 1),
        ("pen", 0, 4000, 2),
        ("pen", 2000, 6000, 1),
    ]


def test_filter_of_table_deletes(spark: SparkSession, catalog: KnownSources) -> None:
    rows = [
        {"ID": "a", "NAME": "x", "STOCK": 5},
        {"ID": "b", "NAME": "y", "STOCK": 0},
        {"ID": "c", "__deleted": True},
    ]
    text = "CREATE TABLE T AS SELECT ID, STOCK FROM ITEMS WHERE STOCK > 1"
    found = stored(spark, catalog, text, ITEMS=rows)
    assert [(row["ID"], row["__deleted"]) for row in found] == [("a", False), ("b", True), ("c", True)]


@pytest.mark.parametrize("kind", ["INNER", "LEFT"])
def test_streams_within(spark: SparkSession, catalog: KnownSources, kind: str) -> None:
    payments = [{"ORDER_ID": "1", "AMOUNT": 8.0, "ROWTIME": 1000}, {"ORDER_ID": "2", "AMOUNT": 9.0, "ROWTIME": 9000}]
    text = f"""CREATE STREAM S AS SELECT O.ID AS ID, O.ITEM, P.AMOUNT FROM ORDERS O {kind} JOIN PAYMENTS P
      WITHIN 2 SECONDS GRACE PERIOD 1 SECOND ON O.ID = P.ORDER_ID"""
    found = {row["ID"]: row for row in stored(spark, catalog, text, PAYMENTS=payments)}
    assert (found["1"]["AMOUNT"], found["1"]["ROWTIME"]) == (8.0, 1000)
    assert ("2" in found) == (kind == "LEFT")


def test_full_join_of_streams_has_key_of_its_own(spark: SparkSession, catalog: KnownSources) -> None:
    payments = [{"ORDER_ID": "1", "AMOUNT": 8.0, "ROWTIME": 1000}, {"ORDER_ID": "9", "AMOUNT": 9.0, "ROWTIME": 9000}]
    text = """CREATE STREAM S AS SELECT ROWKEY, O.ITEM, P.AMOUNT FROM ORDERS O FULL JOIN PAYMENTS P
      WITHIN (2 SECONDS, 3 SECONDS) GRACE PERIOD 1 SECOND ON O.ID = P.ORDER_ID"""
    found = {row["ROWKEY"]: row["AMOUNT"] for row in stored(spark, catalog, text, PAYMENTS=payments)}
    assert found == {"1": 8.0, "2": None, "3": None, "4": None, "9": 9.0}


JOINED_ITEMS = [
    {"ID": "a", "NAME": "x", "STOCK": 5, "ROWTIME": 10},
    {"ID": "b", "NAME": "y", "STOCK": 6, "ROWTIME": 20},
    {"ID": "a", "NAME": "z", "STOCK": 7, "ROWTIME": 30},
    {"ID": "c", "NAME": "w", "STOCK": 8, "ROWTIME": 35},
    {"ID": "c", "ROWTIME": 40, "__deleted": True},
]
JOINED_PRICES = [{"ID": "a", "PRICE": 1.0, "ROWTIME": 5}, {"ID": "d", "PRICE": 2.0, "ROWTIME": 50}]


@pytest.mark.parametrize(
    ("kind", "there"), [("INNER", {"a"}), ("LEFT", {"a", "b"}), ("RIGHT", {"a", "d"}), ("FULL", {"a", "b", "d"})]
)
def test_tables_by_key(spark: SparkSession, catalog: KnownSources, kind: str, there: set[str]) -> None:
    text = f"CREATE TABLE T AS SELECT * FROM ITEMS I {kind} JOIN PRICES P ON I.ID = P.ID"
    planned = catalog.create(text)
    (key,) = planned.sink.key
    assert key.name == ("ROWKEY" if kind == "FULL" else "I_ID")
    found = {row[key.name]: row for row in stored(spark, catalog, text, ITEMS=JOINED_ITEMS, PRICES=JOINED_PRICES)}
    assert set(found) == {"a", "b", "c", "d"}
    assert {name for name, row in found.items() if not row["__deleted"]} == there
    assert (found["a"]["I_NAME"], found["a"]["P_PRICE"], found["a"]["ROWTIME"]) == ("z", 1.0, 30)


def test_join_of_three_tables_has_internal_topic(spark: SparkSession, catalog: KnownSources) -> None:
    catalog.add("CREATE TABLE SIZES (ID STRING PRIMARY KEY, CM INT) WITH (KAFKA_TOPIC='sizes', VALUE_FORMAT='JSON')")
    planned = catalog.create(
        """CREATE TABLE T AS SELECT I.ID, NAME, PRICE, CM FROM ITEMS I JOIN PRICES P ON I.ID = P.ID
        LEFT JOIN SIZES S ON P.ID = S.ID"""
    )
    first, second = planned.query.plans
    assert first.sink is not None
    assert [topic.name for topic in planned.query.topics] == [first.sink.topic, "T-dlq"]
    written = results(spark, first, {"ITEMS": JOINED_ITEMS, "PRICES": JOINED_PRICES})
    sizes = [{"ID": "a", "CM": 4}]
    found = results(spark, second, {first.sink.name: written, "SIZES": sizes})
    there = [row for row in found if not row["__deleted"]]
    assert [(row["I_ID"], row["NAME"], row["PRICE"], row["CM"]) for row in there] == [("a", "z", 1.0, 4)]


def test_push_query_has_columns_in_order(spark: SparkSession, catalog: KnownSources) -> None:
    (plan,) = catalog.push("SELECT N, ID, ROWTIME FROM ORDERS WHERE ITEM LIKE 'p%' EMIT CHANGES LIMIT 5")
    assert [column.name for column in plan.columns] == ["N", "ID", "ROWTIME"]
    assert plan.limit == 5
    assert results(spark, plan, {"ORDERS": ROWS}) == [
        {"N": 3, "ID": "1", "ROWTIME": 0},
        {"N": 4, "ID": "3", "ROWTIME": 2000},
    ]


def test_lambdas(spark: SparkSession, catalog: KnownSources) -> None:
    text = """SELECT ID, TRANSFORM(FILTER(TAGS, T => T <> 'a'), T => T || ITEM) AS R,
      REDUCE(ARRAY[1, 2, 3], 0, (S, X) => S + X) AS SUM FROM ORDERS EMIT CHANGES"""
    (plan,) = catalog.push(text)
    found = {row["ID"]: (row["R"], row["SUM"]) for row in results(spark, plan, {"ORDERS": ROWS})}
    assert found == {"1": (["bpen"], 6), "2": ([], 6), "3": (None, 6), "4": (["c"], 6)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT UCASE(NAME) AS U FROM ITEMS WHERE STOCK % 2 = 1", [("X",), ("Z",)]),
        ("SELECT COUNT(*) AS C, MAX(STOCK) AS M FROM ITEMS", [(4, 8)]),
        ("SELECT STOCK % 2 AS B, COUNT(*) AS C FROM ITEMS GROUP BY STOCK % 2 HAVING MIN(STOCK) > 5", [(0, 2)]),
        ("SELECT I.ID, P.PRICE FROM ITEMS I JOIN PRICES P ON I.ID = P.ID WHERE STOCK > 5", [("a", 1.0)]),
        ("SELECT P.ID FROM ITEMS I FULL JOIN PRICES P ON I.ID = P.ID WHERE I.ID IS NULL", [("d",)]),
        ("SELECT ID, N FROM ORDERS WHERE N > 3 LIMIT 1", [("3", 4)]),
    ],
)
def test_pull_queries_of_any_shape(
    spark: SparkSession, catalog: KnownSources, text: str, expected: list[tuple[Any, ...]]
) -> None:
    for name in ("ITEMS", "PRICES"):
        catalog.materialize(name)
    rows = {"ITEMS": JOINED_ITEMS[:-1], "PRICES": JOINED_PRICES, "ORDERS": ROWS}
    found = pulled(spark, catalog.pull(text), catalog.known, rows)
    assert sorted(map(tuple, found), key=str) == expected


def streamed_rows(
    spark: SparkSession, folder: Path, catalog: KnownSources, text: str, *batches: dict[str, list[dict[str, Any]]]
) -> list[list[dict[str, Any]]]:
    """What each batch of a persistent query of one or more plans gives out."""
    found = [list(batches)]
    for number, plan in enumerate(catalog.create(text).query.plans):
        rows = streamed(spark, folder / str(number), plan, found[-1])
        if plan.is_sink_internal:
            assert plan.sink is not None
            later = [{plan.sink.name: batch, **given} for batch, given in zip(rows, batches, strict=False)]
            found.append(later)
        else:
            return rows
    raise AssertionError("no plan writes the sink")


def clicks(*times: int, key: str = "pen") -> list[dict[str, Any]]:
    """Records of a stream at some times in seconds."""
    return [{"ID": str(time), "ITEM": key, "N": 1, "ROWTIME": time * 1000} for time in times]


def test_windows_of_a_stream_change(spark: SparkSession, catalog: KnownSources, tmp_path: Path) -> None:
    text = """CREATE TABLE T AS SELECT ITEM, COUNT(*) AS C FROM ORDERS
      WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 5 SECONDS) GROUP BY ITEM"""
    batches = [{"ORDERS": clicks(1, 2)}, {"ORDERS": clicks(3, 12)}]
    first, second, *_ = streamed_rows(spark, tmp_path, catalog, text, *batches)
    assert [(row["WINDOWSTART"], row["C"]) for row in first] == [(0, 2)]
    assert sorted((row["WINDOWSTART"], row["C"]) for row in second) == [(0, 3), (10_000, 1)]


def test_final_windows_of_a_stream_come_once(spark: SparkSession, catalog: KnownSources, tmp_path: Path) -> None:
    text = """CREATE TABLE T AS SELECT ITEM, COUNT(*) AS C FROM ORDERS
      WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 5 SECONDS) GROUP BY ITEM HAVING COUNT(*) > 1 EMIT FINAL"""
    batches = [{"ORDERS": clicks(1, 2)}, {"ORDERS": clicks(3, 12)}, {"ORDERS": clicks(16)}, {"ORDERS": clicks(40)}]
    found = streamed_rows(spark, tmp_path, catalog, text, *batches)
    assert [(row["WINDOWSTART"], row["C"]) for batch in found for row in batch] == [(0, 3), (10_000, 2)]


def test_outer_join_of_streams_waits_for_partner(spark: SparkSession, catalog: KnownSources, tmp_path: Path) -> None:
    text = """CREATE STREAM S AS SELECT O.ID AS ID, P.AMOUNT FROM ORDERS O LEFT JOIN PAYMENTS P
      WITHIN 2 SECONDS GRACE PERIOD 1 SECOND ON O.ID = P.ORDER_ID"""
    paid = [{"ORDER_ID": "1", "AMOUNT": 8.0, "ROWTIME": 3000}]
    later = [{"ORDER_ID": "x", "AMOUNT": 0.0, "ROWTIME": 60_000}]
    found = streamed_rows(
        spark,
        tmp_path,
        catalog,
        text,
        {"ORDERS": clicks(1, 2), "PAYMENTS": paid},
        {"ORDERS": clicks(60), "PAYMENTS": later},
    )
    assert [(row["ID"], row["AMOUNT"]) for row in found[0]] == [("1", 8.0)]
    assert [(row["ID"], row["AMOUNT"]) for batch in found[1:] for row in batch] == [("2", None)]


def test_tables_joined_by_key_change(spark: SparkSession, catalog: KnownSources, tmp_path: Path) -> None:
    text = "CREATE TABLE T AS SELECT I.ID AS ID, NAME, PRICE FROM ITEMS I JOIN PRICES P ON I.ID = P.ID"
    found = streamed_rows(
        spark,
        tmp_path,
        catalog,
        text,
        {"ITEMS": [{"ID": "a", "NAME": "x"}], "PRICES": []},
        {"ITEMS": [], "PRICES": [{"ID": "a", "PRICE": 2.0}]},
        {"ITEMS": [{"ID": "a", "__deleted": True, "ROWOFFSET": 7}], "PRICES": []},
    )
    assert [(row["ID"], row["PRICE"], row["__deleted"]) for batch in found for row in batch] == [
        ("a", None, True),
        ("a", 2.0, False),
        ("a", 2.0, True),
    ]


def test_sessions(spark: SparkSession, catalog: KnownSources, tmp_path: Path) -> None:
    text = """CREATE TABLE T AS SELECT ITEM, COUNT(*) AS C, TOPK(N, 2) AS TOP FROM ORDERS
      WINDOW SESSION (5 SECONDS, GRACE PERIOD 1 MINUTE) GROUP BY ITEM"""
    first, second, *_ = streamed_rows(spark, tmp_path, catalog, text, {"ORDERS": clicks(1, 9)}, {"ORDERS": clicks(5)})
    assert {(row["WINDOWSTART"], row["WINDOWEND"], row["C"], row["__deleted"]) for row in first} == {
        (1000, 1000, 1, False),
        (9000, 9000, 1, False),
    }
    kept = [row for row in second if not row["__deleted"]]
    assert [(row["WINDOWSTART"], row["WINDOWEND"], row["C"], row["TOP"]) for row in kept] == [(1000, 9000, 3, [1, 1])]
    gone = {(row["WINDOWSTART"], row["WINDOWEND"]) for row in second if row["__deleted"]}
    assert gone == {(1000, 1000), (9000, 9000)}


def test_aggregates_of_table_take_back(spark: SparkSession, catalog: KnownSources, tmp_path: Path) -> None:
    text = "CREATE TABLE T AS SELECT NAME, SUM(STOCK) AS S, COUNT(*) AS C FROM ITEMS WHERE STOCK > 0 GROUP BY NAME"
    found = streamed_rows(
        spark,
        tmp_path,
        catalog,
        text,
        {"ITEMS": [{"ID": "a", "NAME": "x", "STOCK": 5}, {"ID": "b", "NAME": "x", "STOCK": 6}]},
        {"ITEMS": [{"ID": "a", "NAME": "y", "STOCK": 7, "ROWOFFSET": 5}]},
        {"ITEMS": [{"ID": "b", "NAME": "x", "STOCK": 0, "ROWOFFSET": 6}]},
    )
    last = {row["NAME"]: row for batch in found for row in batch}
    assert (last["y"]["S"], last["y"]["C"], last["x"]["__deleted"]) == (7, 1, True)


def test_foreign_key_join(spark: SparkSession, catalog: KnownSources, tmp_path: Path) -> None:
    text = "CREATE TABLE T AS SELECT I.ID AS ID, I.STOCK, P.PRICE FROM ITEMS I LEFT JOIN PRICES P ON I.NAME = P.ID"
    found = streamed_rows(
        spark,
        tmp_path,
        catalog,
        text,
        {"ITEMS": [{"ID": "a", "NAME": "p", "STOCK": 5}], "PRICES": [{"ID": "p", "PRICE": 2.0}]},
        {"ITEMS": [{"ID": "a", "NAME": "q", "STOCK": 6, "ROWOFFSET": 5}], "PRICES": []},
        {"ITEMS": [{"ID": "a", "__deleted": True, "ROWOFFSET": 6}], "PRICES": []},
    )
    rows = [(row["ID"], row["STOCK"], row["PRICE"], row["__deleted"]) for batch in found for row in batch]
    assert rows[:2] == [("a", 5, 2.0, False), ("a", 6, None, False)]
    assert rows[2][3] is True


def test_foreign_key_join_gives_out_the_last_of_several_changes(
    spark: SparkSession, catalog: KnownSources, tmp_path: Path
) -> None:
    text = "CREATE TABLE T AS SELECT I.ID AS ID, I.STOCK, P.PRICE FROM ITEMS I JOIN PRICES P ON I.NAME = P.ID"
    _, plan = catalog.create(text).query.plans

    def change(key: str, stock: int, sign: int, number: int) -> dict[str, Any]:
        named = dict.fromkeys(column.name for column in plan.inputs[0].source.columns)
        stocks = [name for name in named if name.endswith("_STOCK")]
        return {**named, "key": key, "row_0": "a", **dict.fromkeys(stocks, stock), "__sign": sign, "__change": number}

    changes, prices = plan.inputs[0].source.name, [{"ID": one, "PRICE": ord(one) / 1.0} for one in "pq"]
    for number, order in enumerate([(0, 1, 2), (2, 0, 1)]):
        # It is removed under one key, and comes again under the other one.
        all_changes = [change("p", 5, 1, 1), change("p", 5, -2, 2), change("q", 6, 1, 3)]
        found = streamed(
            spark,
            tmp_path / str(number),
            plan,
            [
                {changes: [all_changes[place] for place in order], "PRICES": prices},
                # The other key has not heard yet that the row has moved away, and its right row changes.
                {changes: [change("p", 7, 1, 4), change("q", 8, 1, 5)], "PRICES": []},
                {changes: [], "PRICES": [{"ID": "p", "PRICE": 1.0}]},
            ],
        )
        rows = [(row["STOCK"], row["PRICE"], row["__deleted"]) for batch in found for row in batch]
        assert rows == [(6, 113.0, False), (8, 113.0, False)]
