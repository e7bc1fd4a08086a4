"""What happens when a record fails: every stage under every tolerance, against a real broker."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from connect.api.errors import ConfigError, DataError, RetriableError, Unavailable
from connect.runtime.models import State
from core_broker.client.admin import Admin
from core_broker.client.settings import ClientSettings
from core_broker.service.clock import SystemClock
from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.connect_tasks import TaskWorld, task_world
from tests.support.registry import RegistryProcess
from tests.support.scripted_connectors import Script, fail_times, refuse

_SENT_MS = SystemClock().now_ms() - 60_000
_HEADERS = [
    "__connect.errors.topic",
    "__connect.errors.partition",
    "__connect.errors.offset",
    "__connect.errors.connector.name",
    "__connect.errors.task.id",
    "__connect.errors.stage",
    "__connect.errors.class.name",
    "__connect.errors.exception.class.name",
    "__connect.errors.exception.message",
    "__connect.errors.exception.stacktrace",
]


@pytest.fixture
def world(broker: BrokerProcess, name: str) -> Iterator[TaskWorld]:
    with task_world(broker, name) as made:
        yield made


@pytest.fixture
def script(name: str) -> Script:
    return Script(name)


def sink(name: str, **more: str) -> dict[str, str]:
    return {
        "connector.class": "ScriptedSink",
        "script": name,
        "topics": f"{name}-in",
        "value.converter": "org.example.ScriptedConverter",
        "value.converter.script": name,
        "key.converter": "org.example.ScriptedConverter",
        "key.converter.script": name,
        "transforms": "t",
        "transforms.t.type": "org.example.ScriptedTransform",
        "transforms.t.script": name,
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def source(name: str, **more: str) -> dict[str, str]:
    config = sink(name, **more)
    del config["topics"]
    return {**config, "connector.class": "ScriptedSource", "topic": f"{name}-out"}


def dead(name: str) -> dict[str, str]:
    return {
        "errors.deadletterqueue.topic.name": f"{name}-dead",
        "errors.deadletterqueue.context.headers.enable": "true",
    }


def send(broker: BrokerProcess, topic: str, values: Sequence[str | None], *, headers: Any = None) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce(topic, key=b"k", value=value, headers=headers, timestamp=_SENT_MS)
    assert producer.flush(60) == 0


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


def committed(broker: BrokerProcess, connector: str, topic: str) -> int | None:
    admin = Admin(ClientSettings(bootstrap_servers=broker.bootstrap))
    return admin.group_offsets(f"connect-{connector}").get((topic, 0))


def headers_of(message: Message) -> list[tuple[str, bytes | None]]:
    headers: Any = message.headers()
    return list(headers or ())


def told(message: Message) -> dict[str, str | None]:
    return {key: None if value is None else value.decode() for key, value in headers_of(message)}


def bad_value(*bad: str) -> Callable[[str, bytes | None], None]:
    def convert(side: str, data: bytes | None) -> None:
        text = data.decode() if isinstance(data, bytes) else data
        if side == "value" and text in bad:
            raise DataError(f"cannot read {text}")

    return convert


def bad_key(*_: str) -> Callable[[str, bytes | None], None]:
    seen = [0]

    def convert(side: str, data: bytes | None) -> None:
        if side == "key":
            seen[0] += 1
            if seen[0] == 2:
                raise DataError("cannot read this key")

    return convert


def bad_record(*bad: str) -> Callable[[object], None]:
    def apply(record: object) -> None:
        if getattr(record, "value", None) in bad:
            raise DataError(f"cannot change {getattr(record, 'value', None)}")

    return apply


STAGES = {
    "KEY_CONVERTER": ("org.example.ScriptedConverter", "cannot read this key"),
    "VALUE_CONVERTER": ("org.example.ScriptedConverter", "cannot read b"),
    "TRANSFORMATION": ("org.example.ScriptedTransform", "cannot change b"),
    "TASK_PUT": ("org.apache.kafka.connect.sink.SinkTask", "bad value b"),
}


def prepare(script: Script, stage: str) -> None:
    makers = {
        "KEY_CONVERTER": ("on_convert", bad_key()),
        "VALUE_CONVERTER": ("on_convert", bad_value("b")),
        "TRANSFORMATION": ("on_transform", bad_record("b")),
        "TASK_PUT": ("on_put", refuse("b")),
    }
    setattr(script, *makers[stage])


@pytest.mark.parametrize("stage", STAGES)
def test_without_tolerance_the_first_bad_record_stops_the_task_with_the_cause(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str, stage: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a", "b", "c"])
    prepare(script, stage)
    task = world.start(name, sink(name))
    trace = world.wait_for(task, State.FAILED)
    assert STAGES[stage][1] in trace
    assert "Tolerance exceeded" in trace or "unrecoverable exception" in trace
    assert "b" not in script.values
    assert committed(broker, name, f"{name}-in") in (None, 0, 1)


@pytest.mark.parametrize("stage", STAGES)
def test_with_tolerance_bad_records_are_skipped_and_the_others_arrive(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str, stage: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a", "b", "c"])
    prepare(script, stage)
    task = world.start(name, sink(name, errors_tolerance="all"))
    eventually(lambda: script.values, lambda values: values == ["a", "c"])
    eventually(lambda: committed(broker, name, f"{name}-in"), lambda offset: offset == 3)
    assert task.counters.total_records_skipped == 1
    assert task.counters.total_record_errors == 1


@pytest.mark.parametrize("stage", STAGES)
def test_a_dead_letter_is_the_record_as_it_was_read_with_ten_headers_that_tell_why(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str, stage: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a", "b", "c"], headers=[("own", b"1")])
    prepare(script, stage)
    world.start(name, {**sink(name, errors_tolerance="all"), **dead(name)})
    (letter,) = read(broker, f"{name}-dead", 1)
    assert (letter.key(), letter.value(), letter.timestamp()[1]) == (b"k", b"b", _SENT_MS)
    headers = headers_of(letter)
    assert [key for key, _ in headers] == ["own", *_HEADERS]
    error = told(letter)
    assert error["__connect.errors.topic"] == f"{name}-in"
    assert error["__connect.errors.partition"] == "0"
    assert error["__connect.errors.offset"] == "1"
    assert error["__connect.errors.connector.name"] == name
    assert error["__connect.errors.task.id"] == "0"
    assert error["__connect.errors.stage"] == stage
    assert error["__connect.errors.class.name"] == STAGES[stage][0]
    assert error["__connect.errors.exception.class.name"] == "org.apache.kafka.connect.errors.DataException"
    assert error["__connect.errors.exception.message"] == STAGES[stage][1]
    assert STAGES[stage][1] in (error["__connect.errors.exception.stacktrace"] or "")
    eventually(lambda: committed(broker, name, f"{name}-in"), lambda offset: offset == 3)


def test_headers_are_left_out_unless_they_are_asked_for(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["b"])
    script.on_convert = bad_value("b")
    config = {**sink(name, errors_tolerance="all"), "errors.deadletterqueue.topic.name": f" {name}-dead "}
    world.start(name, config)
    (letter,) = read(broker, f"{name}-dead", 1)
    assert letter.headers() is None


def test_an_exception_without_a_message_has_a_header_without_a_value(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    def convert(side: str, data: object) -> None:
        raise DataError

    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["b"])
    script.on_convert = convert
    world.start(name, {**sink(name, errors_tolerance="all"), **dead(name)})
    (letter,) = read(broker, f"{name}-dead", 1)
    assert dict(headers_of(letter))["__connect.errors.exception.message"] is None


def test_without_tolerance_the_dead_letter_is_written_before_the_task_stops(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["b"])
    script.on_convert = bad_value("b")
    task = world.start(name, {**sink(name), **dead(name)})
    world.wait_for(task, State.FAILED)
    (letter,) = read(broker, f"{name}-dead", 1)
    assert letter.value() == b"b"


def test_later_stages_of_a_record_that_failed_are_not_run(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["b", "c"])
    script.on_convert = bad_value("b")
    seen: list[object] = []
    script.on_transform = lambda record: seen.append(record.value)
    task = world.start(name, {**sink(name, errors_tolerance="all"), **dead(name)})
    eventually(lambda: script.values, lambda values: values == ["c"])
    assert seen == ["c"]
    assert task.counters.deadletterqueue_produce_requests == 1


# --- retries ---


@pytest.mark.parametrize("where", ["on_convert", "on_transform"])
def test_what_may_pass_is_tried_again_within_the_retry_timeout(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str, where: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a"])
    setattr(script, where, fail_times(2))
    task = world.start(name, sink(name, errors_retry_timeout="60000", errors_retry_delay_max_ms="20"))
    eventually(lambda: script.values, lambda values: values == ["a"])
    assert task.counters.total_retries == 2
    assert task.counters.total_record_failures == 2
    assert task.counters.total_record_errors == 0


def test_what_may_pass_and_is_not_to_be_tried_again_stops_the_task_and_is_not_lost(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a"])
    script.on_transform = fail_times(1)
    task = world.start(name, sink(name))
    assert "not now" in world.wait_for(task, State.FAILED)
    assert script.values == []
    assert committed(broker, name, f"{name}-in") in (None, 0)


def test_retries_that_run_out_are_a_failure_like_any_other(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a", "b"])

    def never(record: object) -> None:
        if getattr(record, "value", None) == "a":
            raise RetriableError("never")

    script.on_transform = never
    config = sink(name, errors_tolerance="all", errors_retry_timeout="100", errors_retry_delay_max_ms="10")
    world.start(name, {**config, **dead(name)})
    (letter,) = read(broker, f"{name}-dead", 1)
    error = told(letter)
    assert error["__connect.errors.exception.class.name"] == "org.apache.kafka.connect.errors.RetriableException"
    eventually(lambda: script.values, lambda values: values == ["b"])


def test_an_outage_of_a_server_that_every_record_needs_is_waited_for_and_never_a_dead_letter(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a", "b"])
    script.on_convert = fail_times(3, Unavailable)
    task = world.start(name, {**sink(name, errors_tolerance="all"), **dead(name)})
    eventually(lambda: script.values, lambda values: values == ["a", "b"])
    assert task.counters.deadletterqueue_produce_requests == 0


@pytest.mark.parametrize("outage", [RetriableError, ConnectionRefusedError, TimeoutError])
def test_an_outage_of_the_other_side_gives_the_same_batch_again_and_is_never_a_dead_letter(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str, outage: type[Exception]
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a", "b", "c"])
    left = [3]

    def put(records: Sequence[object]) -> None:
        if records and left[0]:
            left[0] -= 1
            raise outage("down")

    script.on_put = put
    task = world.start(name, {**sink(name, errors_tolerance="all"), **dead(name)})
    eventually(lambda: script.values, lambda values: values == ["a", "b", "c"])
    assert script.batches == [["a", "b", "c"]] * 4
    assert task.counters.deadletterqueue_produce_requests == 0


def test_a_stop_ends_the_wait_for_an_outage_and_commits_nothing(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a"])

    def put(records: Sequence[object]) -> None:
        if records:
            raise RetriableError("down")

    script.on_put = put
    task = world.start(name, sink(name))
    eventually(lambda: script.batches)
    world.stop(task)
    assert task.state is State.UNASSIGNED
    assert committed(broker, name, f"{name}-in") in (None, 0)


def test_a_task_that_starts_while_the_other_side_is_away_waits_for_it(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a"])
    script.on_start = fail_times(2)
    task = world.start(name, sink(name))
    assert "not now, 1 to go" in world.wait_for(task, State.RESTARTING)
    eventually(lambda: script.values, lambda values: values == ["a"])
    assert task.state is State.RUNNING


# --- put ---


def test_a_batch_that_is_refused_is_split_until_only_the_bad_records_are_left_out(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    values = [str(number) for number in range(64)]
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", values)
    script.on_put = refuse("7", "8", "50")
    world.start(name, {**sink(name, errors_tolerance="all"), **dead(name)})
    letters = read(broker, f"{name}-dead", 3)
    assert [letter.value() for letter in letters] == [b"7", b"8", b"50"]
    good = [value for value in values if value not in ("7", "8", "50")]
    eventually(lambda: script.values, lambda found: found == good)
    eventually(lambda: committed(broker, name, f"{name}-in"), lambda offset: offset == 64)
    assert len(script.batches) < 40


def test_a_task_that_is_stopped_while_it_splits_a_batch_makes_no_dead_letters(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a", "b", "c", "d"])

    def put(records: Sequence[object]) -> None:
        if records:
            raise DataError("one of these is bad") if len(records) > 1 else RetriableError("down")

    script.on_put = put
    task = world.start(name, {**sink(name, errors_tolerance="all"), **dead(name)})
    eventually(lambda: any(len(batch) == 1 for batch in script.batches))
    world.stop(task)
    assert task.counters.deadletterqueue_produce_requests == 0
    assert committed(broker, name, f"{name}-in") in (None, 0)


def test_splitting_can_be_switched_off(world: TaskWorld, broker: BrokerProcess, script: Script, name: str) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a", "b"])
    script.on_put = refuse("b")
    task = world.start(name, sink(name, errors_tolerance="all", errors_put_bisect_enable="false"))
    assert "bad value b" in world.wait_for(task, State.FAILED)


def test_a_wrong_configuration_stops_the_task_whatever_is_tolerated(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a", "b"])
    script.on_put = refuse("b", error=ConfigError)
    task = world.start(name, {**sink(name, errors_tolerance="all"), **dead(name)})
    assert "bad value b" in world.wait_for(task, State.FAILED)
    assert task.counters.deadletterqueue_produce_requests == 0


def test_a_sink_can_report_a_bad_record_itself(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a", "b"])

    def put(records: Sequence[object]) -> None:
        for record in records:
            if getattr(record, "value", None) == "b":
                script.context.report(record, DataError("too heavy"))

    script.on_put = put
    world.start(name, {**sink(name, errors_tolerance="all"), **dead(name)})
    (letter,) = read(broker, f"{name}-dead", 1)
    assert (letter.value(), told(letter)["__connect.errors.stage"]) == (b"b", "TASK_PUT")
    assert len(script.batches) == 1


def test_a_report_without_tolerance_stops_the_task(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a"])

    def put(records: Sequence[object]) -> None:
        for record in records:
            script.context.report(record, DataError("too heavy"))

    script.on_put = put
    task = world.start(name, sink(name))
    assert "too heavy" in world.wait_for(task, State.FAILED)


def test_a_flush_that_fails_once_lets_the_records_be_put_again(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a", "b"])
    script.on_flush = fail_times(1, DataError)
    task = world.start(name, sink(name))
    eventually(lambda: script.values, lambda values: values == ["a", "b", "a", "b"])
    eventually(lambda: committed(broker, name, f"{name}-in"), lambda offset: offset == 2)
    assert task.state is State.RUNNING


def test_records_are_put_again_from_where_reading_began_when_nothing_was_committed_yet(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["old"])
    script.on_flush = fail_times(1, DataError)
    task = world.start(name, {**sink(name), "consumer.override.auto.offset.reset": "latest"})
    eventually(lambda: task.counters.partition_count, lambda count: count == 1)

    def arrived() -> list[object]:
        send(broker, f"{name}-in", ["new"])  # until the partition's end was found, what comes is old, too
        return script.values

    eventually(arrived, lambda values: values.count("new") > 3, pause_s=0.3)
    assert "old" not in script.values


def test_a_record_that_only_flush_refuses_is_found(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["a", "b", "c"])
    buffer: list[object] = []

    def flush() -> None:
        held = [record.value for record in buffer]  # type: ignore[attr-defined]
        buffer.clear()
        if "b" in held:
            raise DataError("b does not fit")

    script.on_put = buffer.extend
    script.on_flush = flush
    world.start(name, {**sink(name, errors_tolerance="all"), **dead(name)})
    (letter,) = read(broker, f"{name}-dead", 1)
    assert letter.value() == b"b"
    eventually(lambda: committed(broker, name, f"{name}-in"), lambda offset: offset == 3)


# --- the dead-letter topic itself ---


def test_a_dead_letter_that_cannot_be_written_stops_the_task_and_the_record_is_not_lost(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    create_topic(broker, f"{name}-dead", configs={"max.message.bytes": "200"})
    send(broker, f"{name}-in", ["a", "b", "c"])
    script.on_convert = bad_value("b")
    task = world.start(name, {**sink(name, errors_tolerance="all"), **dead(name)})
    trace = world.wait_for(task, State.FAILED)
    assert f"Could not write dead letters to topic {name}-dead" in trace
    assert task.counters.deadletterqueue_produce_failures == 1
    assert committed(broker, name, f"{name}-in") in (None, 0)


def test_a_dead_letter_topic_that_cannot_be_made_stops_the_task_before_it_reads(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    config = sink(name, errors_tolerance="all") | {"errors.deadletterqueue.topic.name": f"{name} dead"}
    task = world.start(name, config)
    assert "Could not initialize dead letter queue" in world.wait_for(task, State.FAILED)


def test_a_record_that_fails_twice_tells_of_both_failures(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-in")
    send(broker, f"{name}-in", ["b"], headers=[("__connect.errors.stage", b"TRANSFORMATION")])
    script.on_convert = bad_value("b")
    world.start(name, {**sink(name, errors_tolerance="all"), **dead(name)})
    (letter,) = read(broker, f"{name}-dead", 1)
    stages = [value for key, value in headers_of(letter) if key == "__connect.errors.stage"]
    assert stages == [b"TRANSFORMATION", b"VALUE_CONVERTER"]


# --- sources ---


def test_a_source_without_tolerance_stops_at_the_first_bad_record(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-out")
    script.to_give = ["a", "b", "c"]
    script.on_convert = bad_value("b")
    task = world.start(name, source(name))
    assert "cannot read b" in world.wait_for(task, State.FAILED)


@pytest.mark.parametrize("stage", ["VALUE_CONVERTER", "TRANSFORMATION"])
def test_a_source_has_dead_letters_with_what_it_had_read(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str, stage: str
) -> None:
    create_topic(broker, f"{name}-out")
    script.to_give = ["a", "b", "c"]
    prepare(script, stage)
    world.start(name, {**source(name, errors_tolerance="all"), **dead(name)})
    (letter,) = read(broker, f"{name}-dead", 1)
    body = letter.value() or b""
    assert b'"payload":"b"' in body
    assert b'"source_offset":{"position":2}' in body
    assert told(letter)["__connect.errors.stage"] == stage
    assert [message.value() for message in read(broker, f"{name}-out", 2)] == [b"a", b"c"]
    eventually(lambda: script.confirmed, lambda found: found == ["a", "c", "b"])


def test_a_source_whose_record_kafka_refuses_goes_on_when_that_is_tolerated(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-out", configs={"max.message.bytes": "1000"})
    script.to_give = ["a", "b" * 5000, "c"]
    world.start(name, {**source(name, errors_tolerance="all"), "batch": "1", **dead(name)})
    (letter,) = read(broker, f"{name}-dead", 1)
    assert told(letter)["__connect.errors.stage"] == "KAFKA_PRODUCE"
    assert [message.value() for message in read(broker, f"{name}-out", 2)] == [b"a", b"c"]


@pytest.mark.parametrize("bad", [["b"], ["b", "d"]])
def test_good_records_in_a_batch_with_bad_ones_are_written(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str, bad: list[str]
) -> None:
    create_topic(broker, f"{name}-out", configs={"cleanup.policy": "compact"})
    script.key_for = {"a": "1", "c": "3"}.get
    script.to_give = sorted(["a", "c", *bad])
    world.start(name, {**source(name, errors_tolerance="all"), **dead(name)})
    assert [message.value() for message in read(broker, f"{name}-out", 2)] == [b"a", b"c"]
    letters = read(broker, f"{name}-dead", len(bad))
    assert [json.loads(letter.value() or b"")["value"]["payload"] for letter in letters] == bad


def test_a_source_whose_record_kafka_refuses_stops_when_that_is_not_tolerated(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-out", configs={"max.message.bytes": "1000"})
    script.to_give = ["b" * 5000]
    task = world.start(name, source(name))
    world.wait_for(task, State.FAILED)
    assert script.confirmed == []


def test_a_poll_that_may_pass_is_made_again_and_any_other_stops_the_task(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-out")
    script.to_give = ["a"]
    script.on_poll = fail_times(2)
    task = world.start(name, source(name, errors_tolerance="all"))
    assert [message.value() for message in read(broker, f"{name}-out", 1)] == [b"a"]
    script.on_poll = fail_times(1, DataError)
    assert "not now" in world.wait_for(task, State.FAILED)


def test_what_a_source_cannot_make_a_record_of_is_a_dead_letter(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str
) -> None:
    create_topic(broker, f"{name}-out")

    def poll() -> None:
        script.on_poll = lambda: None
        script.context.report(b"\xffbroken", DataError("no line"), partition={"file": "x"}, offset={"position": 7})

    script.on_poll = poll
    world.start(name, {**source(name, errors_tolerance="all"), **dead(name)})
    (letter,) = read(broker, f"{name}-dead", 1)
    assert told(letter)["__connect.errors.stage"] == "TASK_POLL"
    assert b"broken" in (letter.value() or b"")
    assert b'"source_offset":{"position":7}' in (letter.value() or b"")


def test_a_registry_that_is_away_is_waited_for_and_no_record_is_given_up(
    world: TaskWorld, broker: BrokerProcess, script: Script, name: str, tmp_path: Path
) -> None:
    create_topic(broker, f"{name}-in")
    with RegistryProcess(tmp_path) as registry:
        address = registry.url
        with SchemaRegistryClient({"url": address}) as client:
            serialize = AvroSerializer(client, '"string"')
            data = serialize("a", SerializationContext(f"{name}-in", MessageField.VALUE))
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce(f"{name}-in", data)
        producer.flush(60)
        registry.stop()
        config = {
            "connector.class": "ScriptedSink",
            "script": name,
            "topics": f"{name}-in",
            "value.converter": "io.confluent.connect.avro.AvroConverter",
            "value.converter.schema.registry.url": address,
            "value.converter.max.retries": "0",
            "errors.tolerance": "all",
            **dead(name),
        }
        task = world.start(name, config)
        eventually(lambda: task.counters.total_retries)
        assert script.values == []
        registry.start()
        eventually(lambda: script.values, lambda values: values == ["a"])
    assert task.counters.deadletterqueue_produce_requests == 0
