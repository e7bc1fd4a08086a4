"""Queries of SQL over topics, run by the engine: what they write, and that they write it once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pytest

from streams.formats.registry import RegistrySettings
from streams.model.plan import (
    Aggregate,
    Input,
    Lateness,
    LookupStep,
    ProcessStep,
    QueryPlan,
    SessionAggregates,
    SqlStep,
)
from streams.model.pull import PullPlan
from streams.model.sources import Column, Source, TimestampColumn, WindowInfo
from streams.spark.queries.input_rows import InputRows
from streams.spark.queries.spec import cluster_of
from streams.spark.topics.ranges import OffsetRange
from tests.support.broker import BrokerProcess
from tests.support.spark_engine import QUICK, patiently, running_engine
from tests.support.spark_java import needs_java
from tests.support.spark_worker import committed
from tests.support.streams_queries import Bench, fresh, read_from_start, source

pytestmark = [needs_java]

_KEY: Final = {"ID": "STRING"}
_START: Final = 1_700_000_000_000


@pytest.fixture(scope="module")
def engine_bench(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("queries")
    with running_engine(folder / "engine", QUICK) as engine:
        yield Bench(broker, engine, folder / "state")


@pytest.fixture
def bench(engine_bench: Bench) -> Iterator[Bench]:
    yield engine_bench
    engine_bench.stop_all()


def _filter(bench: Bench, **more: object) -> tuple[QueryPlan, Source, Source]:
    """A query that passes on even numbers."""
    given = source(bench.topic("numbers", partitions=2), key=_KEY, value={"N": "BIGINT"})
    sink = source(bench.topic("even", partitions=2), key=_KEY, value={"N": "BIGINT"})
    text = f"SELECT ID, N, ROWTIME FROM `{given.name}` WHERE N % 2 = 0"
    name = fresh("CSAS")
    plan = QueryPlan(
        name=name,
        inputs=(read_from_start(given),),
        steps=(SqlStep(view="OUT", text=text),),
        sink=sink,
        group=f"_streams-test-{name}",
    )
    return msgspec.structs.replace(plan, **more), given, sink


def _count(bench: Bench) -> tuple[QueryPlan, Source, Source]:
    """A query that counts the records of each key."""
    given = source(bench.topic("events", partitions=2), key=_KEY, value={"N": "BIGINT"})
    sink = source(bench.topic("counts", partitions=2), "TABLE", key=_KEY, value={"COUNT": "BIGINT", "TOTAL": "BIGINT"})
    text = (
        "SELECT ID, count(*) AS COUNT, sum(N) AS TOTAL, max(ROWTIME) AS ROWTIME, false AS __deleted"
        f" FROM `{given.name}` GROUP BY ID"
    )
    name = fresh("CTAS")
    plan = QueryPlan(
        name=name,
        inputs=(read_from_start(given),),
        steps=(SqlStep(view="OUT", text=text),),
        mode="update",
        sink=sink,
        has_state=True,
        state_partitions=2,
        group=f"_streams-test-{name}",
    )
    return plan, given, sink


def test_a_filter_writes_what_passes_with_its_key_and_time(bench: Bench) -> None:
    plan, given, sink = _filter(bench)
    bench.run(plan)
    bench.send(given.topic, [(f"k{n % 3}", {"N": n}, _START + n) for n in range(20)])
    found = bench.wait_for(sink.topic, lambda found: len(found) >= 10, query=plan.name)
    assert sorted((record.key, record.value["N"], record.timestamp_ms) for record in found) == sorted(
        (f"k{n % 3}".encode(), n, _START + n) for n in range(0, 20, 2)
    )
    progress = bench.wait_until_read(plan.name, given.topic, 20)
    assert (progress["state"], progress["records_out"], progress["last_error"]) == ("running", 10, None)
    places = [(given.topic, 0), (given.topic, 1)]
    assert sum(committed(bench.broker, plan.group or "", places).values()) == 20


def test_a_stopped_query_goes_on_where_it_was(bench: Bench) -> None:
    plan, given, sink = _filter(bench)
    bench.run(plan)
    bench.send(given.topic, [("a", {"N": 2})])
    bench.wait_for(sink.topic, lambda found: len(found) == 1, query=plan.name)
    bench.stop(plan.name)
    bench.send(given.topic, [("a", {"N": 4})])
    bench.run(plan)
    bench.send(given.topic, [("a", {"N": 6})])
    found = bench.wait_for(sink.topic, lambda found: len(found) >= 3, query=plan.name)
    assert [record.value["N"] for record in found] == [2, 4, 6]


def test_a_new_query_begins_at_the_end_unless_told_otherwise(bench: Bench) -> None:
    plan, given, sink = _filter(bench)
    bench.send(given.topic, [("a", {"N": 2})])
    late = msgspec.structs.replace(plan, inputs=(Input(view=given.name, source=given),))
    bench.run(late)
    patiently(lambda: bench.engine.status(plan.name).state == "running")
    bench.send(given.topic, [("a", {"N": 4})])
    found = bench.wait_for(sink.topic, bool, query=plan.name)
    assert [record.value["N"] for record in found] == [4]


def test_another_generation_begins_anew(bench: Bench) -> None:
    plan, given, sink = _filter(bench)
    bench.send(given.topic, [("a", {"N": 2})])
    bench.run(plan)
    bench.wait_for(sink.topic, lambda found: len(found) == 1, query=plan.name)
    bench.stop(plan.name)
    bench.run(plan, generation=1)
    bench.wait_for(sink.topic, lambda found: len(found) == 2, query=plan.name)


def test_counts_are_updated_and_survive_a_stop(bench: Bench) -> None:
    plan, given, sink = _count(bench)
    bench.run(plan)
    bench.send(given.topic, [("a", {"N": 1}), ("b", {"N": 10})])
    bench.wait_for(sink.topic, lambda found: {record.key for record in found} == {b"a", b"b"}, query=plan.name)
    bench.stop(plan.name)
    bench.run(plan)
    bench.send(given.topic, [("a", {"N": 2}), ("a", {"N": 3})])
    last = {b"a": {"COUNT": 3, "TOTAL": 6}, b"b": {"COUNT": 1, "TOTAL": 10}}
    bench.wait_for(sink.topic, lambda found: {r.key: r.value for r in found} == last, query=plan.name)
    assert bench.wait_until_read(plan.name, given.topic, 4)["state_rows"] >= 0


def test_what_cannot_be_decoded_is_a_dead_letter_with_its_place(bench: Bench) -> None:
    letters = bench.topic("letters")
    plan, given, sink = _filter(bench, dead_letter_topic=letters)
    bench.run(plan)
    bench.send(given.topic, [("a", b"{no json", _START, 1)], headers=[("own", b"header")])
    bench.send(given.topic, [("a", None), ("a", b"null"), ("a", {"N": 4})])
    bench.wait_for(sink.topic, lambda found: len(found) == 1, query=plan.name)
    (letter,) = bench.wait_for(letters, bool, query=plan.name)
    assert (letter.key, letter.value, letter.timestamp_ms) == (b"a", b"{no json", _START)
    reasons = {name.removeprefix("__connect.errors."): value.decode() for name, value in letter.headers.items()}
    assert reasons.pop("exception.message")
    assert reasons == {
        "own": "header",
        "topic": given.topic,
        "partition": "1",
        "offset": "0",
        "connector.name": plan.name,
        "task.id": "1",
        "stage": "VALUE_CONVERTER",
        "class.name": "io.caudal.streams",
        "exception.class.name": "io.caudal.streams.DecodeError",
    }
    progress = bench.wait_until_read(plan.name, given.topic, 4)
    assert (progress["dead_letters"]["undecodable"], progress["skipped"]) == (1, 2)


def test_a_query_may_fail_at_what_cannot_be_decoded(bench: Bench) -> None:
    plan, given, _ = _filter(bench, on_error="fail")
    bench.run(plan)
    bench.send(given.topic, [("a", b"{no json")])
    status = patiently(lambda: bench.engine.status(plan.name), lambda found: found.state == "failed")
    assert "cannot be decoded" in (status.error or "")
    progress = bench.progress(plan.name)
    assert progress["state"] == "failed"
    assert f"The value at offset 0 of {given.topic}-" in progress["last_error"]


def test_windows_are_final_once_their_grace_is_over_and_late_records_are_dead_letters(bench: Bench) -> None:
    given = source(bench.topic("clicks"), key=_KEY, value={"N": "BIGINT"})
    window = WindowInfo(kind="TUMBLING", size_ms=10_000)
    sink = source(bench.topic("windows"), "TABLE", key=_KEY, value={"COUNT": "BIGINT"}, window=window)
    letters = bench.topic("letters")
    lateness = Lateness(size_ms=10_000, advance_ms=10_000, grace_ms=5_000)
    name = fresh("CTAS")
    plan = QueryPlan(
        name=name,
        inputs=(read_from_start(given, watermark_ms=5_000, lateness=lateness),),
        steps=(
            SqlStep(
                view="OUT",
                text="SELECT ID, COUNT, ROWTIME, unix_millis(w.start) AS WINDOWSTART, unix_millis(w.end) AS WINDOWEND,"
                " false AS __deleted FROM (SELECT ID, window(__time, '10 seconds') AS w, count(*) AS COUNT,"
                f" max(ROWTIME) AS ROWTIME FROM `{given.name}` GROUP BY ID, window(__time, '10 seconds'))",
            ),
        ),
        mode="append",
        sink=sink,
        has_state=True,
        state_partitions=2,
        dead_letter_topic=letters,
        group=f"_streams-{name}",
    )
    bench.run(plan)
    bench.send(given.topic, [("a", {"N": 1}, _START + at) for at in (0, 1_000, 9_999, 10_000)])
    bench.wait_until_read(name, given.topic, 4)
    assert bench.written(sink.topic) == []
    bench.send(given.topic, [("a", {"N": 1}, _START + at) for at in (14_999, 500, 15_000, 600)])
    (found,) = bench.wait_for(sink.topic, bool, query=name)
    # The record at 500 was in time: the window was open until a record of 15,000 had come.
    assert (found.value, found.timestamp_ms) == ({"COUNT": 4}, _START + 9_999)
    assert found.key == b"a" + _START.to_bytes(8, "big")
    (letter,) = bench.wait_for(letters, bool, query=name)
    assert letter.timestamp_ms == _START + 600
    assert letter.headers["__connect.errors.exception.class.name"] == b"io.caudal.streams.LateRecord"
    assert bench.progress(name)["dead_letters"]["late"] == 1


def test_stream_time_is_known_at_each_record_and_survives_a_stop(bench: Bench) -> None:
    given = source(bench.topic("times"), key=_KEY, value={"N": "BIGINT"})
    sink = source(bench.topic("stamped"), key=_KEY, value={"N": "BIGINT", "T": "BIGINT"})
    name = fresh("CSAS")
    text = f"SELECT ID, N, __stream_time - {_START} AS T, ROWTIME FROM `{given.name}`"
    plan = QueryPlan(
        name=name, inputs=(read_from_start(given),), steps=(SqlStep(view="OUT", text=text),), sink=sink, group=name
    )
    bench.run(plan)
    bench.send(given.topic, [("a", {"N": at}, _START + at) for at in (5, 3, 8)])
    bench.wait_for(sink.topic, lambda found: len(found) == 3, query=name)
    bench.stop(name)
    bench.run(plan)
    bench.send(given.topic, [("a", {"N": at}, _START + at) for at in (2, 9)])
    found = bench.wait_for(sink.topic, lambda found: len(found) == 5, query=name)
    assert [(record.value["N"], record.value["T"]) for record in found] == [(5, 5), (3, 5), (8, 8), (2, 8), (9, 9)]


def test_rowtime_is_taken_from_a_column(bench: Bench) -> None:
    given = source(
        bench.topic("texts"),
        key=_KEY,
        value={"AT": "STRING"},
        timestamp=TimestampColumn(column="AT", pattern="yyyy-MM-dd HH:mm:ss.SSSX"),
    )
    sink = source(bench.topic("timed"), key=_KEY, value={"AT": "STRING"})
    name = fresh("CSAS")
    steps = (SqlStep(view="OUT", text=f"SELECT ID, AT, ROWTIME FROM `{given.name}`"),)
    bench.run(QueryPlan(name=name, inputs=(read_from_start(given),), steps=steps, sink=sink, group=name))
    bench.send(given.topic, [("a", {"AT": "yesterday"}), ("a", {"AT": "2023-11-14 23:13:20.007+01"})])
    (found,) = bench.wait_for(sink.topic, bool, query=name)
    assert found.timestamp_ms == _START + 7


def test_a_stream_is_joined_with_a_table_as_it_is_now(bench: Bench) -> None:
    orders = source(bench.topic("orders", partitions=2), key=_KEY, value={"USER": "STRING"})
    users = source(bench.topic("users", partitions=2), "TABLE", key=_KEY, value={"NAME": "STRING"})
    sink = source(bench.topic("named"), key=_KEY, value={"USER": "STRING", "NAME": "STRING"})
    name = fresh("CSAS")
    plan = QueryPlan(
        name=name,
        inputs=(read_from_start(orders),),
        steps=(
            LookupStep(view="J", input=orders.name, table=users, key="USER", columns=(("NAME", "U_NAME"),)),
            SqlStep(view="OUT", text="SELECT ID, USER, U_NAME AS NAME, ROWTIME FROM J"),
        ),
        sink=sink,
        group=name,
    )
    bench.send(users.topic, [("u1", {"NAME": "Ada"}), ("u2", {"NAME": "Bob"}), ("u2", None)])
    bench.send(users.topic, [("u3", {"NAME": "Eve"}), ("u3", b"null")])
    bench.run(plan)
    bench.send(orders.topic, [("o1", {"USER": "u1"}), ("o2", {"USER": "u2"}), ("o3", {"USER": "u3"})])
    bench.wait_for(sink.topic, lambda found: len(found) == 3, query=name)
    bench.send(users.topic, [("u1", {"NAME": "Grace"})])
    bench.send(orders.topic, [("o4", {"USER": "u1"})])
    found = bench.wait_for(sink.topic, lambda found: len(found) == 4, query=name)
    assert {record.key: record.value["NAME"] for record in found} == {
        b"o1": "Ada",
        b"o2": None,
        b"o3": None,
        b"o4": "Grace",
    }


def test_streams_are_joined_within_a_time(bench: Bench) -> None:
    left = source(bench.topic("left"), key=_KEY, value={"A": "BIGINT"})
    right = source(bench.topic("right"), key=_KEY, value={"B": "BIGINT"})
    sink = source(bench.topic("joined"), key=_KEY, value={"A": "BIGINT", "B": "BIGINT"})
    name = fresh("CSAS")
    text = (
        f"SELECT l.ID, l.A, r.B, greatest(l.ROWTIME, r.ROWTIME) AS ROWTIME FROM `{left.name}` l"
        f" LEFT JOIN `{right.name}` r ON l.ID = r.ID AND r.__time BETWEEN l.__time - INTERVAL 10 SECONDS"
        " AND l.__time + INTERVAL 10 SECONDS"
    )
    late = Lateness(size_ms=0, advance_ms=0, grace_ms=10_000)
    plan = QueryPlan(
        name=name,
        inputs=tuple(read_from_start(one, watermark_ms=10_000, lateness=late) for one in (left, right)),
        steps=(SqlStep(view="OUT", text=text),),
        sink=sink,
        has_state=True,
        state_partitions=2,
        group=name,
    )
    bench.run(plan)
    bench.send(left.topic, [("a", {"A": 1}, _START), ("b", {"A": 2}, _START)])
    bench.send(right.topic, [("a", {"B": 3}, _START + 5_000), ("b", {"B": 4}, _START + 15_000)])
    found = bench.wait_for(sink.topic, bool, query=name)
    assert [record.value for record in found] == [{"A": 1, "B": 3}]
    bench.send(left.topic, [("c", {"A": 5}, _START + 60_000)])
    bench.send(right.topic, [("c", {"B": 6}, _START + 60_000)])
    found = bench.wait_for(sink.topic, lambda found: len(found) >= 3, query=name)
    assert sorted((record.key, record.value["B"]) for record in found if record.key != b"b") == [(b"a", 3), (b"c", 6)]
    assert [record.value["B"] for record in found if record.key == b"b"] == [None]


def test_sessions_grow_and_late_records_are_counted(bench: Bench) -> None:
    given = source(bench.topic("visits"), key=_KEY, value={"N": "BIGINT"})
    window = WindowInfo(kind="SESSION")
    sink = source(bench.topic("sessions"), "TABLE", key=_KEY, value={"COUNT": "BIGINT"}, window=window)
    name = fresh("CTAS")
    output = (
        Column("ID", "STRING"),
        Column("COUNT", "BIGINT"),
        *(Column(one, "BIGINT") for one in ("ROWTIME", "WINDOWSTART", "WINDOWEND")),
    )
    plan = QueryPlan(
        name=name,
        inputs=(read_from_start(given, watermark_ms=0),),
        steps=(
            ProcessStep(
                view="SESSIONS",
                input=given.name,
                keys=("ID",),
                processor=SessionAggregates(
                    gap_ms=10_000, grace_ms=0, aggregates=(Aggregate(name="COUNT", function="COUNT"),)
                ),
                output=output,
                reads_watermark=True,
            ),
        ),
        mode="update",
        sink=sink,
        has_state=True,
        group=name,
    )
    bench.run(plan)
    bench.send(given.topic, [("a", {"N": 1}, _START), ("a", {"N": 1}, _START + 5_000)])
    found = bench.wait_for(sink.topic, bool, query=name)
    assert found[-1].value == {"COUNT": 2}
    assert found[-1].key == b"a" + (_START + 5_000).to_bytes(8, "big") + _START.to_bytes(8, "big")
    bench.send(given.topic, [("a", {"N": 1}, _START + 60_000)])
    bench.wait_for(sink.topic, lambda now: len(now) > len(found), query=name)
    bench.send(given.topic, [("a", {"N": 1}, _START + 1_000)])
    bench.wait_until_read(name, given.topic, 4)
    assert bench.progress(name)["dead_letters"]["late"] == 1


def test_a_table_is_joined_with_a_table(bench: Bench) -> None:
    left = source(bench.topic("people"), "TABLE", key=_KEY, value={"NAME": "STRING"})
    right = source(bench.topic("ages"), "TABLE", key=_KEY, value={"AGE": "BIGINT"})
    sink = source(bench.topic("both"), "TABLE", key=_KEY, value={"NAME": "STRING", "AGE": "BIGINT"})
    name = fresh("CTAS")
    sides = " UNION ALL ".join(
        f"SELECT ID, {side} AS s, ROWOFFSET, named_struct('t', ROWTIME, 'd', __deleted, 'NAME', {values[0]}, 'AGE',"
        f" {values[1]}) AS r FROM `{one.name}`"
        for side, (one, values) in enumerate([(left, ("NAME", "null")), (right, ("null", "AGE"))])
    )
    latest = ", ".join(f"max_by(r, ROWOFFSET) FILTER (WHERE s = {side}) AS r{side}" for side in (0, 1))
    joined = (
        "SELECT ID, r0.NAME AS NAME, r1.AGE AS AGE, greatest(r0.t, r1.t) AS ROWTIME,"
        f" coalesce(r0.d, true) OR coalesce(r1.d, true) AS __deleted FROM (SELECT ID, {latest} FROM B GROUP BY ID)"
    )
    plan = QueryPlan(
        name=name,
        inputs=(read_from_start(left), read_from_start(right)),
        steps=(SqlStep(view="B", text=sides), SqlStep(view="OUT", text=joined)),
        mode="update",
        sink=sink,
        has_state=True,
        group=name,
    )
    bench.run(plan)
    bench.send(left.topic, [("a", {"NAME": "Ada"}), ("b", {"NAME": "Bob"})])
    bench.send(right.topic, [("a", {"AGE": 36})])
    bench.wait_for(sink.topic, lambda found: {"NAME": "Ada", "AGE": 36} in [one.value for one in found], query=name)
    bench.send(left.topic, [("a", None)])
    found = bench.wait_for(sink.topic, lambda found: found[-1].key == b"a" and found[-1].value is None, query=name)
    assert {record.value is None for record in found if record.key == b"b"} <= {True}


def test_rows_go_to_a_client_until_its_limit(bench: Bench) -> None:
    given = source(bench.topic("pushed"), "TABLE", key=_KEY, value={"N": "BIGINT"})
    name = fresh("PUSH")
    plan = QueryPlan(
        name=name,
        inputs=(read_from_start(given),),
        steps=(SqlStep(view="OUT", text=f"SELECT ID, N, ROWTIME, __deleted FROM `{given.name}`"),),
        columns=(Column("ID", "STRING"), Column("N", "BIGINT")),
        limit=3,
    )
    bench.run(plan)
    bench.send(given.topic, [("a", {"N": 1}), ("b", {"N": 2})])
    assert bench.take(name, 2)["rows"] == [["a", 1], ["b", 2]]
    bench.send(given.topic, [("a", b"null"), ("c", {"N": 3})])
    found = bench.take(name, 2)
    assert (found["rows"], found["tombstones"], found["done"], found["error"]) == ([["a", None]], [True], True, None)
    bench.stop(name)
    assert not (bench.folder / name).joinpath("0").exists()


def test_a_client_that_stops_ends_its_query_though_the_queue_is_full(bench: Bench) -> None:
    given = source(bench.topic("many"), key=_KEY, value={"N": "BIGINT"})
    name = fresh("PUSH")
    plan = QueryPlan(
        name=name,
        inputs=(read_from_start(given),),
        steps=(SqlStep(view="OUT", text=f"SELECT N, ROWTIME FROM `{given.name}`"),),
        columns=(Column("N", "BIGINT"),),
    )
    bench.send(given.topic, ((None, {"N": n}) for n in range(30_000)))
    bench.run(plan)
    assert bench.take(name, 1)["rows"][0] == [0]
    bench.stop(name)


def test_a_select_reads_snapshots_and_streams(bench: Bench, tmp_path: Path) -> None:
    table = pa.table({"ID": ["a", "b"], "N": pa.array([1, 2], pa.int64()), "ROWTIME": pa.array([5, 6], pa.int64())})
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    given = source(bench.topic("read"), key=_KEY, value={"M": "BIGINT"})
    bench.send(given.topic, [("a", {"M": 10}), ("a", {"M": 20}), ("c", {"M": 30})])
    plan = PullPlan(
        columns=(Column("ID", "STRING"), Column("N", "BIGINT"), Column("TOTAL", "BIGINT")),
        sql="SELECT t.ID, t.N, s.TOTAL FROM T t LEFT JOIN (SELECT ID, sum(M) AS TOTAL FROM S GROUP BY ID) s"
        " ON t.ID = s.ID ORDER BY t.ID",
        tables=("T",),
        inputs=(read_from_start(given, "S"),),
    )
    columns = [["ID", "STRING"], ["N", "BIGINT"], ["ROWTIME", "BIGINT"]]
    found = bench.engine.call(
        "streams-select",
        plan=msgspec.to_builtins(plan),
        tables={"T": {"file": str(tmp_path / "t.arrow"), "columns": columns}},
        cluster=bench.cluster,
    )
    assert found == {"rows": [["a", 1, 30], ["b", 2, None]]}


def test_a_select_may_read_nothing(bench: Bench) -> None:
    columns = (Column("A", "STRING"), Column("B", "DECIMAL(4, 2)"), Column("C", "TIME"))
    text = "SELECT upper('x') AS A, cast(1.5 as decimal(4, 2)) AS B, time'01:02:03' AS C"
    plan = msgspec.to_builtins(PullPlan(columns=columns, sql=text))
    assert bench.engine.call("streams-select", plan=plan) == {"rows": [["X", "1.50", "01:02:03"]]}


def test_a_plan_is_explained_without_running_it(bench: Bench) -> None:
    plan, _, _ = _count(bench)
    text = bench.engine.call("streams-explain", plan=msgspec.to_builtins(plan), cluster=bench.cluster)["text"]
    assert "HashAggregate" in text


def test_what_is_kept_of_a_dropped_query_is_deleted(bench: Bench) -> None:
    plan, given, sink = _count(bench)
    bench.run(plan)
    bench.send(given.topic, [("a", {"N": 1})])
    bench.wait_for(sink.topic, bool, query=plan.name)
    bench.stop(plan.name)
    kept = bench.folder / plan.name
    assert kept.exists()
    assert bench.engine.call("streams-forget", folder=str(bench.folder), name=plan.name) == {}
    assert not kept.exists()


def test_a_query_whose_records_were_deleted_fails_and_says_so(bench: Bench) -> None:
    plan, given, sink = _filter(bench)
    bench.run(plan)
    bench.send(given.topic, [("a", {"N": 2}, None, 0)])
    bench.wait_for(sink.topic, bool, query=plan.name)
    bench.stop(plan.name)
    bench.send(given.topic, [("a", {"N": 4}, None, 0), ("a", {"N": 6}, None, 0)])
    delete_records(bench, given.topic, 3)
    bench.send(given.topic, [("a", {"N": 8}, None, 0)])
    bench.run(plan)
    patiently(lambda: bench.engine.status(plan.name), lambda found: found.state == "failed")
    assert "CREATE OR REPLACE" in bench.progress(plan.name)["last_error"]
    assert [value["N"] for value in bench.values(sink.topic)] == [2]


def test_a_client_gets_what_is_left_after_records_were_deleted(bench: Bench) -> None:
    given = source(bench.topic("partly_deleted"), key=_KEY, value={"N": "BIGINT"})
    plan = QueryPlan(name=fresh("PUSH"), inputs=(read_from_start(given),), steps=(), columns=(Column("N", "BIGINT"),))
    rows = InputRows(
        input=plan.inputs[0],
        cluster=cluster_of(bench.cluster),
        registry=RegistrySettings(),
        schema=pa.schema([("N", pa.int64())]),
        goes_on_after_loss=bench.spec(plan).is_transient,
    )
    bench.send(given.topic, [("a", {"N": n}) for n in range(4)])
    delete_records(bench, given.topic, 2)
    found = rows.read(OffsetRange(given.topic, 0, 0, 4), None)
    assert [n for batch in found for n in batch.column("N").to_pylist()] == [2, 3]


def delete_records(bench: Bench, topic: str, until: int) -> None:
    """Delete the first records of a partition."""
    from confluent_kafka import TopicPartition

    from tests.support.admin import admin_client

    for future in admin_client(bench.broker).delete_records([TopicPartition(topic, 0, until)]).values():
        future.result(30)


def test_a_state_that_is_gone_is_an_error(bench: Bench) -> None:
    import shutil

    plan, given, sink = _count(bench)
    bench.run(plan)
    bench.send(given.topic, [("a", {"N": 1})])
    bench.wait_for(sink.topic, bool, query=plan.name)
    bench.stop(plan.name)
    shutil.rmtree(bench.folder / plan.name)
    bench.run(plan)
    status = patiently(lambda: bench.engine.status(plan.name), lambda found: found.state == "failed")
    assert "is gone" in (status.error or "")


def test_a_filter_without_its_checkpoint_goes_on_where_it_has_committed(bench: Bench) -> None:
    import shutil

    plan, given, sink = _filter(bench)
    bench.run(plan)
    bench.send(given.topic, [("a", {"N": 2})])
    bench.wait_for(sink.topic, bool, query=plan.name)
    bench.stop(plan.name)
    shutil.rmtree(bench.folder / plan.name)
    bench.run(plan)
    bench.send(given.topic, [("a", {"N": 4})])
    found = bench.wait_for(sink.topic, lambda found: len(found) >= 2, query=plan.name)
    assert [record.value["N"] for record in found] == [2, 4]
