"""The Spark sink under a real worker: what its settings do, and what it makes of trouble."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition

from streams.errors import EngineError
from streams.settings import SparkSettings
from streams.spark.engine.client import Engine
from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.spark_java import needs_java
from tests.support.spark_letters import letters as letters_in
from tests.support.spark_tables import delta_rows, parquet_rows
from tests.support.spark_worker import SparkWorker

pytestmark = [needs_java, pytest.mark.timeout(900)]

_PATIENCE_S = 240.0
JSON = {
    "connector.class": "SparkSink",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "trigger.interval.ms": "300",
}


@pytest.fixture(scope="module")
def worker(spark_worker: SparkWorker) -> Iterator[SparkWorker]:
    """One whose engine is there for all tests of this file, with and without sinks."""
    with Engine.connect(settings(spark_worker)):
        yield spark_worker


@pytest.fixture
def sink(worker: SparkWorker, name: str) -> Iterator[Callable[..., str]]:
    """Makes a sink of this test's topic; it is deleted behind it."""
    made: list[str] = []

    def make(**more: str) -> str:
        given = {key.replace("_", "."): value for key, value in more.items()}
        worker.create(name, {**JSON, "topics": name, "table": table(name), **given})
        made.append(name)
        return name

    yield make
    for one in made:
        worker.delete(one)


def table(name: str) -> str:
    return name.replace("-", "_").lower()


def send(broker: BrokerProcess, topic: str, values: Sequence[object], *, timestamp_ms: int | None = None) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number, value in enumerate(values):
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        producer.produce(topic, data, b"k%d" % number, timestamp=timestamp_ms or 0)
    assert producer.flush(60) == 0


def rows(worker: SparkWorker, name: str) -> list[dict[str, Any]]:
    folder = worker.table(table(name))
    found = [dict(row) for row in parquet_rows(folder)] if folder.exists() else []
    return sorted(found, key=lambda row: (row["_offset"], str(row)))


def awaited(worker: SparkWorker, name: str, count: int) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = eventually(
            lambda: rows(worker, name), lambda all_: len(all_) == count, timeout_s=_PATIENCE_S
        )
    except AssertionError as error:
        raise AssertionError(f"{error}\n{worker.trouble(name)}") from None
    return found


def failure(worker: SparkWorker, name: str) -> str:
    """The trace of a task, once it has failed."""
    tasks = eventually(
        lambda: worker.status(name)["tasks"],
        lambda found: bool(found) and found[0]["state"] == "FAILED",
        timeout_s=_PATIENCE_S,
        pause_s=0.2,
    )
    return str(tasks[0]["trace"])


def test_a_type_that_does_not_fit_makes_dead_letters_of_its_records(
    broker: BrokerProcess, worker: SparkWorker, sink: Callable[..., str], name: str
) -> None:
    letters = {"errors_tolerance": "all", "errors_deadletterqueue_topic_name": f"{name}-letters"}
    sink(**letters, errors_deadletterqueue_context_headers_enable="true")
    send(broker, name, [{"id": 1}, {"id": 2}])
    awaited(worker, name, 2)
    send(broker, name, [{"id": "three"}, {"id": 4, "more": True}])
    found = awaited(worker, name, 3)
    assert [(row["id"], row.get("more")) for row in found] == [(1, None), (2, None), (4, True)]
    (letter,) = eventually(
        lambda: letters_in(broker.bootstrap, f"{name}-letters"), lambda all_: len(all_) == 1, timeout_s=_PATIENCE_S
    )
    assert letter.told["stage"] == "TASK_PUT"
    assert "Column id of table" in letter.told["exception.message"]


def test_a_bad_record_ends_the_task_of_a_sink_that_tolerates_none_and_is_read_again_after_a_restart(
    broker: BrokerProcess, worker: SparkWorker, sink: Callable[..., str], name: str
) -> None:
    sink()
    send(broker, name, [{"id": 1}, b"no JSON"])
    trace = failure(worker, name)
    assert "Tolerance exceeded in error handler" in trace
    assert "JSON is malformed" in trace
    worker.json(
        "PUT",
        f"/connectors/{name}/config",
        {**JSON, "topics": name, "table": table(name)} | {"errors.tolerance": "all"},
    )
    assert [row["id"] for row in awaited(worker, name, 1)] == [1]


def test_a_table_that_must_not_change_takes_only_what_fits(
    broker: BrokerProcess, worker: SparkWorker, sink: Callable[..., str], name: str
) -> None:
    sink(schema_evolution="none", errors_tolerance="all")
    send(broker, name, [{"id": 1}])
    awaited(worker, name, 1)
    send(broker, name, [{"id": 2, "more": 1}, {"id": 3}])
    assert [row["id"] for row in awaited(worker, name, 2)] == [1, 3]


