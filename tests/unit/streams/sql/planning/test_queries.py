"""Plans as values: inputs, internal topics, the columns and formats of sinks."""

import pytest

from streams.model.plan import (
    Changes,
    ForeignKeyJoin,
    Lateness,
    LookupStep,
    NewestRows,
    ProcessStep,
    SessionAggregates,
    SqlStep,
    UndoAggregates,
)
from streams.model.sources import Column, WindowInfo
from tests.support.sql_catalog import KnownSources

SOURCES = (
    "CREATE STREAM S (K STRING KEY, A INT, B STRING, C DOUBLE) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON')",
    "CREATE STREAM S2 (K STRING KEY, D INT) WITH (KAFKA_TOPIC='s2', VALUE_FORMAT='AVRO')",
    "CREATE STREAM S3 (K STRING KEY, E INT) WITH (KAFKA_TOPIC='s3', VALUE_FORMAT='JSON')",
    "CREATE TABLE T (ID STRING PRIMARY KEY, NAME STRING, N INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON')",
    "CREATE TABLE U (ID STRING PRIMARY KEY, X INT) WITH (KAFKA_TOPIC='u', VALUE_FORMAT='JSON')",
    """CREATE STREAM W (K STRING KEY, V INT) WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON',
    WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 HOUR')""",
    """CREATE STREAM W2 (K STRING KEY, V INT) WITH (KAFKA_TOPIC='w2', VALUE_FORMAT='JSON',
    WINDOW_TYPE='HOPPING', WINDOW_SIZE='1 HOUR')""",
    """CREATE STREAM KEYLESS (V INT, `w` INT) WITH (KAFKA_TOPIC='kl', KEY_FORMAT='NONE', VALUE_FORMAT='DELIMITED',
    VALUE_DELIMITER='|')""",
)
HOUR_MS = 3_600_000


@pytest.fixture
def catalog() -> KnownSources:
    return KnownSources(*SOURCES)


def test_sink_inherits_from_first_source(catalog: KnownSources) -> None:
    planned = catalog.create("CREATE STREAM X AS SELECT * FROM KEYLESS", "CSAS_X_1")
    sink = planned.sink
    assert (sink.topic, sink.key, sink.value) == ("X", (), (Column("V", "INTEGER"), Column("w", "INTEGER")))
    assert (sink.key_format.name, sink.value_format.name, sink.value_format.delimiter) == ("NONE", "DELIMITED", "|")
    assert (sink.query_id, sink.partitions, planned.topic.partitions) == ("CSAS_X_1", 2, 2)
    assert planned.topic.configs == {"cleanup.policy": "delete"}
    assert "KAFKA_TOPIC = 'X'" in sink.statement
    assert sink.statement.endswith("EMIT CHANGES;")
    (plan,) = planned.query.plans
    assert (plan.name, plan.group, plan.dead_letter_topic) == ("CSAS_X_1", "_streams-default_CSAS_X_1", "X-dlq")


def test_with_clause_decides_about_sink(catalog: KnownSources) -> None:
    catalog.properties["ksql.output.topic.name.prefix"] = "p-"
    planned = catalog.create(
        """CREATE STREAM X WITH (PARTITIONS=5, REPLICAS=3, VALUE_FORMAT='AVRO', RETENTION_MS=1000, TIMESTAMP='T',
        ON_ERROR='skip') AS SELECT K, ROWTIME AS T FROM S"""
    )
    assert (planned.sink.topic, planned.topic.replicas, planned.topic.must_match) == ("p-X", 3, True)
    assert planned.topic.configs == {"cleanup.policy": "delete", "retention.ms": "1000"}
    assert planned.sink.timestamp is not None
    assert planned.query.topics == ()
    (plan,) = planned.query.plans
    assert (plan.on_error, plan.dead_letter_topic) == ("skip", None)
    assert isinstance(plan.steps[-1], SqlStep)
    assert "coalesce(`ROWTIME`, `ROWTIME`) AS `ROWTIME`" in plan.steps[-1].text


def test_names_of_columns_without_alias(catalog: KnownSources) -> None:
    catalog.add(
        "CREATE STREAM R (K STRING KEY, R STRUCT<A INT, B INT>, KSQL_COL_0 INT) WITH (KAFKA_TOPIC='r', FORMAT='JSON')"
    )
    sink = catalog.create("CREATE STREAM X AS SELECT K, R->A, R->*, KSQL_COL_0 + 1, 5 FROM R").sink
    assert [column.name for column in sink.value] == ["A", "A_1", "B", "KSQL_COL_1", "KSQL_COL_2"]


