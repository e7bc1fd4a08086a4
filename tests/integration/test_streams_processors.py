"""Processors in Spark: what they give out, batch by batch."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from streams.model.plan import (
    Aggregate,
    Changes,
    ForeignKeyJoin,
    ProcessStep,
    SessionAggregates,
    UndoAggregates,
)
from streams.model.session import SESSION
from streams.model.sources import Column
from tests.support.processor_feed import ProcessorFeed
from tests.support.spark_java import needs_java
from tests.support.spark_session import small_session

pytestmark = [
    needs_java,
    # Connections of Spark to Python are closed when they are collected.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
_PROPERTIES = {
    "spark.sql.catalogImplementation": "in-memory",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    **SESSION,
}
K = Column("K", "STRING")
TIMES = (Column("ROWTIME", "BIGINT"),)
BOUNDS = (*TIMES, Column("WINDOWSTART", "BIGINT"), Column("WINDOWEND", "BIGINT"))
COUNT = Aggregate(name="N", function="COUNT")
LIST = Aggregate(name="L", function="COLLECT_LIST", arguments=("V",), argument_types=("BIGINT",), type="ARRAY<BIGINT>")


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with small_session(tmp_path_factory.mktemp("spark"), _PROPERTIES) as session:
        yield session


def _sessions(*, is_final: bool = False, grace_ms: int = 100) -> ProcessStep:
    return ProcessStep(
        view="out",
        input="in",
        keys=("K",),
        processor=SessionAggregates(gap_ms=10, grace_ms=grace_ms, aggregates=(COUNT, LIST), is_final=is_final),
        output=(K, Column("N", "BIGINT"), Column("L", "ARRAY<BIGINT>"), *BOUNDS),
        reads_watermark=True,
    )


def _session_rows(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Key, bounds and aggregates of each row; of deleted ones without aggregates."""
    found = []
    for row in rows:
        assert row["ROWTIME"] == row["WINDOWEND"]
        aggregates = () if row["__deleted"] else (row["N"], row["L"])
        found.append((row["K"], row["WINDOWSTART"], row["WINDOWEND"], *aggregates))
    return found


def test_sessions_grow_and_merge_and_old_bounds_are_deleted_first(spark: SparkSession, tmp_path: Path) -> None:
    schema = "K string, V bigint, ROWTIME bigint"
    feed = ProcessorFeed(spark, tmp_path, _sessions(), schema, watermark_ms=110)
    big = 9_007_199_254_740_993
    assert _session_rows(feed.batch(("a", big, 1000), ("a", None, 1005), ("b", 3, 1000))) == [
        ("a", 1000, 1005, 2, [big, None]),
        ("b", 1000, 1000, 1, [3]),
    ]
    # Two sessions, which a later record joins.
    assert _session_rows(feed.batch(("a", 4, 1020))) == [("a", 1020, 1020, 1, [4])]
    assert _session_rows(feed.batch(("a", 5, 1013))) == [
        ("a", 1000, 1005),
        ("a", 1020, 1020),
        ("a", 1000, 1020, 4, [big, None, 4, 5]),
    ]
    # A session that comes and goes within a batch has never been given out.
    assert _session_rows(feed.batch(("b", 6, 1030), ("b", 7, 1040), ("b", 8, 1035))) == [
        ("b", 1030, 1040, 3, [6, 7, 8])
    ]
    feed.stop()


def test_rows_that_only_fit_closed_sessions_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    schema = "K string, V bigint, ROWTIME bigint, __stream_time bigint"
    feed = ProcessorFeed(spark, tmp_path, _sessions(), schema, watermark_ms=110)
    assert _session_rows(feed.batch(("a", 1, 1000, 1000), ("a", 2, 889, 1000), ("a", 3, 890, 1000))) == [
        ("a", 890, 890, 1, [3]),
        ("a", 1000, 1000, 1, [1]),
    ]
    assert feed.late.value == 1
    assert _session_rows(feed.batch(("a", 4, 891, 1000), ("a", 5, 1000, 5000))) == [
        ("a", 890, 890),
        ("a", 890, 891, 2, [3, 4]),
    ]
    assert feed.late.value == 2
    assert _session_rows(feed.batch(("a", 6, 5000, 5000))) == [("a", 5000, 5000, 1, [6])]
    feed.stop()


