"""Kafka Connect itself beside ours: the same requests, the same records, and one takes over from the other.

It needs Java and Kafka Connect's jars: `make test-java` fetches them and runs this module.
"""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess
from tests.support.real_connect import JARS, RealConnect

pytestmark = [
    pytest.mark.skipif(JARS is None, reason="CAUDAL_KAFKA_CONNECT names no folder of jars: see `make test-java`"),
    pytest.mark.skipif(shutil.which("java") is None, reason="the command java is not installed"),
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("java"),
]

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
TRANSFORMS = "org.apache.kafka.connect.transforms."
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
READ = {"connector.class": SOURCE, "topic": "t", "file": "/nowhere"}
WRITE = {"connector.class": SINK, "topics": "t", "file": "/nowhere"}
DIFFERS = frozenset({"worker_id", "version", "commit", "kafka_cluster_id", "trace"})

Workers = tuple[RealConnect, ConnectProcess]


@pytest.fixture(scope="module")
def real(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealConnect]:
    """A worker of Kafka Connect, on our broker."""
    with RealConnect(tmp_path_factory.mktemp("real"), bootstrap=broker.bootstrap, group="real") as worker:
        yield worker


@pytest.fixture
def workers(real: RealConnect, connect: ConnectProcess) -> Workers:
    """Kafka Connect's worker and ours."""
    return real, connect


def comparable(value: Any) -> Any:
    """An answer without what differs by nature."""
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items() if key not in DIFFERS}
    return [comparable(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/", None),
        ("GET", "/health", None),
        ("GET", "/nothing", None),
        ("DELETE", "/connectors", None),
        ("GET", "/connectors/none", None),
        ("GET", "/connectors/none/config", None),
        ("GET", "/connectors/none/status", None),
        ("GET", "/connectors/none/tasks", None),
        ("GET", "/connectors/none/tasks/0/status", None),
        ("GET", "/connectors/none/offsets", None),
        ("GET", "/connectors/none/topics", None),
        ("DELETE", "/connectors/none", None),
        ("DELETE", "/connectors/none/offsets", None),
        ("PUT", "/connectors/none/pause", None),
        ("PUT", "/connectors/none/resume", None),
        ("PUT", "/connectors/none/stop", None),
        ("POST", "/connectors/none/restart", None),
        ("POST", "/connectors/none/restart?includeTasks=true", None),
        ("POST", "/connectors/none/tasks/0/restart", None),
        ("PATCH", "/connectors/none/config", {"a": "b"}),
        ("PATCH", "/connectors/none/offsets", {"offsets": []}),
        ("GET", "/connector-plugins/none/config", None),
        ("POST", "/connectors", {"name": "x", "config": {"connector.class": SOURCE}}),
        ("POST", "/connectors", {"name": "x", "config": {**READ, "name": "y"}}),
        ("POST", "/connectors", {"name": "x", "config": {**READ, "tasks.max": "0"}}),
        ("POST", "/connectors", {"name": "x", "config": {**READ, "tasks.max": "many"}}),
        ("POST", "/connectors", {"name": "x", "config": {**READ, "errors.tolerance": "some"}}),
        ("POST", "/connectors", {"name": "x", "config": {**READ, "key.converter": "", "none": "y"}}),
        ("POST", "/connectors", {"name": "x", "config": {**WRITE, "topics": ""}}),
        ("POST", "/connectors", {"name": "x", "config": {**WRITE, "topics.regex": "t.*"}}),
        ("POST", "/connectors", {"name": "x", "config": {**WRITE, "errors.deadletterqueue.topic.name": "t"}}),
        ("PUT", "/connector-plugins/FileStreamSink/config/validate", READ),
    ],
    ids=str,
)
def test_requests_are_answered_alike(workers: Workers, method: str, path: str, body: object) -> None:
    answers = [worker.ask(method, path, body) for worker in workers]
    theirs, ours = ((answer.status_code, comparable(answer.json())) for answer in answers)
    if "could not be found" in str(theirs):  # we tell which ones there are, too
        ours = (ours[0], {**ours[1], "message": ours[1]["message"].split(" Failed to find")[0]})
        theirs = (theirs[0], {**theirs[1], "message": theirs[1]["message"].split("\nYou can")[0]})
    assert ours == theirs


@pytest.mark.parametrize("config", [READ, WRITE], ids=["source", "sink"])
def test_forms_show_the_same_keys(workers: Workers, config: Mapping[str, str]) -> None:
    path = f"/connector-plugins/{config['connector.class']}/config/validate"
    theirs, ours = ({key["value"]["name"]: key for key in w.json("PUT", path, config)["configs"]} for w in workers)
    told = ("type", "importance", "group", "width", "display_name", "required", "dependents")
    for name in theirs.keys() - {key for key in theirs if key.endswith("plugin.version")}:
        shown = [{key: keys[name]["definition"][key] for key in told} for keys in (ours, theirs)]
        assert shown[0] == shown[1], name


def chain(*stages: tuple[str, dict[str, str]]) -> dict[str, str]:
    """The configuration of transforms, one behind the other."""
    config = {"transforms": ",".join(f"t{number}" for number in range(len(stages)))}
    for number, (name, options) in enumerate(stages):
        config[f"transforms.t{number}.type"] = f"{TRANSFORMS}{name}"
        config |= {f"transforms.t{number}.{key}": value for key, value in options.items()}
    return config


