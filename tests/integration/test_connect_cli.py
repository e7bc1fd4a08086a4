"""The tools for Connect against a running worker, as a user types them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.admin import eventually
from tests.support.broker import BrokerProcess
from tests.support.command import Caudal
from tests.support.connect import ConnectProcess

SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
STRINGS = "org.apache.kafka.connect.storage.StringConverter"


@pytest.fixture
def caudal(connect: ConnectProcess, broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch) -> Caudal:
    monkeypatch.setenv("CAUDAL_CONNECT", connect.url)
    monkeypatch.setenv("CAUDAL_BOOTSTRAP", broker.bootstrap)
    monkeypatch.setenv("NO_COLOR", "1")
    return Caudal(monkeypatch)


class Files:
    """A sink and a source of one test, and the files on their other sides."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self.lines = folder / "lines.txt"

    def sink(self, **changes: str) -> dict[str, str]:
        own = {"connector.class": SINK, "topics": self.name, "file": str(self.lines), "value.converter": STRINGS}
        return {**own, **{key.replace("_", "."): value for key, value in changes.items()}}

    def source(self) -> dict[str, str]:
        return {"connector.class": SOURCE, "topic": self.name, "file": str(self.lines), "value.converter": STRINGS}

    def write(self, config: dict[str, str]) -> str:
        path = self.folder / "connector.json"
        path.write_text(json.dumps({"name": self.name, "config": config}))
        return str(path)


@pytest.fixture
def files(tmp_path: Path, name: str, connect: ConnectProcess) -> Iterator[Files]:
    yield Files(tmp_path, name)
    connect.ask("DELETE", f"/connectors/{name}")


# --- create, list, show, delete --------------------------------------------------------------------------------------


def test_a_connector_is_created_listed_shown_and_deleted(caudal: Caudal, files: Files) -> None:
    files.lines.write_text("one\n")
    told = caudal("connector", "create", files.write(files.source()), "--wait").stderr
    assert f"connector {files.name} created" in told
    assert f"1 task of {files.name} running" in told
    listed = {item["name"]: item for item in caudal.json("connector", "list")}[files.name]
    assert (listed["type"], listed["state"], listed["tasks"]) == ("source", "RUNNING", [{"id": 0, "state": "RUNNING"}])
    table = caudal("connector", "list").stdout
    assert "FileStreamSourceConnector" in table
    assert "1 RUNNING" in table
    assert caudal.json("connector", "show", files.name)["config"] == {"name": files.name, **files.source()}
    assert str(files.lines) in caudal("connector", "show", files.name).stdout
    assert caudal("topic", "consume", files.name, "--count", "1", "--format", "value").stdout.strip() == "one"
    eventually(lambda: caudal.json("connector", "topics", files.name) == [files.name])
    assert "deleted" in caudal("connector", "delete", files.name, "--yes").stderr
    assert files.name not in [item["name"] for item in caudal.json("connector", "list")]


def test_what_show_tells_can_be_created_again_from_a_pipe(caudal: Caudal, files: Files) -> None:
    caudal("connector", "create", files.write(files.sink()))
    shown = caudal("connector", "show", files.name, "-o", "json").stdout
    assert "already exists" in caudal("connector", "create", "-", stdin=shown, code=1).stderr
    caudal("connector", "delete", files.name, "--yes")
    assert caudal.json("connector", "create", "-", stdin=shown)["config"] == json.loads(shown)["config"]


def test_an_existing_connector_is_changed_only_when_asked(caudal: Caudal, files: Files) -> None:
    caudal("connector", "create", files.write(files.sink()))
    changed = files.write(files.sink(errors_tolerance="all"))
    assert "--replace" in caudal("connector", "create", changed, code=1).stderr
    assert f"connector {files.name} changed" in caudal("connector", "create", changed, "--replace").stderr
    assert caudal.json("connector", "show", files.name)["config"]["errors.tolerance"] == "all"


def test_waiting_for_a_connector_that_fails_tells_why(caudal: Caudal, files: Files) -> None:
    caudal("topic", "create", files.name)
    config = files.write(files.sink(file="/no/such/folder/file"))
    told = caudal("connector", "create", config, "--wait", code=1).stderr
    assert f"{files.name} task 0 has failed: " in told
    assert "/no/such/folder/file" in told
    assert f"caudal connector status {files.name} --trace" in told
    assert "Traceback" not in told


def test_a_wrong_configuration_is_refused_with_every_error(caudal: Caudal, files: Files) -> None:
    told = caudal("connector", "create", files.write(files.sink(tasks_max="none", topics_regex="x")), code=1).stderr
    assert "tasks.max" in told
    assert "topics.regex" in told


