"""Dead letters through the REST API: looked at, chosen, and sent through the pipeline again, each once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess

_TEXT = "org.apache.kafka.connect.storage.StringConverter"
_JSON = "org.apache.kafka.connect.json.JsonConverter"


def config(name: str, out: Path) -> dict[str, str]:
    return {
        "connector.class": "FileStreamSink",
        "topics": f"{name}-in",
        "file": str(out),
        "key.converter": _TEXT,
        "value.converter": _JSON,
        "value.converter.schemas.enable": "false",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{name}-dead",
        "errors.deadletterqueue.context.headers.enable": "true",
    }


def send(broker: BrokerProcess, topic: str, values: Sequence[str]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce(topic, key=b"k", value=value, headers=[("own", b"1")])
    assert producer.flush(60) == 0


def lines(out: Path) -> list[str]:
    return out.read_text().splitlines() if out.exists() else []


def letters(connect: ConnectProcess, name: str, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = connect.json("GET", f"/connectors/{name}/dlq{query}")["records"]
    return found


def redrive(connect: ConnectProcess, name: str, **body: object) -> Any:
    return connect.json("POST", f"/connectors/{name}/dlq/redrive", {"selection": {"all": True}, **body})


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.txt"


@pytest.fixture
def failed(connect: ConnectProcess, broker: BrokerProcess, name: str, out: Path) -> str:
    """A sink with three dead letters, whose configuration is then repaired."""
    create_topic(broker, f"{name}-in")
    connect.create(name, config(name, out))
    send(broker, f"{name}-in", ["1", "not json", "{", "2", "also not"])
    eventually(lambda: lines(out), lambda found: found == ["1", "2"])
    eventually(lambda: letters(connect, name), lambda found: len(found) == 3)
    connect.json("PUT", f"/connectors/{name}/config", {**config(name, out), "value.converter": _TEXT})
    connect.wait_for(name, "RUNNING")
    return name


def test_dead_letters_tell_why_they_failed(connect: ConnectProcess, failed: str) -> None:
    found = letters(connect, failed)
    assert [letter["value"] for letter in found] == ["not json", "{", "also not"]
    first = found[0]
    assert (first["partition"], first["offset"], first["key"], first["redriven"]) == (0, 0, "k", False)
    assert first["headers"] == [["own", "1"]]
    error = first["error"]
    assert (error["stage"], error["class"]) == ("VALUE_CONVERTER", _JSON)
    assert error["exception"] == "org.apache.kafka.connect.errors.DataException"
    assert (error["topic"], error["partition"], error["offset"]) == (f"{failed}-in", 0, 1)
    assert error["message"]
    assert "Traceback" in error["stacktrace"]


@pytest.mark.parametrize(
    "query, count",
    [
        ("?limit=2", 2),
        ("?partition=0&offset=1", 2),
        ("?stage=VALUE_CONVERTER", 3),
        ("?stage=TASK_PUT", 0),
        ("?exception=DataException", 3),
        ("?exception=KeyError", 0),
    ],
)
def test_dead_letters_can_be_chosen(connect: ConnectProcess, failed: str, query: str, count: int) -> None:
    assert len(letters(connect, failed, query)) == count


def test_redriven_letters_arrive_once_however_often_it_is_asked_for(
    connect: ConnectProcess, failed: str, out: Path
) -> None:
    answer = redrive(connect, failed)
    assert (answer["redriven"], answer["skipped"]) == (3, 0)
    eventually(lambda: lines(out), lambda found: found == ["1", "2", "not json", "{", "also not"])
    again = redrive(connect, failed)
    assert (again["redriven"], again["skipped"]) == (0, 3)
    assert all(letter["redriven"] for letter in letters(connect, failed))
    assert len(lines(out)) == 5


def test_connectors_that_share_a_topic_of_dead_letters_get_their_own_alone(
    connect: ConnectProcess, broker: BrokerProcess, failed: str, tmp_path: Path
) -> None:
    other, out = f"{failed}-other", tmp_path / "other.txt"
    create_topic(broker, f"{other}-in")
    connect.create(other, {**config(other, out), "errors.deadletterqueue.topic.name": f"{failed}-dead"})
    send(broker, f"{other}-in", ["theirs", "1"])
    found = eventually(lambda: letters(connect, other))
    assert [letter["value"] for letter in found] == ["theirs"]
    assert len(letters(connect, failed)) == 3
    assert redrive(connect, failed, dry_run=True)["records"] == [{"partition": 0, "offset": n} for n in range(3)]


def test_letters_in_a_topic_that_was_made_anew_were_not_redriven(
    connect: ConnectProcess, broker: BrokerProcess, failed: str, out: Path
) -> None:
    assert redrive(connect, failed)["redriven"] == 3
    eventually(lambda: len(lines(out)), lambda count: count == 5)
    admin_client(broker).delete_topics([f"{failed}-dead"])[f"{failed}-dead"].result(30)
    connect.json("PUT", f"/connectors/{failed}/config", config(failed, out))

    def new_letters() -> list[dict[str, Any]]:
        send(broker, f"{failed}-in", ["bad again"])  # The task that takes whatever comes may still be there.
        return letters(connect, failed)

    found = eventually(new_letters, pause_s=0.5, timeout_s=60)
    assert (found[0]["offset"], found[0]["redriven"]) == (0, False)


def test_a_connector_whose_name_no_topic_may_have_gets_its_letters_again(
    connect: ConnectProcess, broker: BrokerProcess, name: str, out: Path
) -> None:
    odd, path = f"{name}/é %", f"{name}%2F%C3%A9%20%25"
    create_topic(broker, f"{name}-in")
    connect.create(odd, config(name, out))
    send(broker, f"{name}-in", ["not json"])
    eventually(lambda: letters(connect, path))
    connect.json("PUT", f"/connectors/{path}/config", {**config(name, out), "value.converter": _TEXT})
    assert redrive(connect, path)["redriven"] == 1
    eventually(lambda: lines(out), lambda found: found == ["not json"], timeout_s=60)


def test_single_letters_can_be_redriven(connect: ConnectProcess, failed: str, out: Path) -> None:
    selection = {"offsets": [{"partition": 0, "offset": 1}]}
    assert redrive(connect, failed, selection=selection)["redriven"] == 1
    eventually(lambda: lines(out), lambda found: found == ["1", "2", "{"])
    assert [letter["redriven"] for letter in letters(connect, failed)] == [False, True, False]


def test_a_dry_run_only_tells(connect: ConnectProcess, failed: str, out: Path) -> None:
    answer = redrive(connect, failed, dry_run=True)
    assert (answer["redriven"], len(answer["records"])) == (0, 3)
    assert redrive(connect, failed, max_records=1)["redriven"] == 1
    eventually(lambda: lines(out), lambda found: found == ["1", "2", "not json"])


def test_a_letter_that_fails_again_is_a_dead_letter_of_its_first_place(
    connect: ConnectProcess, broker: BrokerProcess, name: str, out: Path
) -> None:
    create_topic(broker, f"{name}-in")
    connect.create(name, config(name, out))
    send(broker, f"{name}-in", ["not json"])
    eventually(lambda: letters(connect, name), lambda found: len(found) == 1)
    redrive(connect, name)
    second = eventually(lambda: letters(connect, name), lambda found: len(found) == 2)[1]
    assert (second["error"]["topic"], second["error"]["offset"]) == (f"{name}-in", 0)
    assert (second["redrive_count"], second["redriven"]) == (1, False)


def test_a_connector_without_dead_letters_says_how_to_have_them(
    connect: ConnectProcess, broker: BrokerProcess, name: str, out: Path
) -> None:
    create_topic(broker, f"{name}-in")
    plain = {key: text for key, text in config(name, out).items() if not key.startswith("errors.deadletter")}
    connect.create(name, plain)
    answer = connect.ask("GET", f"/connectors/{name}/dlq")
    assert answer.status_code == 400
    assert "errors.deadletterqueue.topic.name" in answer.json()["message"]
    assert connect.ask("GET", "/connectors/nobody/dlq").status_code == 404


def test_dead_letters_of_a_source_go_through_its_transforms_and_converters_again(
    connect: ConnectProcess, broker: BrokerProcess, name: str, tmp_path: Path
) -> None:
    create_topic(broker, f"{name}-out")
    given = tmp_path / "in.txt"
    given.write_text("1\nx\n3\n")
    failing = {
        "connector.class": "FileStreamSource",
        "file": str(given),
        "topic": f"{name}-out",
        "key.converter": _TEXT,
        "value.converter": _TEXT,
        "transforms": "number",
        "transforms.number.type": "org.apache.kafka.connect.transforms.Cast$Value",
        "transforms.number.spec": "int32",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{name}-dead",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    connect.create(name, failing)
    (letter,) = eventually(lambda: letters(connect, name), lambda found: len(found) == 1)
    assert letter["error"]["stage"] == "TRANSFORMATION"
    connect.json("PATCH", f"/connectors/{name}/config", {"transforms": None})
    answer = redrive(connect, name)
    assert answer["redriven"] == 1, answer
    sink = {**config(f"{name}-sink", tmp_path / "out.txt"), "topics": f"{name}-out", "value.converter": _TEXT}
    connect.create(f"{name}-sink", sink)
    eventually(lambda: sorted(lines(tmp_path / "out.txt")), lambda found: found == ["1", "3", "x"])
    assert redrive(connect, name)["redriven"] == 0