HOIST = ("HoistField$Value", {"field": "line"})


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"value.converter": STRINGS},
        {"value.converter": JSON, "value.converter.schemas.enable": "false", **chain(HOIST)},
        chain(HOIST, ("ValueToKey", {"fields": "line"}), ("SetSchemaMetadata$Value", {"schema.name": "N"})),
        chain(HOIST, ("InsertField$Value", {"topic.field": "t!", "static.field": "s", "static.value": "v"})),
        chain(
            HOIST,
            ("HeaderFrom$Value", {"fields": "line", "headers": "l", "operation": "copy"}),
            ("InsertHeader", {"header": "n", "value.literal": "[1, 2]"}),
        ),
    ],
    ids=["json", "text", "plain json", "keys", "fields", "headers"],
)
def test_the_same_records_are_written(
    workers: Workers, broker: BrokerProcess, name: str, tmp_path: Path, config: Mapping[str, str]
) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text('one\n\nthrée "3"\n')
    found = []
    for number, worker in enumerate(workers):
        connector = f"{name}-{number}"
        create_topic(broker, connector)
        own = {key: value.replace("@", connector) for key, value in config.items()}
        worker.create(connector, {"connector.class": SOURCE, "file": str(lines), "topic": connector, **own})
        records = eventually(lambda topic=connector: read(broker, topic), lambda them: len(them) == 3)  # type: ignore[misc]
        found.append([tuple(str(part).replace(connector, name) for part in record) for record in records])
        worker.delete(connector)
    assert found[1] == found[0]


def test_dead_letters_tell_the_same(workers: Workers, broker: BrokerProcess, name: str, tmp_path: Path) -> None:
    found = []
    for number, worker in enumerate(workers):
        connector, dead = f"{name}-{number}", f"{name}-{number}-dead"
        create_topic(broker, connector)
        create_topic(broker, dead)
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce(connector, key=b"k", value=b"{bad", headers=[("own", b"1")], partition=0)
        producer.flush(30)
        config = {
            "connector.class": SINK,
            "topics": connector,
            "file": str(tmp_path / connector),
            "key.converter": STRINGS,
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": dead,
            "errors.deadletterqueue.context.headers.enable": "true",
        }
        worker.create(connector, config)
        ((key, value, headers),) = eventually(lambda topic=dead: read(broker, topic))  # type: ignore[misc]
        texts = [(header, (text or b"").decode().replace(connector, name)) for header, text in headers]
        found.append((key, value, [pair for pair in texts if not pair[0].endswith("stacktrace")]))
        worker.delete(connector)
    theirs, ours = found
    assert ours[:2] == theirs[:2]
    for (our_name, our_text), (their_name, their_text) in zip(ours[2], theirs[2], strict=True):
        assert our_name == their_name
        assert our_text.startswith(their_text), our_name  # we tell more of what is wrong with the JSON


@pytest.mark.parametrize("order", [(RealConnect, ConnectProcess), (ConnectProcess, RealConnect)], ids=["to us", "back"])
def test_connectors_states_and_offsets_are_taken_over(
    broker: BrokerProcess, name: str, tmp_path: Path, order: tuple[type[ConnectProcess], type[ConnectProcess]]
) -> None:
    lines, out = tmp_path / "lines.txt", tmp_path / "out.txt"
    lines.write_text("one\ntwo\n")
    create_topic(broker, name)
    text = {"value.converter": STRINGS}
    source, sink, resting = (f"{name}-{part}" for part in ("source", "sink", "resting"))
    first, second = (kind(tmp_path / kind.__name__, bootstrap=broker.bootstrap, group=name) for kind in order)
    with first:
        first.create(source, {"connector.class": SOURCE, "file": str(lines), "topic": name, **text})
        first.create(sink, {"connector.class": SINK, "file": str(out), "topics": name, **text})
        first.create(resting, {"connector.class": SOURCE, "file": str(lines), "topic": f"{name}-2", **text})
        for connector, offset in ((source, 8), (sink, 2), (resting, 8)):
            eventually(lambda: offsets(first, connector), lambda found: found == [offset])  # noqa: B023 - used at once
        first.json("PUT", f"/connectors/{resting}/pause")
        first.wait_for(resting, "PAUSED", tasks=1)
    with second:
        assert sorted(second.json("GET", "/connectors")) == [resting, sink, source]
        second.wait_for(source, "RUNNING", tasks=1)
        second.wait_for(resting, "PAUSED", tasks=1)
        with lines.open("a") as file:
            file.write("three\n")
        eventually(out.read_text, lambda written: written == "one\ntwo\nthree\n")
        assert offsets(second, resting) == [8]


def offsets(worker: ConnectProcess, connector: str) -> list[int]:
    """How far a connector is."""
    told = worker.json("GET", f"/connectors/{connector}/offsets")["offsets"]
    return [value for entry in told for value in entry["offset"].values()]


def read(broker: BrokerProcess, topic: str) -> list[tuple[bytes | None, bytes | None, Any]]:
    """Key, value and headers of all records of a topic with one partition."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic, "enable.partition.eof": True})
    found = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while (message := consumer.poll(60)) is not None and not message.error():
            found.append((message.key(), message.value(), message.headers() or []))
    finally:
        consumer.close()
    return found
