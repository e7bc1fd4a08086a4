"""Sinks whose records another engine carries, in real workers: as users meet any other sink."""

import json
import os
from collections.abc import Iterator, Sequence
from functools import partial
from operator import eq
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.celery_workers import CeleryWorkers
from tests.support.connect import ConnectProcess
from tests.support.connect_load import kill_a_host
from tests.support.redis_server import RedisServer
from tests.support.scripted_engine import REFUSED, install

_TEXT = "org.apache.kafka.connect.storage.StringConverter"
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_PREFIX = "__connect.errors."


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Workers that are started from here on know the connector."""
    folder = tmp_path_factory.mktemp("plugin")
    install(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
        yield


@pytest.fixture(scope="module")
def worker(plugin: None, broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectProcess]:
    """A worker with one process for tasks."""
    folder = tmp_path_factory.mktemp("engine-connect")
    settings = {"task.processes": "1", "spark.master": "local[1]"}
    with ConnectProcess(folder, bootstrap=broker.bootstrap, group="engines", settings=settings) as process:
        yield process


class Sink:
    """A connector of a test: its configuration, and what its engine has written."""

    def __init__(self, name: str, worker: ConnectProcess, broker: BrokerProcess, folder: Path) -> None:
        self.name, self.worker, self.broker = name, worker, broker
        self.file = folder / "out.txt"
        self.topic = f"{name}-in"
        create_topic(broker, self.topic)

    @property
    def config(self) -> dict[str, str]:
        return {
            "connector.class": "LineEngineSink",
            "topics": self.topic,
            "file": str(self.file),
            "key.converter": _TEXT,
            "value.converter": _JSON,
            "value.converter.schemas.enable": "false",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": f"{self.name}-dead",
            "errors.deadletterqueue.context.headers.enable": "true",
        }

    def create(self, **changes: str) -> None:
        more = {key.replace("_", "."): text for key, text in changes.items()}
        self.worker.create(self.name, {**self.config, **more})
        self.worker.wait_for(self.name, "RUNNING", tasks=1)

    def send(self, *values: object) -> None:
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        for value in values:
            producer.produce(self.topic, key=b"k", value=value if isinstance(value, bytes) else json.dumps(value))
        assert producer.flush(60) == 0

    def arrive(self, *lines: str) -> None:
        """Wait until these lines have been written, and no others."""
        eventually(self.lines, partial(eq, list(lines)))

    def lines(self) -> list[str]:
        return self.file.read_text().splitlines() if self.file.exists() else []

    def calls(self, *names: str) -> list[dict[str, Any]]:
        """What the engine was told, of some kinds."""
        file = Path(f"{self.file}.calls")
        calls = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [call for call in calls if call["call"] in names]

    def trouble(self, what: str) -> None:
        Path(f"{self.file}.trouble").write_text(what)

    def ask(self, method: str, path: str = "", body: object = None) -> Any:
        return self.worker.json(method, f"/connectors/{self.name}{path}", body)

    def offset(self) -> int | None:
        """What the connector's group has committed, as users see it."""
        found = self.ask("GET", "/offsets")["offsets"]
        places = {entry["partition"]["kafka_topic"]: entry["offset"]["kafka_offset"] for entry in found}
        return places.get(self.topic)

    def stop(self) -> None:
        self.ask("PUT", "/stop")
        eventually(lambda: self.ask("GET", "/status")["connector"]["state"], partial(eq, "STOPPED"))


@pytest.fixture
def sink(worker: ConnectProcess, broker: BrokerProcess, tmp_path: Path, name: str) -> Iterator[Sink]:
    made = Sink(name, worker, broker, tmp_path)
    yield made
    if worker.is_running:
        worker.ask("DELETE", f"/connectors/{name}")


def read(broker: BrokerProcess, topic: str, count: int) -> list[Message]:
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "judge", "isolation.level": "read_committed"}
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[Message] = []

        def are_there() -> bool:
            found.extend(consumer.consume(100, 0.2))
            return len(found) >= count

        eventually(are_there)
        return found
    finally:
        consumer.close()