def test_rows_lie_in_the_folders_of_their_partitions_and_spark_finds_them(
    broker: BrokerProcess, worker: SparkWorker, sink: Callable[..., str], name: str
) -> None:
    create_topic(broker, name, configs={"retention.ms": "-1"})
    sink(partition_by="country,day(_timestamp)")
    send(broker, name, [{"id": 1, "country": "de"}, {"id": 2, "country": "pt"}], timestamp_ms=1_767_312_000_000)
    folder = worker.table(table(name))
    wanted = {f"country={country}/_timestamp_day=2026-01-02" for country in ("de", "pt")}
    eventually(
        lambda: {str(path.parent.relative_to(folder)) for path in folder.rglob("part-*.parquet")},
        lambda found: found == wanted,
        timeout_s=_PATIENCE_S,
    )
    statement = f"SELECT id FROM {table(name)} WHERE country = 'pt' AND _timestamp_day = '2026-01-02'"
    # Files are in their folders a moment before the catalog knows these.
    eventually(lambda: asked(worker, statement), lambda answer: answer == [[2]], timeout_s=_PATIENCE_S)


def test_offsets_over_rest_let_a_stopped_sink_read_again(
    broker: BrokerProcess, worker: SparkWorker, sink: Callable[..., str], name: str
) -> None:
    sink()
    send(broker, name, [{"id": number} for number in range(4)])
    awaited(worker, name, 4)
    worker.json("PUT", f"/connectors/{name}/stop")
    eventually(
        lambda: worker.status(name)["connector"]["state"], lambda state: state == "STOPPED", timeout_s=_PATIENCE_S
    )
    place = {"kafka_topic": name, "kafka_partition": 0}
    change = {"offsets": [{"partition": place, "offset": {"kafka_offset": 3}}]}
    told = worker.json("PATCH", f"/connectors/{name}/offsets", change)
    assert told["message"] == "The offsets for this connector have been altered successfully"
    assert worker.json("GET", f"/connectors/{name}/offsets")["offsets"] == change["offsets"]
    worker.json("PUT", f"/connectors/{name}/resume")
    assert [row["id"] for row in awaited(worker, name, 5)] == [0, 1, 2, 3, 3]
    worker.json("PUT", f"/connectors/{name}/stop")
    eventually(
        lambda: worker.status(name)["connector"]["state"], lambda state: state == "STOPPED", timeout_s=_PATIENCE_S
    )
    told = worker.json("DELETE", f"/connectors/{name}/offsets")
    assert told["message"] == "The offsets for this connector have been reset successfully"
    worker.json("PUT", f"/connectors/{name}/resume")
    assert [row["id"] for row in awaited(worker, name, 9)] == [0, 0, 1, 1, 2, 2, 3, 3, 3]


def test_a_range_of_a_topic_is_loaded_again_without_doubling_a_row(
    broker: BrokerProcess, worker: SparkWorker, sink: Callable[..., str], name: str
) -> None:
    sink()
    send(broker, name, [{"id": number} for number in range(6)])
    before = awaited(worker, name, 6)
    with Engine.connect(settings(worker)) as engine:
        told = engine.call("reload", connector=name, topic=name, partition=0, start=1, end=4)
    assert told == {"rows": 3}
    assert rows(worker, name) == before
    send(broker, name, [{"id": 6}])
    assert [row["id"] for row in awaited(worker, name, 7)] == list(range(7))


@pytest.mark.parametrize(
    ("start", "end", "told"), [(1, 7, "end at 6 at most"), (0, 4, "must begin at 2 or later")], ids=["unread", "gone"]
)
def test_a_range_whose_rows_would_be_doubled_or_lost_is_not_loaded_again(
    broker: BrokerProcess, worker: SparkWorker, sink: Callable[..., str], name: str, start: int, end: int, told: str
) -> None:
    sink()
    send(broker, name, [{"id": number} for number in range(6)])
    before = awaited(worker, name, 6)
    place = TopicPartition(name, 0, 2)
    admin_client(broker).delete_records([place])[TopicPartition(name, 0)].result(60)
    with Engine.connect(settings(worker)) as engine, pytest.raises(EngineError, match=told):
        engine.call("reload", connector=name, topic=name, partition=0, start=start, end=end)
    assert rows(worker, name) == before


def test_fields_of_the_value_are_the_key_of_an_upserted_table_that_can_be_loaded_again(
    broker: BrokerProcess, worker: SparkWorker, sink: Callable[..., str], name: str
) -> None:
    sink(table_format="delta", write_mode="upsert", pk_mode="record_value", pk_fields="id", partition_by="country")
    values = [(1, "a", "de"), (2, "b", "pt"), (1, "c", "pt"), (2, "d", "pt")]
    send(broker, name, [{"id": key, "v": value, "country": country} for key, value, country in values])
    wanted = [(1, "c", "pt", 2), (2, "d", "pt", 3)]
    assert upserted(worker, name, wanted) == wanted
    # Its older records must not become the newest.
    with Engine.connect(settings(worker)) as engine:
        engine.call("reload", connector=name, topic=name, partition=0, start=0, end=2)
    assert upserted(worker, name, wanted) == wanted


