"""The daily tools against a running broker, as a user types them."""

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core_broker.service.clock import SystemClock
from tests.support.broker import BrokerProcess
from tests.support.command import Caudal
from tests.support.service import REPOSITORY


@pytest.fixture
def caudal(broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch) -> Caudal:
    monkeypatch.setenv("CAUDAL_BOOTSTRAP", broker.bootstrap)
    return Caudal(monkeypatch)


def _records(caudal: Caudal, *words: str) -> list[dict[str, Any]]:
    """Consume and read each line's JSON."""
    return [json.loads(line) for line in caudal("topic", "consume", *words, "--format", "json").stdout.splitlines()]


def test_topic_is_created_described_altered_and_deleted(caudal: Caudal, name: str) -> None:
    assert "created" in caudal("topic", "create", name, "-p", "2", "-c", "retention.ms=60000").stderr
    described = caudal.json("topic", "describe", name)
    assert (described["topic"], len(described["partitions"])) == (name, 2)
    assert described["configs"]["retention.ms"] == "60000"
    caudal("topic", "alter", name, "-p", "3", "-c", "cleanup.policy=compact", "--unset", "retention.ms")
    described = caudal.json("topic", "describe", name)
    assert len(described["partitions"]) == 3
    assert described["configs"] == {"cleanup.policy": "compact"}
    assert "deleted" in caudal("topic", "delete", name, "--yes").stderr
    assert name not in [topic["topic"] for topic in caudal.json("topic", "list")]


def test_creating_a_topic_twice_fails_unless_that_is_fine(caudal: Caudal, name: str) -> None:
    caudal("topic", "create", name)
    assert "--if-not-exists" in caudal("topic", "create", name, code=1).stderr
    caudal("topic", "create", name, "--if-not-exists")


def test_refused_config_is_reported_with_key_value_and_what_is_allowed(caudal: Caudal, name: str) -> None:
    error = caudal("topic", "create", name, "-c", "cleanup.policy=shred", code=1).stderr
    assert "cleanup.policy=shred: must be compact, delete" in error


def test_topic_that_is_not_there_is_reported_with_what_to_do_next(caudal: Caudal, name: str) -> None:
    for command in (["describe"], ["consume"], ["delete", "--yes"]):
        assert caudal("topic", command[0], name, *command[1:], code=1).stderr.startswith("✗")
    assert "caudal topic list" in caudal("topic", "describe", name, code=1).stderr


def test_records_make_the_round_trip_with_key_headers_partition_and_time(caudal: Caudal, name: str) -> None:
    caudal("topic", "create", name, "-p", "3")
    stamp = str(SystemClock().now_ms() - 1000)
    options = ["--key", "k", "-H", "a=1", "-H", "b", "--partition", "2", "--timestamp", stamp]
    assert "2 records" in caudal("topic", "produce", name, "one", "dois ✓", *options).stderr
    read = _records(caudal, name)
    assert [(record["value"], record["key"], record["partition"], record["offset"]) for record in read] == [
        ("one", "k", 2, 0),
        ("dois ✓", "k", 2, 1),
    ]
    assert read[0]["headers"] == [["a", "1"], ["b", None]]
    assert read[0]["timestamp"] == int(stamp)


def test_lines_come_from_stdin_or_a_file_with_keys(caudal: Caudal, name: str, tmp_path: Path) -> None:
    caudal("topic", "create", name)
    caudal("topic", "produce", name, "-K", ":", stdin="a:1\nb:2\nplain\n")
    file = tmp_path / "lines.txt"
    file.write_text("c:3\nd:4\n")
    assert "0:3–4" in caudal("topic", "produce", name, "-K", ":", "--file", str(file)).stderr
    assert [(record["key"], record["value"]) for record in _records(caudal, name)] == [
        ("a", "1"),
        ("b", "2"),
        (None, "plain"),
        ("c", "3"),
        ("d", "4"),
    ]


def test_json_lines_copy_a_topic_byte_for_byte(caudal: Caudal, name: str) -> None:
    caudal("topic", "create", name)
    caudal("topic", "create", f"{name}-copy")
    odd = json.dumps({"key": None, "value": {"base64": "/wAB"}, "headers": [["h", "x"]]})
    caudal("topic", "produce", name, "--json", stdin=odd + "\n")
    caudal("topic", "produce", name, "--null", "--key", "gone")
    caudal("topic", "produce", f"{name}-copy", "--json", stdin=caudal("topic", "consume", name, "-F", "json").stdout)
    original, copy = _records(caudal, name), _records(caudal, f"{name}-copy")
    assert [{**record, "topic": name} for record in copy] == original
    assert original[0]["value"] == {"base64": "/wAB"}
    assert original[1]["value"] is None