def test_partition_by(catalog: KnownSources) -> None:
    moved = catalog.create("CREATE STREAM X AS SELECT * FROM S PARTITION BY A").sink
    assert ([one.name for one in moved.key], [one.name for one in moved.value]) == (["A"], ["K", "B", "C"])
    computed = catalog.create("CREATE STREAM X AS SELECT *, A + 1 AS Z FROM S PARTITION BY A + 1").sink
    assert [one.name for one in computed.key] == ["Z"]
    added = catalog.create("CREATE STREAM X AS SELECT * FROM S PARTITION BY A + 1").sink
    assert [one.name for one in added.key] == ["KSQL_COL_0"]
    gone = catalog.create("CREATE STREAM X AS SELECT * FROM S PARTITION BY NULL").sink
    assert (gone.key, gone.key_format.name) == ((), "NONE")
    keyed = catalog.create("CREATE STREAM X AS SELECT * FROM KEYLESS PARTITION BY V").sink
    assert keyed.key_format.name == "KAFKA"


def test_windows(catalog: KnownSources) -> None:
    planned = catalog.create(
        """CREATE TABLE X AS SELECT B, COUNT(*) AS N, WINDOWEND AS E FROM S
        WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 10 MINUTES, RETENTION 2 DAYS, GRACE PERIOD 5 MINUTES) GROUP BY B"""
    )
    (plan,) = planned.query.plans
    (source,) = plan.inputs
    assert source.lateness == Lateness(size_ms=HOUR_MS, advance_ms=600_000, grace_ms=300_000)
    assert source.watermark_ms == 300_000
    assert planned.sink.window == WindowInfo(kind="HOPPING", size_ms=HOUR_MS)
    assert planned.topic.configs == {"cleanup.policy": "compact,delete", "retention.ms": str(48 * HOUR_MS)}
    assert (plan.mode, plan.has_state, planned.sink.is_materialized) == ("update", True, True)


def test_grace_of_a_day_is_default(catalog: KnownSources) -> None:
    text = "CREATE TABLE X AS SELECT B, COUNT(*) AS N FROM S WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY B EMIT FINAL"
    (plan,) = catalog.create(text).query.plans
    assert plan.inputs[0].watermark_ms == 23 * HOUR_MS
    assert plan.mode == "append"


def test_sessions(catalog: KnownSources) -> None:
    text = """CREATE TABLE X AS SELECT B, TOPK(A, C, 2) AS T, COUNT(*) AS N FROM S
      WINDOW SESSION (1 HOUR) GROUP BY B EMIT FINAL"""
    planned = catalog.create(text)
    (plan,) = planned.query.plans
    (step,) = [step for step in plan.steps if isinstance(step, ProcessStep)]
    assert isinstance(step.processor, SessionAggregates)
    assert step.processor.is_final
    top, count = step.processor.aggregates
    assert (top.function, top.arguments, bytes(top.literals[0])) == ("TOPK", ("value_0", "value_1"), b"2")
    assert (count.function, count.arguments) == ("COUNT", ())
    assert planned.sink.window == WindowInfo(kind="SESSION")


def test_look_up_keeps_one_plan(catalog: KnownSources) -> None:
    text = """CREATE TABLE X AS SELECT NAME, COUNT(*) AS N FROM S LEFT JOIN T ON S.B = T.ID
      WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY NAME"""
    planned = catalog.create(text)
    (plan,) = planned.query.plans
    (step,) = [step for step in plan.steps if isinstance(step, LookupStep)]
    assert (step.table.name, step.key, step.kind) == ("T", "key", "LEFT")
    assert dict(step.columns)["NAME"] == "1_NAME"
    assert [one.source.name for one in plan.inputs] == ["S"]
    assert plan.inputs[0].watermark_ms == 23 * HOUR_MS
    assert planned.query.reads == ("S", "T")


def test_second_step_with_state_reads_internal_topic(catalog: KnownSources) -> None:
    text = """CREATE STREAM X AS SELECT S.K AS K, D, E FROM S JOIN S2 WITHIN 1 HOUR GRACE PERIOD 0 SECONDS ON S.K = S2.K
      LEFT JOIN S3 WITHIN (1 HOUR, 2 HOURS) GRACE PERIOD 1 HOUR ON S2.K = S3.K"""
    first, second = catalog.create(text, "CSAS_X_3").query.plans
    assert first.sink is not None
    assert (first.sink.topic, first.is_sink_internal) == ("_streams-default_CSAS_X_3-1-repartition", True)
    assert (first.group, second.group) == ("_streams-default_CSAS_X_3", "_streams-default_CSAS_X_3-2")
    assert (second.name, second.inputs[0].is_internal, second.inputs[0].starting) == ("CSAS_X_3-2", True, "earliest")
    assert first.inputs[0].lateness == Lateness(size_ms=0, advance_ms=0, grace_ms=HOUR_MS)
    assert [one.watermark_ms for one in second.inputs] == [3 * HOUR_MS, 3 * HOUR_MS]


def test_key_of_join(catalog: KnownSources) -> None:
    within = "WITHIN 1 HOUR GRACE PERIOD 0 SECONDS"
    right = catalog.create(f"CREATE STREAM X AS SELECT S2.K AS Z, D FROM S JOIN S2 {within} ON S.K = S2.K").sink
    assert [one.name for one in right.key] == ["Z"]
    outer = catalog.create(f"CREATE STREAM X AS SELECT * FROM S FULL JOIN S2 {within} ON S.K = S2.K").sink
    assert [one.name for one in outer.key] == ["ROWKEY"]
    assert "S_K" in [one.name for one in outer.value]
    both = f"CREATE STREAM X AS SELECT ROWKEY AS R, D FROM S JOIN S2 {within} ON UCASE(S.K) = UCASE(S2.K)"
    assert [one.name for one in catalog.create(both).sink.key] == ["R"]


