"""Persistent queries that a server runs: they keep running, whatever dies."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streams.server.errors import BadStatement
from streams.server.rows import finish, open_query
from tests.support.broker import BrokerProcess
from tests.support.spark_engine import end_engine, engine_process, patiently
from tests.support.spark_java import needs_java
from tests.support.streams_desk import Desk, running_service
from tests.support.streams_process import StreamsProcess

pytestmark = [needs_java]


@pytest.fixture(scope="module")
def desk(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with running_service(broker, tmp_path_factory.mktemp("queries")) as desk:
        yield desk
        settings = desk.service.settings.spark
    end_engine(settings)


def _orders(desk: Desk, name: str) -> str:
    desk.run(
        f"CREATE STREAM {name} (ID STRING KEY, N INT) WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
    )
    return name


def test_a_stream_and_a_table_are_filled_and_their_queries_are_described(desk: Desk) -> None:
    orders = _orders(desk, "orders1")
    desk.run(
        """
        CREATE STREAM BIG1 AS SELECT ID, N FROM orders1 WHERE N > 10 EMIT CHANGES;
        CREATE TABLE COUNTS1 AS SELECT ID, COUNT(*) AS C FROM orders1 GROUP BY ID EMIT CHANGES;
        """
    )
    desk.run("INSERT INTO orders1 (ID, N) VALUES ('a', 5); INSERT INTO orders1 (ID, N) VALUES ('a', 50);")
    assert patiently(lambda: desk.values("BIG1")) == [{"N": 50}]
    patiently(lambda: desk.values("COUNTS1")[-1:], lambda found: found == [{"C": 2}])
    assert desk.service.catalog.source(orders.upper()) is not None
    described = patiently(
        lambda: desk.one("DESCRIBE BIG1 EXTENDED;")["sourceDescription"],
        lambda found: any(one["name"] == "total-messages" and one["value"] == 1 for one in found["clusterStatistics"]),
    )
    (summary,) = described["queryOffsetSummaries"]
    assert summary["topicSummaries"][0]["offsets"][0]["consumerOffset"] == 2
    assert [one["state"] for one in described["writeQueries"]] == ["RUNNING"]


def test_the_engine_computes_values_that_are_inserted(desk: Desk) -> None:
    desk.run(
        """
        CREATE STREAM TYPED1 (S STRING, P DECIMAL(4, 2), A ARRAY<INT>, M MAP<STRING, INT>, T TIME, C STRING)
          WITH (KAFKA_TOPIC='typed1', PARTITIONS=1, VALUE_FORMAT='JSON');
        INSERT INTO TYPED1 VALUES (
          FORMAT_TIMESTAMP(FROM_UNIXTIME(1700000000000 + (60 * 1000)), 'yyyy-MM-dd''T''HH:mm:ssX'),
          ROUND(1.255, 2), ARRAY_SORT(ARRAY[3, 1]), MAP_UNION(MAP('a' := 1), MAP('b' := 2)),
          PARSE_TIME('010203', 'HHmmss'), CASE WHEN 1 > 2 THEN 'more' ELSE INITCAP(SUBSTRING('xless', 2)) END);
        """
    )
    (found,) = desk.values("typed1")
    assert found["S"] == "2023-11-14T22:14:20Z"
    assert (found["P"], found["A"], found["M"], found["C"]) == (1.26, [1, 3], {"a": 1, "b": 2}, "Less")
    assert found["T"] == 3_723_000


def test_parts_of_a_query_have_groups_of_their_own(desk: Desk) -> None:
    desk.run(
        """
        CREATE TABLE L1 (ID STRING PRIMARY KEY, F STRING, N INT)
          WITH (KAFKA_TOPIC='l1', PARTITIONS=1, VALUE_FORMAT='JSON');
        CREATE TABLE R1 (F STRING PRIMARY KEY, NAME STRING) WITH (KAFKA_TOPIC='r1', PARTITIONS=1, VALUE_FORMAT='JSON');
        CREATE TABLE J1 AS SELECT L1.ID AS ID, N, NAME FROM L1 JOIN R1 ON L1.F = R1.F EMIT CHANGES;
        INSERT INTO R1 VALUES ('x', 'ex'); INSERT INTO R1 VALUES ('y', 'why'); INSERT INTO L1 VALUES ('a', 'x', 1);
        """
    )
    patiently(lambda: desk.values("J1"), lambda found: found == [{"N": 1, "NAME": "ex"}])
    desk.send("l1", ("a", None), ("a", {"F": "y", "N": 2}))
    patiently(lambda: desk.values("J1")[-1:], lambda found: found == [{"N": 2, "NAME": "why"}])
    described = patiently(
        lambda: desk.one("DESCRIBE J1 EXTENDED;")["sourceDescription"],
        lambda found: any(one["name"] == "lag" and one["value"] == 0 for one in found["clusterStatistics"]),
    )
    first, second = described["queryOffsetSummaries"]
    assert second["groupId"] == f"{first['groupId']}-2"
    assert [one["kafkaTopic"] for one in first["topicSummaries"]] == ["l1"]
    (internal,) = [one["kafkaTopic"] for one in second["topicSummaries"] if one["kafkaTopic"] != "r1"]
    assert desk.service.topics.config(internal, "retention.ms") == "-1"


def test_a_push_query_of_several_parts(desk: Desk) -> None:
    desk.run(
        """
        CREATE TABLE L2 (ID STRING PRIMARY KEY, F STRING) WITH (KAFKA_TOPIC='l2', PARTITIONS=1, VALUE_FORMAT='JSON');
        INSERT INTO L2 (ID, F, ROWTIME) VALUES ('a', 'x', 1000); INSERT INTO L2 (ID, F) VALUES ('b', 'x');
        """
    )
    text = "SELECT F, COUNT(*) AS C FROM L2 GROUP BY F EMIT CHANGES;"
    rows = open_query(desk.service, text, properties={}, variables={})
    try:
        found: list[Any] = []

        def take() -> list[Any]:
            batch = rows.take()
            assert batch is not None
            found.extend(batch.rows)
            return found

        patiently(take, lambda given: given[-1:] == [["x", 2]])
    finally:
        finish(desk.service, rows)


def test_a_paused_query_goes_on_where_it_was(desk: Desk) -> None:
    _orders(desk, "orders2")
    query_id = desk.one("CREATE STREAM ALL2 AS SELECT * FROM orders2 EMIT CHANGES;")["commandStatus"]["queryId"]
    desk.send("orders2", ("a", {"N": 1}))
    patiently(lambda: desk.values("ALL2"))
    desk.run(f"PAUSE {query_id};")
    patiently(lambda: desk.service.run_of(query_id) is None)
    desk.send("orders2", ("a", {"N": 2}))
    assert [one["N"] for one in desk.values("ALL2")] == [1]
    desk.run(f"RESUME {query_id};")
    patiently(lambda: [one["N"] for one in desk.values("ALL2")], lambda found: found == [1, 2])


def test_a_dropped_stream_takes_its_query_and_topic_with_it(desk: Desk) -> None:
    _orders(desk, "orders3")
    query_id = desk.one("CREATE STREAM ALL3 AS SELECT * FROM orders3 EMIT CHANGES;")["commandStatus"]["queryId"]
    desk.send("orders3", ("a", {"N": 1}))
    patiently(lambda: desk.values("ALL3"))
    assert list(Path(desk.service.settings.checkpoints).glob(f"{query_id}*"))
    desk.run("DROP STREAM ALL3 DELETE TOPIC;")
    assert "ALL3" not in desk.topics()
    assert not list(Path(desk.service.settings.checkpoints).glob(f"{query_id}*"))
    desk.run("CREATE STREAM ALL3 AS SELECT * FROM orders3 EMIT CHANGES;")
    assert len(patiently(lambda: desk.values("ALL3"))) == 1


def test_a_query_is_replaced_once_its_successor_has_caught_up(desk: Desk) -> None:
    _orders(desk, "orders4")
    old = desk.one("CREATE STREAM ALL4 AS SELECT ID, N FROM orders4 EMIT CHANGES;")["commandStatus"]["queryId"]
    desk.send("orders4", ("a", {"N": 1}), ("b", {"N": 2}))
    patiently(lambda: desk.values("ALL4"), lambda found: len(found) == 2)
    answer = desk.one(
        "CREATE OR REPLACE STREAM ALL4 WITH (`replace.mode`='side-by-side') AS SELECT N AS M, ID FROM orders4 "
        "PARTITION BY N EMIT CHANGES;"
    )
    new = answer["commandStatus"]["queryId"]
    patiently(lambda: desk.status(old), lambda status: status == "GONE")
    source = desk.service.catalog.source("ALL4")
    assert source is not None
    assert (source.query_id, source.topic.startswith("ALL4-")) == (new, True)
    assert [one.name for one in source.key] == ["M"]
    assert len(desk.values(source.topic)) == 2


@pytest.mark.slow
def test_queries_go_on_after_the_engine_was_killed(desk: Desk) -> None:
    _orders(desk, "orders5")
    query_id = desk.one("CREATE TABLE COUNTS5 AS SELECT ID, COUNT(*) AS C FROM orders5 GROUP BY ID EMIT CHANGES;")[
        "commandStatus"
    ]["queryId"]
    desk.send("orders5", ("a", {"N": 1}))
    patiently(lambda: desk.values("COUNTS5"))
    engine = engine_process(desk.service.settings.spark)
    assert engine is not None
    os.kill(engine.pid, signal.SIGKILL)
    desk.send("orders5", ("a", {"N": 2}))
    patiently(lambda: desk.values("COUNTS5"), lambda found: found == [{"C": 1}, {"C": 2}])
    assert desk.status(query_id) == "RUNNING"


@pytest.mark.slow
def test_another_server_goes_on_when_the_one_with_the_queries_was_killed(broker: BrokerProcess, tmp_path: Path) -> None:
    service_id, checkpoints = "takeover_", {"ksql.checkpoints.dir": str(tmp_path / "checkpoints")}
    first = StreamsProcess(
        tmp_path / "first", bootstrap=broker.bootstrap, settings={"ksql.service.id": service_id, **checkpoints}
    )
    # The engine stays, but what the first server ran in it ends with that.
    more = {**checkpoints, "spark.caudal.data.dir": first.settings["spark.caudal.data.dir"]}
    with first, running_service(broker, tmp_path / "second", more, service_id=service_id) as second:
        _orders(second, "orders6")
        created = second.one("CREATE TABLE COUNTS6 AS SELECT ID, COUNT(*) AS C FROM orders6 GROUP BY ID EMIT CHANGES;")
        second.send("orders6", ("a", {"N": 1}))
        patiently(lambda: second.values("COUNTS6"))
        assert not second.service.runs_queries
        first.kill()
        second.send("orders6", ("a", {"N": 2}))
        patiently(lambda: second.values("COUNTS6"), lambda found: found == [{"C": 1}, {"C": 2}])
        assert second.service.run_of(created["commandStatus"]["queryId"]) is not None


def test_a_query_that_reads_from_now_on_misses_nothing_while_it_starts(desk: Desk) -> None:
    _orders(desk, "orders7")
    desk.send("orders7", ("a", {"N": 1}))
    desk.run("CREATE STREAM ALL7 AS SELECT * FROM orders7 EMIT CHANGES;", {"auto.offset.reset": "latest"})
    desk.send("orders7", ("a", {"N": 2}))
    assert [one["N"] for one in patiently(lambda: desk.values("ALL7"))] == [2]


def test_what_cannot_be_read_is_counted_and_kept(desk: Desk) -> None:
    _orders(desk, "orders8")
    query_id = desk.one("CREATE STREAM ALL8 AS SELECT * FROM orders8 EMIT CHANGES;")["commandStatus"]["queryId"]
    desk.send("orders8", ("a", "not an object"), ("a", {"N": 2}))
    assert [one["N"] for one in patiently(lambda: desk.values("ALL8"))] == [2]
    assert len(desk.values("ALL8-dlq")) == 1
    described = patiently(
        lambda: desk.one(f"EXPLAIN {query_id};")["queryDescription"],
        lambda found: found["progress"]["undecodable"] == 1,
    )
    assert (described["state"], described["sources"], described["sinks"]) == ("RUNNING", ["ORDERS8"], ["ALL8"])
    assert "== Physical Plan ==" in described["topology"] or "Project" in described["topology"]
    assert described["progress"]["lag"] == 0
    assert desk.service.progress()[query_id].output_rows == 1


def test_statements_of_spark_are_passed_on_as_they_are(desk: Desk) -> None:
    answer = desk.one("SELECT n FROM VALUES (2), (1) AS t(n) ORDER BY n;")
    assert (answer["@type"], answer["rows"]) == ("spark_rows", [[1], [2]])
    assert answer["columns"] == [{"name": "n", "type": "int"}]
    with pytest.raises(BadStatement, match="no_such_table"):
        desk.run("SELECT * FROM no_such_table ORDER BY 1;")