def test_reading_begins_at_the_given_position(caudal: Caudal, name: str) -> None:
    caudal("topic", "create", name)
    hour_ms = 3_600_000
    for number in range(5):
        hours_ago = SystemClock().now_ms() - (5 - number) * hour_ms
        caudal("topic", "produce", name, str(number), "--timestamp", str(hours_ago))

    def values(*options: str) -> str:
        return "".join(caudal("topic", "consume", name, "--format", "value", *options).stdout.split())

    assert values() == "01234"
    assert values("--from", "3") == "34"
    assert values("--from", "-2") == "34"
    assert values("--from", "99") == ""
    assert values("--count", "2") == "01"
    assert values("--from", "150m") == "34"
    assert values("--from", "1d") == "01234"
    assert values("--from", "10m") == ""


def test_following_waits_for_what_comes(caudal: Caudal, broker: BrokerProcess, name: str) -> None:
    caudal("topic", "create", name)
    command = [sys.executable, "-m", "deploy.cli", "topic", "consume", name, "-f", "-n", "2", "-F", "value"]
    with subprocess.Popen(
        [*command, "-b", broker.bootstrap], stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
    ) as following:
        caudal("topic", "produce", name, "first", "second")
        output, _ = following.communicate(timeout=30)
    assert output.split() == ["first", "second"]


def test_topic_ids_are_written_as_in_the_files_of_kafka(caudal: Caudal, broker: BrokerProcess, name: str) -> None:
    names = [f"{name}-{number}" for number in range(12)]  # one id in two has none of the letters that differ
    for topic in names:
        caudal("topic", "create", topic)
        metadata = (broker.data / f"{topic}-0" / "partition.metadata").read_text()
        assert f"topic_id: {caudal.json('topic', 'describe', topic)['id']}" in metadata.splitlines()


def test_on_a_terminal_progress_is_shown_and_the_records_still_go_to_the_file(
    caudal: Caudal, broker: BrokerProcess, name: str, tmp_path: Path
) -> None:
    caudal("topic", "produce", name, stdin="".join(f"{number}\n" for number in range(5000)))
    try:
        ours, terminal = pty.openpty()
    except OSError as error:
        pytest.skip(f"this machine has no pseudo-terminals: {error}")
    words = [sys.executable, "-m", "deploy.cli", "topic", "consume", name, "--format", "value"]
    environment = {**os.environ, "CAUDAL_BOOTSTRAP": broker.bootstrap, "TERM": "xterm"}
    with (tmp_path / "records").open("wb") as file, os.fdopen(ours, "rb", buffering=0) as screen:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=file, stderr=terminal, cwd=REPOSITORY, env=environment
        )
        os.close(terminal)
        shown = b"".join(iter(lambda: _read(screen), b""))
        assert process.wait(60) == 0
    assert sorted((tmp_path / "records").read_text().split(), key=int) == [str(number) for number in range(5000)]
    assert b"reading" in shown


def _read(screen: io.RawIOBase | io.FileIO) -> bytes:
    """What a terminal shows next; nothing once the other end is closed."""
    try:
        return screen.read(65536) or b""
    except OSError:
        return b""


def test_delivered_places_can_be_had_as_json_lines(caudal: Caudal, name: str) -> None:
    caudal("topic", "create", name)
    lines = caudal("topic", "produce", name, "a", "b", "-o", "json").stdout.splitlines()
    assert [json.loads(line) for line in lines] == [{"topic": name, "partition": 0, "offset": n} for n in range(2)]


def test_group_is_listed_described_moved_and_deleted(caudal: Caudal, name: str) -> None:
    caudal("topic", "create", name)
    caudal("topic", "produce", name, "a", "b", "c", "d")
    assert caudal("topic", "consume", name, "--group", name, "-n", "3", "-F", "value").stdout.split() == ["a", "b", "c"]
    assert name in [group["group"] for group in caudal.json("group", "list")]
    described = caudal.json("group", "describe", name)
    assert (described["state"], described["lag"]) == ("empty", 1)
    assert described["offsets"] == [{"topic": name, "partition": 0, "committed": 3, "end": 4}]

    planned = caudal.json("group", "seek", name, "--topic", name, "--to", "beginning", "--dry-run")
    assert planned == [{"topic": name, "partition": 0, "before": 3, "after": 0}]
    assert caudal.json("group", "describe", name)["lag"] == 1
    caudal("group", "seek", name, "--topic", name, "--to", "-2")
    assert caudal("topic", "consume", name, "--group", name, "-F", "value").stdout.split() == ["c", "d"]

    caudal("group", "delete", name, "--yes")
    assert name not in [group["group"] for group in caudal.json("group", "list")]
    assert "does not exist" in caudal("group", "describe", name, code=1).stderr


def test_tables_are_for_people(caudal: Caudal, name: str) -> None:
    caudal("topic", "create", name)
    caudal("topic", "produce", name, "a")
    caudal("topic", "consume", name, "--group", name, "-n", "1")
    assert name in caudal("topic", "list").stdout
    assert "End offset" in caudal("topic", "describe", name).stdout
    assert name in caudal("group", "list").stdout
    assert "Committed" in caudal("group", "describe", name).stdout
    assert "controller" in caudal("cluster").stdout


def test_the_cluster_is_described_with_its_broker(caudal: Caudal, broker: BrokerProcess) -> None:
    cluster = caudal.json("cluster")
    assert [item["port"] for item in cluster["brokers"]] == [broker.port]
    assert cluster["cluster_id"]