def told(message: Message) -> dict[str, str]:
    headers: Sequence[tuple[str, bytes]] = message.headers() or []  # type: ignore[assignment]  # a list, as it was sent
    return {key.removeprefix(_PREFIX): value.decode() for key, value in headers}


# --- records ---


def test_records_arrive_and_all_that_is_told_of_other_sinks_is_told(sink: Sink) -> None:
    sink.create()
    sink.send("a", "b", "c")
    sink.arrive("a", "b", "c")
    eventually(sink.offset, partial(eq, 3))
    eventually(lambda: sink.ask("GET", "/topics"), partial(eq, {sink.name: {"topics": [sink.topic]}}))
    assert sink.ask("GET", "/status")["type"] == "sink"
    labels = f'connector="{sink.name}",task="0"'
    wanted = {f"caudal_connect_sink_record_{what}_total{{{labels}}} 3.0" for what in ("read", "send")}
    eventually(lambda: set(sink.worker.ask("GET", "/metrics").text.splitlines()), wanted.issubset)


def test_the_engine_is_told_what_the_operator_says_about_it(sink: Sink) -> None:
    sink.create()
    assert [call["spark.master"] for call in sink.calls("start")] == ["local[1]"]


def test_topics_that_a_pattern_matches_are_read_when_they_come(sink: Sink) -> None:
    sink.create(topics="", topics_regex=f"{sink.name}-(in|later)")
    sink.send("a")
    sink.arrive("a")
    sink.topic = f"{sink.name}-later"
    create_topic(sink.broker, sink.topic)
    sink.send("b")
    sink.arrive("a", "b")


def test_bad_records_become_letters_that_tell_why(sink: Sink) -> None:
    sink.create()
    sink.send("a", b"no json", "b", REFUSED)
    sink.arrive("a", "b")
    letters = read(sink.broker, f"{sink.name}-dead", 2)
    assert [letter.value() for letter in letters] == [b"no json", json.dumps(REFUSED).encode()]
    first, second = map(told, letters)
    assert (first["stage"], first["class.name"], first["offset"]) == ("VALUE_CONVERTER", _JSON, "1")
    assert (second["stage"], second["offset"], second["exception.message"]) == (
        "TASK_PUT",
        "3",
        "the engine does not want it",
    )
    assert {(each["connector.name"], each["task.id"], each["topic"]) for each in (first, second)} == {
        (sink.name, "0", sink.topic)
    }
    skipped = f'caudal_connect_total_records_skipped_total{{connector="{sink.name}",task="0"}} 2'
    eventually(lambda: sink.worker.ask("GET", "/metrics").text, lambda text: skipped in text)


def test_letters_that_are_sent_again_reach_the_engine(sink: Sink) -> None:
    sink.create()
    sink.send(b"text")
    read(sink.broker, f"{sink.name}-dead", 1)
    sink.ask("PUT", "/config", {**sink.config, "value.converter": _TEXT})
    assert sink.ask("POST", "/dlq/redrive", {"selection": {"all": True}})["redriven"] == 1
    sink.arrive("text")


def test_a_record_that_is_not_tolerated_fails_the_task_with_its_cause(sink: Sink) -> None:
    sink.create(errors_tolerance="none")
    sink.send("a", b"no json")
    trace = sink.worker.wait_for(sink.name, "FAILED")["tasks"][0]["trace"]
    assert "Tolerance exceeded in error handler" in trace
    assert "DataError" in trace


# --- life ---


def test_while_it_is_paused_nothing_is_written(sink: Sink) -> None:
    sink.create()
    sink.send("a")
    sink.arrive("a")
    sink.ask("PUT", "/pause")
    sink.worker.wait_for(sink.name, "PAUSED")
    eventually(lambda: sink.calls("rest"))
    sink.send("b")
    assert sink.lines() == ["a"]
    sink.ask("PUT", "/resume")
    sink.worker.wait_for(sink.name, "RUNNING")
    sink.arrive("a", "b")
    assert [call["call"] for call in sink.calls("rest", "resume", "stop")] == ["rest", "resume"]


