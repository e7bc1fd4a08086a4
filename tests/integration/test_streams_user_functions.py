"""Users' functions in Spark: as SQL calls them, in SELECTs and in processors."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streams.functions.user import describe
from streams.model import types
from streams.model.plan import Aggregate, ProcessStep, SessionAggregates
from streams.model.session import SESSION
from streams.model.sources import Column
from streams.spark.queries.functions import FunctionMissing, register
from streams.sql.expressions import Expression
from streams.sql.functions.user import UserFunction, user_functions
from tests.support.processor_feed import ProcessorFeed
from tests.support.spark_java import needs_java
from tests.support.spark_session import small_session
from tests.support.sql_values import Null, expression

pytestmark = [
    needs_java,
    # Connections of Spark to Python are closed when they are collected.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SCHEMA = "K string, T string, ROWTIME bigint"
FILE = '''
"""Functions of a user."""

import time as clock
from datetime import date, datetime, time, timedelta
from decimal import Decimal

from _words import SEPARATOR
from streams.functions.api import udaf, udf, udtf


@udf(description="The sum of two numbers.", author="Ada", version="1.2")
def plus(one: int, other: int) -> int:
    return one + other


@udf("plus")
def plus_text(one: str, other: str) -> str:
    return one + other


@udf
def joined(*parts: str) -> str:
    return SEPARATOR.join("-" if part is None else part for part in parts)


@udf
def seven() -> "INTEGER":
    return 7


@udf(arguments=["DECIMAL(6, 2)"], returns="DECIMAL(8, 2)")
def doubled(value):
    return value * 2


@udf
def later(at: datetime, day: date, clock: time) -> "STRUCT<`At` TIMESTAMP, `Day` DATE, `Clock` TIME>":
    hour = timedelta(hours=1)
    return {"At": at + hour, "Day": day + timedelta(days=1), "Clock": clock.replace(minute=5)}


@udf
def swapped(pairs: dict[str, int | None]) -> dict[str, list[str]]:
    return {str(value): [key] for key, value in pairs.items()}


@udf
def mistaken(text: str) -> int:
    return text


@udf
def failing(value: int) -> int:
    if value == 2:
        raise SystemExit
    return 10 // value


@udf
def endless(value: int) -> int:
    while True:
        try:
            clock.sleep(0.01)
        except Exception:
            pass


@udtf
def letters(text: str) -> list[str]:
    yield from text


@udaf
class Unmergeable:
    def start(self): return 0
    def add(self, state, text: str): return state + 1
    def result(self, state) -> int: return state


@udaf(description="All texts, joined in the order of the records.")
class Chained:
    def start(self):
        return []

    def add(self, state, text: str):
        if text == "bad":
            raise ValueError(text)
        return [*state, text]

    def merge(self, one, other):
        return one + other

    def result(self, state) -> str:
        return ">".join(state)
'''


@pytest.fixture(scope="module")
def extensions(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("extensions")
    (folder / "functions.py").write_text(FILE)
    (folder / "_words.py").write_text("SEPARATOR = '/'\n")
    return str(folder)


@pytest.fixture(scope="module")
def functions(extensions: str) -> dict[str, UserFunction]:
    return user_functions(describe(extensions))


@pytest.fixture(scope="module")
def spark(
    tmp_path_factory: pytest.TempPathFactory, functions: dict[str, UserFunction], extensions: str
) -> Iterator[SparkSession]:
    properties = {
        "spark.sql.catalogImplementation": "in-memory",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        **SESSION,
    }
    with small_session(tmp_path_factory.mktemp("spark"), properties) as session:
        register(session, {f"udf:{name}" for name in functions}, extensions, batch_seconds=2.0)
        register(session, {"caudal_instr"})
        yield session


def test_calls(spark: SparkSession, functions: dict[str, UserFunction]) -> None:
    def call(name: str, *values: Any) -> str:
        arguments = [expression(value) for value in values]
        made = functions[name].call(arguments, order="0")
        assert made.functions == {f"udf:{name}"}
        return made.text

    moment = datetime(2024, 2, 28, 23, 30, 0, 123000, tzinfo=UTC)
    examples: list[tuple[str, object]] = [
        (call("PLUS", 9_007_199_254_740_993, 1), 9_007_199_254_740_994),
        # An INTEGER becomes a BIGINT; a sum beyond 64 bits is none.
        (call("PLUS", 1, 2), 3),
        (call("PLUS", 2**63 - 1, 1), None),
        (call("PLUS", "a", "b"), "ab"),
        # None is given to the function, for which it is a mistake.
        (call("PLUS", 1, None), None),
        (call("JOINED", "a", None, "c"), "a/-/c"),
        (call("SEVEN"), 7),
        (call("DOUBLED", Decimal("12.25")), Decimal("24.50")),
        (call("SWAPPED", {"x": 1, "y": 2}), {"1": ["x"], "2": ["y"]}),
        (call("MISTAKEN", "text"), None),
        (call("FAILING", 5), 2),
        (call("FAILING", 0), None),
        (call("FAILING", 2), None),
        (call("LETTERS", "abc"), ["a", "b", "c"]),
        (call("LETTERS", Null(types.STRING)), None),
        ("caudal_instr('banana', 'an', 1, 2)", 4),
    ]
    row = spark.sql("SELECT " + ", ".join(text for text, _ in examples)).collect()[0]
    assert list(row) == [expected for _, expected in examples]
    later = (
        spark.sql(f"SELECT {call('LATER', moment, date(2024, 2, 28), time(1, 2, 3))} AS found").toArrow().to_pylist()
    )
    assert later == [
        {
            "found": {
                "At": datetime(2024, 2, 29, 0, 30, 0, 123000, tzinfo=UTC),
                "Day": date(2024, 2, 29),
                "Clock": time(1, 5, 3),
            }
        }
    ]


def test_an_aggregate_goes_by_the_order_of_records(spark: SparkSession, functions: dict[str, UserFunction]) -> None:
    made = functions["CHAINED"].call([Expression("t", types.STRING)], order="struct(p, o)")
    text = f"SELECT g, {made.text} AS found FROM VALUES {{rows}} AS v(g, p, o, t) GROUP BY g ORDER BY g"
    rows = "(1, 0, 2, 'c'), (1, 1, 0, 'd'), (1, 0, 1, 'bad'), (1, 0, 0, 'a'), (2, 0, 5, cast(null as string))"
    assert [tuple(row) for row in spark.sql(text.format(rows=rows)).collect()] == [(1, "a>c>d"), (2, None)]


def test_a_function_that_does_not_end_fails_the_query(spark: SparkSession, functions: dict[str, UserFunction]) -> None:
    text = functions["ENDLESS"].call([Expression("id", types.BIGINT)], order="0").text
    with pytest.raises(Exception, match="function ENDLESS for .* rows took longer than 2 seconds"):
        spark.range(3).selectExpr(text).collect()


def test_a_function_that_is_not_there(spark: SparkSession, extensions: str) -> None:
    with pytest.raises(FunctionMissing, match="has no function NONE"):
        register(spark, ["udf:NONE"], extensions)
    with pytest.raises(FunctionMissing, match="caudal_none"):
        register(spark, ["caudal_none"])


def _sessions(aggregate: Aggregate) -> ProcessStep:
    bounds = (Column(name, "BIGINT") for name in ("ROWTIME", "WINDOWSTART", "WINDOWEND"))
    return ProcessStep(
        view="out",
        input="in",
        keys=("K",),
        processor=SessionAggregates(gap_ms=10, grace_ms=100, aggregates=(aggregate,)),
        output=(Column("K", "STRING"), Column("C", aggregate.type), *bounds),
    )


def test_an_aggregate_without_merge_is_refused_in_session_windows(
    spark: SparkSession, extensions: str, tmp_path: Path
) -> None:
    counted = Aggregate(name="C", function="udf:UNMERGEABLE", arguments=("T",), argument_types=("STRING",))
    with pytest.raises(ValueError, match="UNMERGEABLE cannot be used in session windows: add a method `merge`"):
        ProcessorFeed(spark, tmp_path, _sessions(counted), SCHEMA, extensions=extensions)
    unknown = Aggregate(name="C", function="udf:CHAINED", arguments=("T",), argument_types=("BIGINT",))
    with pytest.raises(ValueError, match=r"has no aggregate CHAINED\(BIGINT\)"):
        ProcessorFeed(spark, tmp_path, _sessions(unknown), SCHEMA, extensions=extensions)


def test_an_aggregate_in_session_windows(spark: SparkSession, extensions: str, tmp_path: Path) -> None:
    chained = Aggregate(name="C", function="udf:CHAINED", arguments=("T",), argument_types=("STRING",), type="STRING")
    feed = ProcessorFeed(
        spark, tmp_path, _sessions(chained), "K string, T string, ROWTIME bigint", extensions=extensions
    )
    assert [row["C"] for row in feed.batch(("a", "x", 100), ("a", "bad", 101), ("a", "y", 120))] == ["x", "y"]
    assert [row["C"] for row in feed.batch(("a", "z", 110))] == [None, None, "x>y>z"]
    feed.stop()