def test_outer_join_without_grace_warns(catalog: KnownSources) -> None:
    text = "CREATE STREAM X AS SELECT S.K AS K, D FROM S {} JOIN S2 WITHIN 1 HOUR ON S.K = S2.K"
    outer, inner = catalog.create(text.format("LEFT")), catalog.create(text.format("INNER"))
    assert "GRACE PERIOD" in outer.warnings[0]
    assert inner.warnings == ()
    assert outer.query.plans[0].inputs[0].watermark_ms == HOUR_MS
    assert inner.query.plans[0].inputs[0].watermark_ms == 23 * HOUR_MS


def test_join_of_windowed_streams_is_windowed(catalog: KnownSources) -> None:
    text = """CREATE STREAM X AS SELECT W.K AS K, W2.V AS V FROM W JOIN W2 WITHIN 1 HOUR GRACE PERIOD 0 SECONDS
      ON W.K = W2.K"""
    planned = catalog.create(text)
    assert planned.sink.window == WindowInfo(kind="TUMBLING", size_ms=HOUR_MS)
    (joined,) = [step for step in planned.query.plans[0].steps if step.view == "joined"]
    assert isinstance(joined, SqlStep)
    assert "l.`WINDOWSTART` = r.`WINDOWSTART`" in joined.text


def test_aggregate_of_table_has_two_plans(catalog: KnownSources) -> None:
    planned = catalog.create("CREATE TABLE X AS SELECT NAME, SUM(N) AS N FROM T GROUP BY NAME", "CTAS_X_1")
    first, second = planned.query.plans
    processors = [step.processor for plan in (first, second) for step in plan.steps if isinstance(step, ProcessStep)]
    assert [type(one) for one in processors] == [Changes, UndoAggregates]
    assert first.sink is not None
    # The places of records, by which the processor sorts the rows of a key.
    assert isinstance(first.steps[0], SqlStep)
    assert "`ROWPARTITION` AS `ROWPARTITION`, `ROWOFFSET` AS `ROWOFFSET`" in first.steps[0].text
    assert first.sink.key == (Column("key_0", "STRING"),)
    assert first.sink.value == (Column("value_0", "INTEGER"), Column("__sign", "INTEGER"))
    assert [topic.name for topic in planned.query.topics] == ["_streams-default_CTAS_X_1-1-repartition", "X-dlq"]
    assert planned.query.topics[0].configs == {
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "message.timestamp.type": "CreateTime",
        "segment.bytes": "52428800",
    }
    assert first.inputs[0].starting == "earliest"


def test_foreign_key_join(catalog: KnownSources) -> None:
    planned = catalog.create("CREATE TABLE X AS SELECT T.ID, X FROM T LEFT JOIN U ON T.NAME = U.ID")
    first, second = planned.query.plans
    join, newest = [step for step in second.steps if isinstance(step, ProcessStep)]
    assert isinstance(join.processor, ForeignKeyJoin)
    assert (join.processor.kind, join.processor.left_key, join.keys) == ("LEFT", ("row_0",), ("key",))
    assert isinstance(newest.processor, NewestRows)
    assert (newest.keys, newest.processor.order, second.mode) == (("row_0",), "__change", "append")
    assert [one.source.name for one in second.inputs] == ["Q_1-1", "U"]
    assert planned.sink.key == (Column("T_ID", "STRING"),)
    assert first.has_state


def test_push_query(catalog: KnownSources) -> None:
    (plan,) = catalog.push("SELECT * FROM T WHERE N > 1 EMIT CHANGES LIMIT 2")
    assert (plan.sink, plan.limit, plan.dead_letter_topic) == (None, 2, None)
    catalog.properties["auto.offset.reset"] = "latest"
    (plan,) = catalog.push("SELECT * FROM T EMIT CHANGES")
    assert plan.inputs[0].starting == "latest"
    (plan,) = catalog.push(
        "SELECT WINDOWSTART AS WS, B, COUNT(*) FROM S WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY B EMIT CHANGES"
    )
    assert [one.name for one in plan.columns] == ["WS", "B", "KSQL_COL_0"]


def test_insert_fits_types_of_sink(catalog: KnownSources) -> None:
    catalog.add("CREATE STREAM Y (K STRING KEY, D BIGINT) WITH (KAFKA_TOPIC='y', VALUE_FORMAT='JSON')")
    planned = catalog.create("INSERT INTO Y SELECT K, D FROM S2", "INSERTQUERY_4")
    assert (planned.sink.name, planned.query.writes, planned.query.reads) == ("Y", "Y", ("S2",))
    last = planned.query.plans[0].steps[-1]
    assert isinstance(last, SqlStep)
    assert "cast(`D` as bigint) AS `D`" in last.text
