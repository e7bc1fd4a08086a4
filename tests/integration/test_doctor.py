"""`caudal doctor` beside a real platform: well, with a connector that fails, with a service that hangs."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from deploy.cli import main
from deploy.doctor import data, services
from deploy.doctor.finding import Context, Finding, Level
from deploy.doctor.ports import is_ours
from deploy.launcher import state
from deploy.launcher.listeners import listeners
from tests.support.admin import eventually
from tests.support.service import REPOSITORY

_PATIENCE_S: Final = 60.0
_TEXT: Final = "org.apache.kafka.connect.storage.StringConverter"
_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    """A whole platform, started and ended as a user does."""
    folder = tmp_path_factory.mktemp("platform")
    _caudal("up", "--data", str(folder), "--ports", "any", "--detach")
    try:
        platform = state.read(folder)
        assert platform is not None
        yield Context(environment={}, data=folder, platform=platform, answer_seconds=_PATIENCE_S)
    finally:
        _caudal("down", "--data", str(folder))


def _caudal(*words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "deploy.cli", *words],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _create(context: Context, name: str, config: dict[str, str]) -> None:
    answer = httpx2.put(f"{_url(context, 'connect')}/connectors/{name}/config", json=config, timeout=_PATIENCE_S)
    assert answer.is_success, answer.text


def _send(context: Context, topic: str, value: object) -> None:
    answer = httpx2.post(
        f"{_url(context, 'rest-proxy')}/topics/{topic}",
        content=json.dumps({"records": [{"value": value}]}),
        headers={"content-type": "application/vnd.kafka.json.v2+json"},
        timeout=_PATIENCE_S,
    )
    assert answer.is_success, answer.text


def _url(context: Context, name: str) -> str:
    assert context.platform is not None
    return context.platform.services[name].endpoint


def test_platform_that_runs_is_found_well(context: Context, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--data", str(context.data), "--timeout", str(_PATIENCE_S), "-o", "json"])
    output: dict[str, Any] = json.loads(capsys.readouterr().out)
    platform = {
        finding["subject"]: finding["level"] for finding in output["findings"] if finding["group"] == "Platform"
    }
    assert (
        platform.items()
        >= {
            "Platform": "ok",
            "Service: broker": "ok",
            "Service: registry": "ok",
            "Service: rest-proxy": "ok",
            "Service: connect": "ok",
            "Service: streams": "ok",
            "Queries": "ok",
            "Cluster": "ok",
            "Schemas": "ok",
            "Spark": "note",
            "Logs": "ok",
        }.items()
    )
    assert code == (1 if output["counts"]["problem"] else 0)


def test_ports_of_the_platform_are_known_as_its_own(context: Context) -> None:
    assert context.platform is not None
    ports = [service.port for service in context.platform.services.values()]
    found = listeners(ports)
    assert found.keys() == set(ports)
    assert all(is_ours(listener.pid, context) for listener in found.values())
    assert not is_ours(os.getpid(), context)


def test_connector_that_failed_is_a_problem_with_its_reason(context: Context, tmp_path: Path) -> None:
    config = {"connector.class": "FileStreamSink", "file": str(tmp_path / "no" / "such" / "folder"), "topics": "lines"}
    _send(context, "lines", "a line")
    _create(context, "broken-sink", config | {"key.converter": _TEXT, "value.converter": _TEXT})

    def failed() -> list[Finding]:
        return [finding for finding in data.connectors(context) if finding.level is Level.PROBLEM]

    (finding,) = eventually(failed, timeout_s=_PATIENCE_S)
    assert finding.subject == "Connector: broken-sink, task 0"
    assert finding.found.startswith("failed: ")
    assert "\n" not in finding.found
    assert finding.next_steps[0] == "see all of it:  caudal connector status broken-sink --trace"


def test_dead_letters_are_counted(context: Context, tmp_path: Path) -> None:
    _send(context, "numbers", "no object")
    config = {
        "connector.class": "FileStreamSink",
        "file": str(tmp_path / "numbers.txt"),
        "topics": "numbers",
        "key.converter": _TEXT,
        "value.converter": _JSON,
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "numbers-dead",
    }
    _create(context, "numbers-sink", config)  # its converter wants a schema beside each value
    (finding,) = eventually(lambda: list(data.dead_letters(context)), timeout_s=_PATIENCE_S)
    assert finding.level is Level.NOTE
    assert finding.found.startswith("1 in numbers-dead")
    assert finding.next_steps == ("see which, and why:  caudal dlq list numbers-sink",)


def test_service_that_hangs_is_a_finding_and_not_a_hang(context: Context) -> None:
    assert context.platform is not None
    hanging = context.platform.services["rest-proxy"]
    assert hanging.pid is not None
    os.kill(hanging.pid, signal.SIGSTOP)
    try:
        (finding,) = services.service(replace(context, answer_seconds=0.5), name="rest-proxy")
    finally:
        os.kill(hanging.pid, signal.SIGCONT)
    assert finding.level is Level.PROBLEM
    assert "does not answer within 0.5 s" in finding.found
    assert finding.next_steps == ("see why:  caudal logs rest-proxy",)
