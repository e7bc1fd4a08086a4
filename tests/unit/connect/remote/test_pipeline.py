"""What a pipeline in another process makes of records: the same as a worker."""

import pickle
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import httpx2
import msgspec
import pytest

from connect.api.errors import ConfigError, DataError, RetriableError
from connect.remote.pipeline import RemotePipeline, ToleranceExceeded, merged_counters, steps_text
from connect.runtime.models import TaskId
from connect.runtime.tasks.steps import steps_of
from connect.settings import ConnectSettings
from core_broker.client.records import IncomingRecord, OutgoingRecord
from tests.support.registry import RegistryProcess

_TEXT = "org.apache.kafka.connect.storage.StringConverter"
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_AVRO = "io.confluent.connect.avro.AvroConverter"
_PREFIX = "__connect.errors."
_DEAD = {
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": " letters ",
    "errors.deadletterqueue.context.headers.enable": "true",
}
Open = Callable[..., RemotePipeline]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Opens pipelines of a sink with text keys and JSON values, with what is added to its configuration."""
    pipelines: list[RemotePipeline] = []

    def open_one(
        config: Mapping[str, str] | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        patience_seconds: float = 60.0,
    ) -> RemotePipeline:
        given = {"name": "lake", "connector.class": "SparkSink", "topics": "orders", "key.converter": _TEXT}
        given |= {"value.converter": _JSON, "value.converter.schemas.enable": "false", **(config or {})}
        steps = steps_of(
            TaskId("lake", 0),
            ConnectSettings.parse(settings or {}),
            resolved=given,
            secrets=dict(secrets or {}),
        )
        pipelines.append(RemotePipeline.open(steps.text(), patience_seconds=patience_seconds))
        return pipelines[-1]

    yield open_one
    for pipeline in pipelines:
        pipeline.close()


def read(value: bytes | None, *, offset: int = 0, topic: str = "orders", **more: object) -> IncomingRecord:
    return msgspec.structs.replace(
        IncomingRecord(
            topic=topic,
            partition=3,
            offset=offset,
            timestamp_ms=1000 + offset,
            timestamp_type="CreateTime",
            key=b"k",
            value=value,
        ),
        **more,
    )


def context_of(letter: OutgoingRecord) -> dict[str, str | None]:
    return {
        name.removeprefix(_PREFIX): None if text is None else text.decode()
        for name, text in letter.headers
        if name.startswith(_PREFIX)
    }


# --- records ---


def test_records_are_converted_and_transformed(opened: Open) -> None:
    mask = {"transforms": "m", "transforms.m.type": "MaskField$Value", "transforms.m.fields": "card"}
    records = opened(mask).records([read(b'{"id": 1, "card": "4711"}', offset=5, headers=[("h", b"7")])])
    assert [(record.key, record.value) for record in records] == [("k", {"id": 1, "card": ""})]
    assert [(record.topic, record.partition, record.offset) for record in records] == [("orders", 3, 5)]
    assert [(header.key, header.value) for header in records[0].headers] == [("h", 7)]


def test_what_transforms_drop_is_not_written(opened: Open) -> None:
    large = {"transforms": "f", "transforms.f.type": "ExpressionFilter", "transforms.f.condition": "value.id > 1"}
    pipeline = opened({**large, **_DEAD})
    assert [record.value for record in pipeline.records([read(b'{"id": 1}'), read(b'{"id": 2}')])] == [{"id": 2}]
    assert pipeline.taken_letters() == []


def test_converters_of_the_worker_are_used_where_the_connector_names_none(opened: Open) -> None:
    settings = {"value.converter": _JSON, "value.converter.schemas.enable": "false", "key.converter": _TEXT}
    pipeline = opened({"key.converter": "", "value.converter": ""}, settings=settings)
    assert pipeline.records([read(b"[1]")])[0].value == [1]


def test_a_record_that_came_back_belongs_to_its_first_topic(opened: Open) -> None:
    redriven = [("__connect.redrive.topic", b"orders"), ("__connect.redrive.partition", b"1")]
    redriven.append(("__connect.redrive.offset", b"42"))
    pipeline = opened(_DEAD)
    good, bad = (read(value, topic="connect-redrive-lake", headers=redriven) for value in (b"1", b"{"))
    assert [(record.topic, record.place) for record in pipeline.records([good, bad])] == [
        ("orders", ("connect-redrive-lake", 3))
    ]
    context = context_of(pipeline.taken_letters()[0])
    assert (context["topic"], context["partition"], context["offset"]) == ("orders", "1", "42")


# --- failures ---


def test_a_bad_record_becomes_a_letter_that_tells_why(opened: Open) -> None:
    pipeline = opened(_DEAD)
    batch = [read(b"1"), read(b"{", offset=1, headers=[("own", b"x")]), read(b"2", offset=2)]
    assert [record.value for record in pipeline.records(batch)] == [1, 2]
    (letter,) = pipeline.taken_letters()
    assert (letter.topic, letter.key, letter.value, letter.timestamp_ms) == ("letters", b"k", b"{", 1001)
    assert letter.headers[0] == ("own", b"x")
    context = context_of(letter)
    assert list(context) == [
        "topic",
        "partition",
        "offset",
        "connector.name",
        "task.id",
        "stage",
        "class.name",
        "exception.class.name",
        "exception.message",
        "exception.stacktrace",
    ]
    assert list(context.values())[:8] == [
        "orders",
        "3",
        "1",
        "lake",
        "0",
        "VALUE_CONVERTER",
        _JSON,
        "org.apache.kafka.connect.errors.DataException",
    ]
    assert pipeline.taken_letters() == []


def test_letters_tell_nothing_unless_they_shall(opened: Open) -> None:
    pipeline = opened({**_DEAD, "errors.deadletterqueue.context.headers.enable": "false"})
    pipeline.records([read(b"{", headers=[("own", b"x")])])
    assert [letter.headers for letter in pipeline.taken_letters()] == [[("own", b"x")]]


def test_letters_do_not_tell_secrets(opened: Open) -> None:
    pipeline = opened(_DEAD, secrets={"hunter2": "${file:/secrets:password}"})
    pipeline.refused(read(b"1"), DataError("no table for user hunter2"))
    context = context_of(pipeline.taken_letters()[0])
    assert context["exception.message"] == "no table for user ${file:/secrets:password}"
    assert "hunter2" not in (context["exception.stacktrace"] or "")


def test_without_a_topic_for_letters_bad_records_are_counted_alone(opened: Open) -> None:
    pipeline = opened({"errors.tolerance": "all"})
    assert pipeline.records([read(b"{")]) == []
    assert (pipeline.dead_letter_topic, pipeline.taken_letters()) == (None, [])
    assert (pipeline.counters.total_records_skipped, pipeline.counters.deadletterqueue_produce_requests) == (1, 0)


@pytest.mark.parametrize(
    ("refuse", "stage", "class_name"),
    [
        (RemotePipeline.refused, "TASK_PUT", "org.apache.kafka.connect.sink.SinkTask"),
        (RemotePipeline.unreadable, "VALUE_CONVERTER", _JSON),
        (partial(RemotePipeline.unreadable, is_key=True), "KEY_CONVERTER", _TEXT),
    ],
)
def test_what_the_sink_itself_cannot_do_is_settled_as_elsewhere(
    opened: Open, refuse: Callable[[RemotePipeline, IncomingRecord, Exception], None], stage: str, class_name: str
) -> None:
    pipeline = opened(_DEAD)
    refuse(pipeline, read(b"1", offset=9), DataError("does not fit"))
    context = context_of(pipeline.taken_letters()[0])
    assert (context["stage"], context["class.name"], context["offset"]) == (stage, class_name, "9")
    assert context["exception.message"] == "does not fit"
    assert pipeline.taken_counters().keys() >= {"total_record_failures", "total_record_errors", "total_records_skipped"}


def test_the_first_bad_record_raises_its_cause_when_none_is_tolerated(opened: Open) -> None:
    pipeline = opened({**_DEAD, "errors.tolerance": "none"})
    with pytest.raises(ToleranceExceeded) as raised:
        pipeline.records([read(b"1"), read(b"{")])
    assert isinstance(raised.value.__cause__, DataError)
    with pytest.raises(ToleranceExceeded):
        pipeline.refused(read(b"1"), DataError("x"))
    assert len(pipeline.taken_letters()) == 2


# --- outages ---


def test_a_registry_that_is_away_is_not_waited_for_without_end(opened: Open) -> None:
    avro = {"value.converter": _AVRO, "value.converter.schema.registry.url": "http://127.0.0.1:9"}
    pipeline = opened({**_DEAD, **avro, "value.converter.max.retries": "0"}, patience_seconds=0.05)
    with pytest.raises(RetriableError, match="still fails"):
        pipeline.records([read(b"\0\0\0\0\1x")])
    assert pipeline.taken_letters() == []
    assert pipeline.counters.total_retries == 1


def test_who_waits_for_a_registry_stops_when_the_pipeline_is_closed(opened: Open) -> None:
    avro = {"value.converter": _AVRO, "value.converter.schema.registry.url": "http://127.0.0.1:9"}
    pipeline = opened({**avro, "value.converter.max.retries": "0"})
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            pipeline.records([read(b"\0\0\0\0\1x")])
        except Exception as error:  # noqa: BLE001 - whatever it is
            raised.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    pipeline.close()
    waiting.join(60)
    assert [type(error).__name__ for error in raised] == ["Stopped"]


@pytest.mark.processes
def test_records_with_schemas_of_a_registry_are_read(opened: Open, registry: RegistryProcess, name: str) -> None:
    answer = httpx2.post(f"{registry.url}/subjects/{name}-value/versions", json={"schema": '"string"'}, timeout=30)
    framed = b"\0" + int(answer.json()["id"]).to_bytes(4, "big") + b"\x04hi"
    avro = {"value.converter": _AVRO, "value.converter.schema.registry.url": registry.url}
    pipeline = opened({**_DEAD, **avro}, patience_seconds=20)
    assert [record.value for record in pipeline.records([read(framed, topic=name), read(b"bad")])] == ["hi"]
    assert [context_of(letter)["class.name"] for letter in pipeline.taken_letters()] == [_AVRO]


# --- what is known and counted ---


def test_it_tells_which_converters_and_options_there_are(opened: Open) -> None:
    settings = {"key.converter": "AvroConverter", "key.converter.schema.registry.url": "http://r"}
    pipeline = opened({"key.converter": "", "value.converter": "JsonConverter"}, settings=settings)
    assert pipeline.key_converter == (_AVRO, {"schema.registry.url": "http://r"})
    assert pipeline.value_converter == (_JSON, {"schemas.enable": "false"})
    assert pipeline.header_converter == ("org.apache.kafka.connect.storage.SimpleHeaderConverter", {})
    assert (pipeline.has_transforms, pipeline.tolerates_errors) == (False, False)
    assert pipeline.redriven_topic == "connect-redrive-lake"


def test_counts_are_taken_once_and_put_together(opened: Open) -> None:
    pipeline = opened(_DEAD)
    pipeline.records([read(b"{")])
    first = pickle.loads(pickle.dumps(pipeline.taken_counters()))
    assert pipeline.taken_counters() == {}
    pipeline.records([read(b"{"), read(b"}")])
    second = pipeline.taken_counters()
    together = merged_counters([first, second])
    assert (together["total_records_skipped"], together["deadletterqueue_produce_requests"]) == (3, 3)
    assert together["last_error_timestamp"] == second.get("last_error_timestamp", first["last_error_timestamp"])


def test_no_thread_is_left_over(opened: Open) -> None:
    before = threading.active_count()
    pipeline = opened(_DEAD)
    pipeline.records([read(b"1"), read(b"{")])
    pipeline.close()
    assert threading.active_count() == before


@pytest.mark.parametrize("steps", ["", "{}", '{"task": 1}', "[]"])
def test_what_are_no_steps_is_refused(steps: str) -> None:
    with pytest.raises(ConfigError, match="not a valid pipeline description"):
        RemotePipeline.open(steps)


def test_a_transform_that_is_not_there_is_told_when_it_is_opened(opened: Open) -> None:
    with pytest.raises(ConfigError, match="NoSuchTransform"):
        opened({"transforms": "x", "transforms.x.type": "NoSuchTransform"})


def test_steps_can_be_made_without_a_worker() -> None:
    config = {"connector.class": "SparkSink", "topics": "orders", "value.converter": _TEXT}
    worker = {"key.converter": _JSON, "key.converter.schemas.enable": "false"}
    with RemotePipeline.open(steps_text("lake", config, worker=worker)) as pipeline:
        (record,) = pipeline.records([read(b"text", key=b"[1]")])
    assert (record.key, record.value) == ([1], "text")