def test_rows_before_the_watermark_are_not_lost(spark: SparkSession, tmp_path: Path) -> None:
    feed = ProcessorFeed(spark, tmp_path, _sessions(), "K string, V bigint, ROWTIME bigint", watermark_ms=100)
    assert len(feed.batch(("a", 1, 1000))) == 1
    # The watermark is 900; sessions up to 889 are closed.
    assert _session_rows(feed.batch(("b", 2, 890))) == [("b", 890, 890, 1, [2])]
    assert feed.batch(("b", 3, 879), ("c", 4, 888)) == []
    assert feed.late.value == 2
    feed.stop()


def test_state_and_timers_survive_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    def feed() -> ProcessorFeed:
        step = _sessions(is_final=True)
        return ProcessorFeed(spark, tmp_path, step, "K string, V bigint, ROWTIME bigint", watermark_ms=110)

    first = feed()
    assert first.batch(("a", 1, 1000), ("b", 2, 1001)) == []
    first.stop()
    second = feed()
    assert second.batch(("a", 3, 1005)) == []
    assert sorted(_session_rows(second.batch(("c", 4, 1300)))) == [
        ("a", 1000, 1005, 2, [1, 3]),
        ("b", 1001, 1001, 1, [2]),
    ]
    second.stop()


def test_final_sessions_come_once_when_the_watermark_has_passed(spark: SparkSession, tmp_path: Path) -> None:
    step = _sessions(is_final=True)
    feed = ProcessorFeed(spark, tmp_path, step, "K string, V bigint, ROWTIME bigint", watermark_ms=110)
    assert feed.batch(("a", 1, 1000), ("a", 2, 1008), ("b", 3, 1100)) == []
    assert feed.batch(("b", 4, 1118)) == []
    assert _session_rows(feed.batch(("b", 5, 1119))) == [("a", 1000, 1008, 2, [1, 2])]
    assert _session_rows(feed.batch(("c", 9, 5000))) == [
        ("b", 1100, 1100, 1, [3]),
        ("b", 1118, 1119, 2, [4, 5]),
    ]
    feed.stop()


def test_aggregates_of_a_table_take_rows_back(spark: SparkSession, tmp_path: Path) -> None:
    total = Aggregate(
        name="S", function="SUM", arguments=("D",), argument_types=("DECIMAL(5, 2)",), type="DECIMAL(5, 2)"
    )
    step = ProcessStep(
        view="out",
        input="in",
        keys=("K",),
        processor=UndoAggregates(aggregates=(COUNT, LIST, total)),
        output=(K, Column("N", "BIGINT"), Column("L", "ARRAY<BIGINT>"), Column("S", "DECIMAL(5, 2)"), *TIMES),
    )
    schema = "K string, V bigint, D decimal(5,2), __sign int, ROWTIME bigint"
    feed = ProcessorFeed(spark, tmp_path, step, schema)

    def rows(*given: Any) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in feed.batch(*given)]

    assert rows(("a", 1, Decimal("1.50"), 1, 10), ("a", 2, None, 1, 12)) == [
        ("a", 2, [1, 2], Decimal("1.50"), 12, False)
    ]
    assert rows(("a", 1, Decimal("1.50"), -1, 11), ("a", 3, Decimal("0.25"), 1, 11)) == [
        ("a", 2, [2, 3], Decimal("0.25"), 12, False)
    ]
    assert rows(("a", 2, None, -1, 20), ("a", 3, Decimal("0.25"), -2, 21)) == [("a", None, None, None, 21, True)]
    # What comes and goes within a batch was never there.
    assert rows(("a", 1, None, 1, 30), ("a", 1, None, -2, 31)) == []
    feed.stop()