def test_a_restart_makes_a_new_task_that_goes_on(sink: Sink) -> None:
    sink.create()
    sink.send("a")
    sink.arrive("a")
    eventually(sink.offset, partial(eq, 1))
    sink.ask("POST", "/restart?includeTasks=true")
    eventually(lambda: [call["call"] for call in sink.calls("start", "stop")], partial(eq, ["start", "stop", "start"]))
    first, second = (call["run"] for call in sink.calls("start"))
    assert first < second
    sink.send("b")
    sink.arrive("a", "b")


def test_an_engine_that_fails_is_told_in_the_status(sink: Sink) -> None:
    sink.create()
    sink.trouble("fail")
    trace = sink.worker.wait_for(sink.name, "FAILED")["tasks"][0]["trace"]
    assert trace.startswith("org.apache.kafka.connect.errors.ConnectException: The engine is broken")
    sink.trouble("")
    sink.ask("POST", "/tasks/0/restart")
    sink.worker.wait_for(sink.name, "RUNNING")
    sink.send("a")
    sink.arrive("a")


@pytest.mark.parametrize("is_running", [True, False], ids=["later", "at the start"])
def test_an_engine_that_is_away_is_waited_for(sink: Sink, is_running: bool) -> None:
    if is_running:
        sink.create()
    sink.trouble("away")
    if not is_running:
        sink.worker.create(sink.name, sink.config)
    trace = sink.worker.wait_for(sink.name, "RESTARTING")["tasks"][0]["trace"]
    assert "The engine is away" in trace
    sink.trouble("")
    sink.worker.wait_for(sink.name, "RUNNING")
    sink.send("a")
    sink.arrive("a")
    assert len(sink.calls("start")) == 1


def test_an_engine_that_is_away_is_paused_when_it_is_back(sink: Sink) -> None:
    sink.create()
    sink.trouble("away")
    sink.worker.wait_for(sink.name, "RESTARTING")
    sink.ask("PUT", "/pause")
    sink.worker.wait_for(sink.name, "PAUSED")
    assert sink.calls("rest") == []
    sink.trouble("")
    eventually(lambda: sink.calls("rest"))
    sink.ask("PUT", "/resume")
    sink.worker.wait_for(sink.name, "RUNNING")
    sink.send("a")
    sink.arrive("a")
    assert [call["call"] for call in sink.calls("rest", "resume")] == ["rest", "resume"]


def test_a_deleted_connector_cleans_up_in_its_engine(sink: Sink) -> None:
    sink.create()
    sink.ask("DELETE")
    eventually(lambda: sink.calls("stop", "removed"), lambda calls: len(calls) == 2)
    assert sink.calls("stop", "removed") == [{"call": "stop"}, {"call": "removed", "connector": sink.name}]


# --- offsets ---


def test_offsets_are_changed_and_the_engine_is_told(sink: Sink) -> None:
    sink.create(consumer_override_group_id=f"{sink.name}-own")
    sink.send("a", "b", "c")
    sink.arrive("a", "b", "c")
    sink.stop()
    assert sink.offset() == 3
    entry = {"partition": {"kafka_topic": sink.topic, "kafka_partition": 0}, "offset": {"kafka_offset": 1}}
    answer = sink.ask("PATCH", "/offsets", {"offsets": [entry]})
    assert answer["message"] == "The offsets for this connector have been altered successfully"
    assert sink.calls("alter") == [
        {
            "call": "alter",
            "group": f"{sink.name}-own",
            "offsets": {f"{sink.topic}-0": 1},
            "spark.master": "local[1]",
        }
    ]
    sink.ask("PUT", "/resume")
    sink.arrive("a", "b", "c", "b", "c")


def test_offsets_are_forgotten_and_the_engine_is_told(sink: Sink) -> None:
    sink.create()
    sink.send("a")
    sink.arrive("a")
    eventually(sink.offset, partial(eq, 1))
    sink.stop()
    answer = sink.ask("DELETE", "/offsets")
    assert answer["message"] == "The offsets for this connector have been reset successfully"
    assert [call["offsets"] for call in sink.calls("alter")] == [{f"{sink.topic}-0": None}]
    assert sink.offset() is None
    sink.ask("PUT", "/resume")
    sink.arrive("a", "a")


