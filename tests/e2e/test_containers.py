"""The platform in containers, from the files that people start it with (`make test-docker`).

One story, told in order: started, used from the machine around it and by its own services, killed, made anew.
"""

import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from typing import Any, Final

import httpx2
import pytest

from deploy.stack import STACK
from tests.support.admin import eventually
from tests.support.clients.confluent import ConfluentClient, read_to_end
from tests.support.clients.model import Sent
from tests.support.deployment import DEPLOY

DOCKER: Final = os.environ.get("CAUDAL_DOCKER", "")
"""The command, with options where a machine needs some."""
BOOTSTRAP: Final = "localhost:9092"
_TOPIC: Final = "orders"
_BODY: Final = {
    "value_schema": json.dumps(
        {
            "type": "record",
            "name": "Order",
            "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": "string"}],
        }
    ),
    "records": [{"value": {"id": 1, "item": "canoe"}}, {"value": {"id": 2, "item": "paddle"}}],
}
_SINK: Final = {
    "connector.class": "SparkSink",
    "topics": _TOPIC,
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "value.converter.schema.registry.url": "http://registry:8081",
}
_SELECT: Final = f"SELECT id, item FROM {_TOPIC} ORDER BY id"
_ALL_BUT_THE_FIRST_PROCESS: Final = "import os, signal; os.kill(-1, signal.SIGKILL)"
_PATIENCE_S: Final = 300.0

pytestmark = [
    pytest.mark.skipif(not DOCKER, reason="needs Docker and its images: make test-docker"),
    pytest.mark.timeout(900),
]


def _compose(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [*shlex.split(DOCKER), "compose", "--file", str(DEPLOY / "compose" / "compose.yaml"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE_S)


def _done(*words: str) -> str:
    done = _compose(*words)
    assert done.returncode == 0, f"{words}: {done.stderr}\n{_compose('logs', '--tail', '30').stdout}"
    return done.stdout


def _containers() -> dict[str, dict[str, Any]]:
    lines = _done("ps", "--all", "--format", "json").splitlines()
    return {found["Service"]: found for found in map(json.loads, lines)}


def _health() -> dict[str, str]:
    return {name: container["Health"] for name, container in _containers().items()}


def _rows() -> str:
    return _compose("exec", "-T", "connect", "caudal", "spark", "sql", _SELECT, "--json").stdout


@pytest.fixture(scope="module", autouse=True)
def platform() -> Iterator[None]:
    """The platform on new volumes, which go with it."""
    _done("down", "--volumes")
    try:
        _done("up", "--no-build", "--wait")
        yield
    finally:
        _done("down", "--volumes")


def test_every_service_is_healthy() -> None:
    assert _health() == {service.name: "healthy" for service in STACK}


def test_nothing_runs_as_root() -> None:
    users = {service.name: _done("exec", "-T", service.name, "id", "-u").strip() for service in STACK}

    assert users == {service.name: "10001" for service in STACK}


def test_a_client_on_the_machine_produces_and_consumes() -> None:
    ConfluentClient().produce(BOOTSTRAP, "clicks", [Sent(value=b"one"), Sent(value=b"two")])

    assert sorted(record.value or b"" for record in read_to_end(BOOTSTRAP, "clicks")) == [b"one", b"two"]


def test_what_is_posted_over_http_becomes_rows_of_a_spark_table() -> None:
    media = {"content-type": "application/vnd.kafka.avro.v2+json"}
    posted = httpx2.post(f"http://localhost:8082/topics/{_TOPIC}", content=json.dumps(_BODY), headers=media, timeout=60)
    created = httpx2.put(f"http://localhost:8083/connectors/{_TOPIC}/config", json=_SINK, timeout=60)

    assert (posted.status_code, created.status_code) == (200, 201), (posted.text, created.text)
    rows = eventually(_rows, lambda told: "paddle" in told, timeout_s=_PATIENCE_S, pause_s=1)
    assert json.loads(rows) == [{"id": 1, "item": "canoe"}, {"id": 2, "item": "paddle"}]


@pytest.mark.parametrize("name", [service.name for service in STACK])
def test_a_service_that_is_killed_comes_back_with_what_it_had(name: str) -> None:
    _compose("exec", "-T", name, "python", "-c", _ALL_BUT_THE_FIRST_PROCESS)

    eventually(_health, lambda health: health.get(name) == "healthy", timeout_s=_PATIENCE_S, pause_s=1)
    assert len(read_to_end(BOOTSTRAP, "clicks")) == 2
    subjects = httpx2.get("http://localhost:8081/subjects", timeout=60).json()
    assert subjects == [f"{_TOPIC}-value"]


def test_containers_that_are_made_anew_find_everything() -> None:
    _done("down")
    _done("up", "--no-build", "--wait")

    assert _health() == {service.name: "healthy" for service in STACK}
    assert len(read_to_end(BOOTSTRAP, "clicks")) == 2
    rows = eventually(_rows, lambda told: "paddle" in told, timeout_s=_PATIENCE_S, pause_s=1)
    assert len(json.loads(rows)) == 2