def test_changes_of_a_table(spark: SparkSession, tmp_path: Path) -> None:
    step = ProcessStep(
        view="out",
        input="in",
        keys=("K",),
        processor=Changes(columns=("V", "M")),
        output=(
            K,
            Column("V", "BIGINT"),
            Column("M", "MAP<STRING, INTEGER>"),
            *TIMES,
            Column("__sign", "INTEGER"),
            Column("__change", "BIGINT"),
        ),
    )
    feed = ProcessorFeed(
        spark, tmp_path, step, "K string, V bigint, M map<string,int>, ROWTIME bigint, __deleted boolean"
    )

    def rows(*given: Any) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in feed.batch(*given)]

    old, new = {"x": 1, "y": None}, {"z": 2}
    assert rows(("a", 1, old, 10, False), ("b", 5, None, 10, False)) == [
        ("a", 1, old, 10, 1, 0),
        ("b", 5, None, 10, 1, 1),
    ]
    assert rows(("a", 2, new, 11, False)) == [("a", 1, old, 11, -1, 2), ("a", 2, new, 11, 1, 2)]
    # -2: nothing takes its place.
    assert rows(("a", None, None, 12, True), ("a", None, None, 13, True)) == [("a", 2, new, 13, -2, 4)]
    # Of several records of a batch, the last one counts.
    assert rows(("b", None, None, 14, True), ("b", 6, None, 15, False)) == [
        ("b", 5, None, 15, -1, 6),
        ("b", 6, None, 15, 1, 6),
    ]
    feed.stop()


@pytest.mark.parametrize("kind", ["INNER", "LEFT"])
def test_foreign_key_join(spark: SparkSession, tmp_path: Path, kind: Any) -> None:
    step = ProcessStep(
        view="out",
        input="in",
        keys=("F",),
        processor=ForeignKeyJoin(left_key=("ID",), left=("ID", "V"), right=("F", "NAME"), kind=kind),
        output=(Column("ID", "BIGINT"), Column("V", "STRING"), Column("F", "STRING"), Column("NAME", "STRING"), *TIMES),
    )
    schema = "F string, __side int, ID bigint, V string, __sign int, NAME string, ROWTIME bigint, __deleted boolean"
    feed = ProcessorFeed(spark, tmp_path, step, schema)

    def left(key: str | None, owner: int, value: str, sign: int, time: int) -> tuple[Any, ...]:
        return key, 0, owner, value, sign, None, time, False

    def right(key: str, name: str | None, time: int) -> tuple[Any, ...]:
        return key, 1, None, None, None, name, time, name is None

    def rows(*given: Any) -> list[tuple[Any, ...]]:
        """The joined rows; of deleted ones the left key."""
        return [
            (row["ID"], "deleted") if row["__deleted"] else (row["ID"], row["V"], row["NAME"], row["ROWTIME"])
            for row in sorted(feed.batch(*given), key=lambda row: row["ID"])
        ]

    is_left = kind == "LEFT"
    unmatched = (1, "one", None, 10) if is_left else (1, "deleted")
    assert rows(left("x", 1, "one", 1, 10)) == [unmatched]
    assert rows(right("x", "X", 20)) == [(1, "one", "X", 20)]
    assert rows(left("x", 2, "two", 1, 30), right("y", "Y", 30)) == [(2, "two", "X", 30)]
    assert rows(right("x", "XX", 40)) == [(1, "one", "XX", 40), (2, "two", "XX", 40)]
    # One moves to another key, the other is gone.
    assert rows(left("x", 1, "one", -1, 50), left("y", 1, "uno", 1, 50), left("x", 2, "two", -2, 51)) == [
        (1, "uno", "Y", 50),
        (2, "deleted"),
    ]
    assert rows(right("x", "gone", 60)) == []
    assert rows(right("y", None, 70)) == [(1, "uno", None, 50) if is_left else (1, "deleted")]
    # NULL refers to nothing.
    nothing = (3, "three", None, 80) if is_left else (3, "deleted")
    assert rows(left(None, 3, "three", 1, 80)) == [nothing]
    feed.stop()