def test_deleting_goes_on_after_one_that_is_not_there(caudal: Caudal, files: Files) -> None:
    caudal("connector", "create", files.write(files.sink()))
    told = caudal("connector", "delete", f"{files.name}-not", files.name, "--yes", code=1).stderr
    assert f"{files.name}-not was not deleted" in told
    assert f"connector {files.name} deleted" in told


# --- validate, plugins -----------------------------------------------------------------------------------------------


def test_validate_tells_errors_by_key_and_ends_with_1(caudal: Caudal, files: Files) -> None:
    wrong = files.write(files.sink(tasks_max="none", errors_tolerance="most", fil="x"))
    found = caudal.json("connector", "validate", wrong, code=1)
    assert {item["key"]: item["value"] for item in found["errors"]} == {"tasks.max": "none", "errors.tolerance": "most"}
    printed = caudal("connector", "validate", wrong, code=1)
    assert "errors.tolerance" in printed.stdout
    assert "cannot be created: 3 errors" in printed.stderr  # tasks.max is no number, and missing
    assert "! fil: " in printed.stderr
    assert "is valid" in caudal("connector", "validate", files.write(files.sink())).stderr


def test_plugins_are_listed_and_their_keys_explained(caudal: Caudal) -> None:
    assert SINK in [item["class"] for item in caudal.json("connector", "plugins")]
    everything = {item["type"] for item in caudal.json("connector", "plugins", "--all")}
    assert {"source", "sink", "converter", "transformation", "predicate"} <= everything
    keys = {item["name"]: item for item in caudal.json("connector", "plugins", "FileStreamSource")}
    assert keys["topic"]["required"] is True
    assert "required" in caudal("connector", "plugins", "FileStreamSource").stdout
    assert "caudal connector plugins" in caudal("connector", "plugins", "Nobody", code=1).stderr


# --- states ----------------------------------------------------------------------------------------------------------


def test_a_connector_is_paused_resumed_and_stopped(caudal: Caudal, files: Files, connect: ConnectProcess) -> None:
    caudal("connector", "create", files.write(files.sink()))
    connect.wait_for(files.name, "RUNNING", tasks=1)
    for word, state in (("pause", "PAUSED"), ("resume", "RUNNING")):
        caudal("connector", word, files.name)
        connect.wait_for(files.name, state, tasks=1)
        assert state in caudal("connector", "status", files.name).stdout
    caudal("connector", "stop", files.name)
    eventually(lambda: caudal.json("connector", "status", files.name)["connector"]["state"] == "STOPPED")
    assert caudal.json("connector", "status", files.name)["tasks"] == []


def test_status_tells_why_a_task_failed_and_restart_mends_it(
    caudal: Caudal, files: Files, connect: ConnectProcess
) -> None:
    folder = files.folder / "later"
    caudal("topic", "produce", files.name, "one")
    caudal("connector", "create", files.write(files.sink(file=str(folder / "lines.txt"))))
    connect.wait_for(files.name, "FAILED")
    short = caudal("connector", "status", files.name).stdout
    assert "Couldn't find or create file" in short
    assert "Traceback" not in short
    assert "Traceback (most recent call last)" in caudal("connector", "status", files.name, "--trace").stdout
    folder.mkdir()
    assert "restarts: task 0" in caudal("connector", "restart", files.name, "--tasks", "--only-failed").stderr
    connect.wait_for(files.name, "RUNNING", tasks=1)
    assert "restarts" in caudal("connector", "restart", files.name, "--task", "0").stderr
    assert "--tasks" in caudal("connector", "restart", files.name).stderr
    eventually(lambda: (folder / "lines.txt").exists() and (folder / "lines.txt").read_text() == "one\n")


@pytest.mark.parametrize("words", [["status"], ["show"], ["pause"], ["restart"], ["topics"], ["offsets", "show"]])
def test_a_connector_that_is_not_there_is_told_with_what_to_do_next(caudal: Caudal, words: list[str]) -> None:
    told = caudal("connector", *words, "nobody-knows", code=1).stderr
    assert "nobody-knows" in told
    assert "caudal connector list" in told
    assert "Traceback" not in told


# --- offsets ---------------------------------------------------------------------------------------------------------


def test_offsets_of_a_sink_are_shown_set_and_reset(caudal: Caudal, files: Files, connect: ConnectProcess) -> None:
    for text in ("one", "two", "three"):
        caudal("topic", "produce", files.name, text)
    caudal("connector", "create", files.write(files.sink()))

    def offsets() -> list[Any]:
        return [
            item["offset"]["kafka_offset"]
            for item in caudal.json("connector", "offsets", "show", files.name)["offsets"]
        ]

    eventually(lambda: offsets() == [3])
    assert f"kafka_topic={files.name}" in caudal("connector", "offsets", "show", files.name).stdout
    refused = caudal("connector", "offsets", "set", files.name, "--at", f"{files.name}:0=2", code=1).stderr
    assert "caudal connector stop" in refused
    caudal("connector", "stop", files.name)
    eventually(lambda: connect.status(files.name)["connector"]["state"] == "STOPPED")
    caudal("connector", "offsets", "set", files.name, "--at", f"{files.name}:0=2")
    assert offsets() == [2]
    caudal("connector", "resume", files.name)
    eventually(lambda: files.lines.read_text().splitlines() == ["one", "two", "three", "three"])
    caudal("connector", "stop", files.name)
    eventually(lambda: connect.status(files.name)["connector"]["state"] == "STOPPED")
    caudal("connector", "offsets", "reset", files.name, "--yes")
    assert offsets() == []
    assert "has no offsets yet" in caudal("connector", "offsets", "show", files.name).stderr