def test_a_tombstone_deletes_from_a_table_that_is_partitioned_by_a_field_of_the_value(
    broker: BrokerProcess, worker: SparkWorker, sink: Callable[..., str], name: str
) -> None:
    sink(table_format="delta", write_mode="upsert", pk_mode="record_key", partition_by="country")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for key, value in ((b"1", "de"), (b"2", "pt"), (b"1", None)):
        data = None if value is None else json.dumps({"id": int(key), "v": "a", "country": value}).encode()
        producer.produce(name, data, key)
        assert producer.flush(60) == 0
    wanted = [(2, "a", "pt", 1)]
    assert upserted(worker, name, wanted) == wanted


def upserted(worker: SparkWorker, name: str, wanted: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """What a delta table has, once it has what is wanted, or at last."""

    def found() -> list[tuple[Any, ...]]:
        folder = worker.table(table(name))
        read = delta_rows(folder) if (folder / "_delta_log").exists() else []
        return sorted((row["id"], row["v"], row["country"], row["_offset"]) for row in read)

    with suppress(AssertionError):
        eventually(found, lambda rows_: rows_ == wanted, timeout_s=_PATIENCE_S)
    return found()


def test_topics_that_come_later_and_topics_that_are_made_anew_are_read(
    broker: BrokerProcess, worker: SparkWorker, name: str
) -> None:
    first, second = f"{name}-a", f"{name}-b"
    worker.create(name, {**JSON, "topics.regex": f"{name}-[ab]"})
    try:
        send(broker, first, [{"id": 1}, {"id": 2}])
        awaited(worker, first, 2)
        send(broker, second, [{"id": 3}])
        awaited(worker, second, 1)
        admin_client(broker).delete_topics([first])[first].result(60)
        eventually(lambda: first in admin_client(broker).list_topics(timeout=60).topics, lambda there: not there)
        send(broker, first, [{"id": 4}])
        assert sorted(row["id"] for row in awaited(worker, first, 3)) == [1, 2, 4]
    finally:
        worker.delete(name)


def test_a_topic_that_was_made_anew_while_its_sink_was_stopped_is_read_from_its_beginning(
    broker: BrokerProcess, worker: SparkWorker, sink: Callable[..., str], name: str
) -> None:
    letters = {"errors_tolerance": "all", "errors_deadletterqueue_topic_name": f"{name}-letters"}
    sink(**letters, errors_deadletterqueue_context_headers_enable="true")
    send(broker, name, [{"id": 1}, {"id": 2}])
    awaited(worker, name, 2)
    worker.json("PUT", f"/connectors/{name}/stop")
    eventually(
        lambda: worker.status(name)["connector"]["state"], lambda state: state == "STOPPED", timeout_s=_PATIENCE_S
    )
    admin_client(broker).delete_topics([name])[name].result(60)
    eventually(lambda: name in admin_client(broker).list_topics(timeout=60).topics, lambda there: not there)
    # It has more records than were read of the one before.
    send(broker, name, [b"no JSON", {"id": 3}, {"id": 4}, {"id": 5}])
    worker.json("PUT", f"/connectors/{name}/resume")
    assert sorted(row["id"] for row in awaited(worker, name, 5)) == [1, 2, 3, 4, 5]
    (letter,) = eventually(
        lambda: letters_in(broker.bootstrap, f"{name}-letters"), lambda all_: len(all_) == 1, timeout_s=_PATIENCE_S
    )
    assert letter.received.value == b"no JSON"


def test_a_table_of_another_format_is_told_and_left_alone(
    broker: BrokerProcess, worker: SparkWorker, sink: Callable[..., str], name: str
) -> None:
    send(broker, name, [{"id": 1}])
    sink(table_format="delta")
    eventually(
        lambda: delta_rows(worker.table(table(name))) if worker.table(table(name)).exists() else [],
        lambda found: len(found) == 1,
        timeout_s=_PATIENCE_S,
    )
    config = {**JSON, "topics": name, "table": table(name), "table.format": "parquet"}
    worker.json("PUT", f"/connectors/{name}/config", config)
    send(broker, name, [{"id": 2}])
    trace = failure(worker, name)
    assert "table.format" in trace
    assert "delta" in trace


def settings(worker: SparkWorker) -> SparkSettings:
    return SparkSettings.among(worker.settings)


def asked(worker: SparkWorker, statement: str) -> list[Any]:
    with Engine.connect(settings(worker)) as engine:
        answer: list[Any] = engine.call("sql", statement=statement, limit=100)["rows"]
    return answer