def test_literals_of_aggregates(spark: SparkSession, tmp_path: Path) -> None:
    latest = Aggregate(
        name="L",
        function="LATEST_BY_OFFSET",
        arguments=("V",),
        literals=(msgspec.Raw(b"2"), msgspec.Raw(b"false")),
        argument_types=("BIGINT",),
        type="ARRAY<BIGINT>",
    )
    top = Aggregate(
        name="T",
        function="TOPK",
        arguments=("V", "S"),
        literals=(msgspec.Raw(b"1"),),
        argument_types=("BIGINT", "STRING"),
        type="ARRAY<STRUCT<`sort_col` BIGINT, `col0` STRING>>",
    )
    step = ProcessStep(
        view="out",
        input="in",
        keys=("K",),
        processor=SessionAggregates(gap_ms=10, grace_ms=100, aggregates=(latest, top)),
        output=(K, Column("L", latest.type), Column("T", top.type), *BOUNDS),
    )
    feed = ProcessorFeed(spark, tmp_path, step, "K string, V bigint, S string, ROWTIME bigint")
    (row,) = feed.batch(("a", 5, "five", 3), ("a", 9, "nine", 2), ("a", None, None, 1))
    assert (row["L"], row["T"]) == ([9, None], [{"sort_col": 9, "col0": "nine"}])
    feed.stop()


def test_values_of_all_types_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    values: dict[str, tuple[str, str, object]] = {
        "B": ("BOOLEAN", "boolean", True),
        "I": ("INTEGER", "int", -(2**31)),
        "L": ("BIGINT", "bigint", 2**63 - 1),
        "D": ("DOUBLE", "double", -0.1),
        "E": ("DECIMAL(38, 10)", "decimal(38,10)", Decimal("1234567890123456789012345678.0123456789")),
        "S": ("STRING", "string", "ä\n\x00"),
        "Y": ("BYTES", "binary", b"\x00\xff"),
        "T": ("TIME", "time(3)", time(1, 2, 3, 4000)),
        "A": ("DATE", "date", date(1969, 12, 31)),
        "Z": ("TIMESTAMP", "timestamp", datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
        "N": (
            "ARRAY<STRUCT<`x` TIME, `m` MAP<STRING, DECIMAL(3, 1)>>>",
            "array<struct<x:time(3),m:map<string,decimal(3,1)>>>",
            [{"x": time(5), "m": {"k": Decimal("1.5"), "none": None}}, None],
        ),
    }
    keys = ("B", "I", "L", "D", "E", "S", "Y", "T", "A", "Z")
    columns = tuple(Column(name, kind) for name, (kind, _, _) in values.items())
    step = ProcessStep(
        view="out",
        input="in",
        keys=keys,
        processor=Changes(columns=("N",)),
        output=(*columns, *TIMES, Column("__sign", "INTEGER"), Column("__change", "BIGINT")),
    )
    schema = ", ".join(f"{name} {kind}" for name, (_, kind, _) in values.items())
    feed = ProcessorFeed(spark, tmp_path, step, f"{schema}, ROWTIME bigint, __deleted boolean")
    given = [value for _, _, value in values.values()]
    expected = dict(zip(values, given, strict=True))
    (added,) = feed.batch((*given, 1, False))
    assert added == {**expected, "ROWTIME": 1, "__sign": 1, "__change": 0}
    (removed,) = feed.batch((*given, 2, True))
    assert removed == {**expected, "ROWTIME": 2, "__sign": -2, "__change": 1}
    nothing = [None] * len(given)
    (added,) = feed.batch((*nothing, 3, False))
    assert added == {**dict.fromkeys(values), "ROWTIME": 3, "__sign": 1, "__change": 2}
    feed.stop()