def test_offsets_of_a_source_that_were_shown_can_be_set_again(
    caudal: Caudal, files: Files, connect: ConnectProcess
) -> None:
    files.lines.write_text("one\n")
    caudal("connector", "create", files.write(files.source()))
    eventually(lambda: caudal.json("connector", "offsets", "show", files.name)["offsets"] != [])
    shown = caudal("connector", "offsets", "show", files.name, "-o", "json").stdout
    caudal("connector", "stop", files.name)
    eventually(lambda: connect.status(files.name)["connector"]["state"] == "STOPPED")
    caudal("connector", "offsets", "reset", files.name, "--yes")
    assert "altered" in caudal("connector", "offsets", "set", files.name, "-", stdin=shown).stderr
    assert caudal.json("connector", "offsets", "show", files.name) == json.loads(shown)


# --- dead letters ----------------------------------------------------------------------------------------------------


def test_dead_letters_are_listed_shown_and_sent_again_once(
    caudal: Caudal, files: Files, connect: ConnectProcess
) -> None:
    for text in ('{"id": 1}', "nonsense", '{"id": 2}', "more of it"):
        caudal("topic", "produce", files.name, text)
    tolerant = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{files.name}-dead",
        "errors.deadletterqueue.context.headers.enable": "true",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    caudal("connector", "create", files.write({**files.sink(), **tolerant}))
    eventually(lambda: len(caudal.json("dlq", "list", files.name)["records"]) == 2)
    table = caudal("dlq", "list", files.name, "--stage", "VALUE_CONVERTER").stdout
    for words in ("0-0", "0-1", "VALUE_CONVERTER", "DataException", "no"):
        assert words in table
    assert caudal.json("dlq", "list", files.name, "--stage", "TASK_PUT")["records"] == []
    shown = caudal("dlq", "show", files.name, "0-1").stdout
    for words in ("Dead letter 0-1", "more of it", f"{files.name} partition 0 offset 3", "Traceback"):
        assert words in shown
    assert "there is no dead letter 0-9" in caudal("dlq", "show", files.name, "0-9", code=1).stderr

    assert caudal("dlq", "redrive", files.name, "--all", "--dry-run").stdout.split() == ["0-0", "0-1"]
    mended = {**files.sink(), **tolerant, "value.converter": STRINGS}
    caudal("connector", "create", files.write(mended), "--replace")
    told = caudal("dlq", "redrive", files.name, "0-0", stdin="y\n").stderr
    assert "Send 1 dead letter through" in told
    assert "1 dead letter of" in told
    eventually(lambda: "nonsense" in files.lines.read_text().splitlines())
    assert [item["redriven"] for item in caudal.json("dlq", "list", files.name)["records"]] == [True, False]
    again = caudal.json("dlq", "redrive", files.name, "--exception", "DataException", "--yes")
    assert (again["redriven"], again["skipped"], again["failed"]) == (1, 1, [])
    eventually(lambda: "more of it" in files.lines.read_text().splitlines())
    assert "no dead letters to send" in caudal("dlq", "redrive", files.name, "--all").stderr
    assert files.lines.read_text().splitlines().count("nonsense") == 1


def test_a_connector_without_a_dead_letter_topic_says_what_to_set(caudal: Caudal, files: Files) -> None:
    caudal("connector", "create", files.write(files.sink()))
    assert "errors.deadletterqueue.topic.name" in caudal("dlq", "list", files.name, code=1).stderr


# --- new -------------------------------------------------------------------------------------------------------------


def test_a_new_connector_passes_the_standard_suite(caudal: Caudal, tmp_path: Path) -> None:
    told = caudal("connect", "new", "sheets-of-paper", "--source", "--folder", str(tmp_path))
    folder = tmp_path / "sheets-of-paper"
    assert "connector sheets-of-paper written" in told.stderr
    assert str(folder / "pyproject.toml") in told.stdout
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder)]
    ran = subprocess.run(
        command, check=False, cwd=folder, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "passed" in ran.stdout
    again = caudal("connect", "new", "sheets-of-paper", "--folder", str(tmp_path), code=2).stderr
    assert "already exists" in " ".join(again.replace("│", " ").split())