def test_offsets_that_make_no_sense_to_the_engine_change_nothing(sink: Sink) -> None:
    sink.create()
    sink.stop()
    entry = {"partition": {"kafka_topic": sink.topic, "kafka_partition": 1}, "offset": {"kafka_offset": 1}}
    answer = sink.worker.ask("PATCH", f"/connectors/{sink.name}/offsets", {"offsets": [entry]})
    assert (answer.status_code, "one partition alone" in answer.text) == (400, True)
    assert sink.ask("GET", "/offsets") == {"offsets": []}


def test_offsets_that_the_engine_cannot_be_told_of_now_change_nothing(sink: Sink) -> None:
    sink.create()
    sink.stop()
    sink.trouble("away")
    entry = {"partition": {"kafka_topic": sink.topic, "kafka_partition": 0}, "offset": {"kafka_offset": 1}}
    answer = sink.worker.ask("PATCH", f"/connectors/{sink.name}/offsets", {"offsets": [entry]})
    assert (answer.status_code, "The engine is away" in answer.text) == (500, True)
    assert sink.ask("GET", "/offsets") == {"offsets": []}


# --- before it is created ---


def test_a_configuration_is_validated_and_tried_without_the_engine(sink: Sink) -> None:
    config = {**sink.config, "name": sink.name}
    found = sink.worker.json("PUT", "/connector-plugins/LineEngineSink/config/validate", config)
    assert found["error_count"] == 0
    del config["file"]
    found = sink.worker.json("PUT", "/connector-plugins/LineEngineSink/config/validate", config)
    wrong = [item["value"]["name"] for item in found["configs"] if item["value"]["errors"]]
    assert wrong == ["file"]
    body = {"config": sink.config, "records": [{"topic": sink.topic, "value": "[1]"}]}
    tried = sink.worker.json("POST", "/connectors/dry-run", body)
    assert [outcome["result"]["value"] for outcome in tried["records"]] == [[1]]
    assert not Path(f"{sink.file}.calls").exists()


# --- kills ---


@pytest.mark.parametrize("processes", ["0", "1"], ids=["threads", "processes"])
def test_a_killed_worker_goes_on_where_it_was(
    plugin: None, broker: BrokerProcess, tmp_path: Path, name: str, processes: str
) -> None:
    settings = {"task.processes": processes}
    with ConnectProcess(tmp_path / "connect", bootstrap=broker.bootstrap, group=name, settings=settings) as worker:
        sink = Sink(name, worker, broker, tmp_path)
        sink.create()
        sink.send("a")
        eventually(sink.offset, partial(eq, 1))
        if processes == "1":
            assert kill_a_host(worker)
            sink.send("b")
            eventually(sink.offset, partial(eq, 2))
        worker.restart(kill=True)
        sink.send("c")
        eventually(sink.lines, lambda lines: lines[-1] == "c")
        assert set(sink.lines()) == ({"a", "b", "c"} if processes == "1" else {"a", "c"})


def test_celery_workers_run_them_too(
    plugin: None, broker: BrokerProcess, redis_server: RedisServer, tmp_path: Path, name: str
) -> None:
    settings = {"executor": "celery", "celery.broker.url": redis_server.url, "celery.queue": name}
    settings["celery.lease.ms"] = "2000"
    with ConnectProcess(tmp_path / "connect", bootstrap=broker.bootstrap, group=name, settings=settings) as worker:
        celery = CeleryWorkers(tmp_path, {**worker.settings, "spark.master": "local[2]"})
        celery.start()
        try:
            sink = Sink(name, worker, broker, tmp_path)
            sink.create()
            sink.send("a", b"no json")
            sink.arrive("a")
            assert [call["spark.master"] for call in sink.calls("start")] == ["local[2]"]
        finally:
            celery.kill()
