"""The platform in containers, as a compose file starts it (`make test-docker`)."""

import json
import os
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import httpx2
import pytest

from tests.support.deployment import DEPLOY

DOCKER: Final = os.environ.get("CAUDAL_DOCKER", "")
"""The command, with options where a machine needs some."""
PATIENCE_S: Final = 300.0
TOPIC: Final = "orders"
SINK: Final = {
    "connector.class": "SparkSink",
    "topics": TOPIC,
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "value.converter.schema.registry.url": "http://registry:8081",
}
"""Orders become rows of a table of Spark; the registry has the name that containers know it by."""
needs_docker: Final = pytest.mark.skipif(not DOCKER, reason="needs Docker and the images: make test-docker")

_ORDER: Final = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": "string"}],
}
_AVRO: Final = {"content-type": "application/vnd.kafka.avro.v2+json"}
_TIMEOUT_S: Final = 60.0


class Containers:
    """What a compose file describes."""

    def __init__(self, file: str) -> None:
        self._file = DEPLOY / "compose" / file

    def do(self, *words: str) -> str:
        """Run a command of compose that must succeed; gives what it printed."""
        done = self.try_to(*words)
        assert done.returncode == 0, f"{words}: {done.stderr}\n{self.try_to('logs', '--tail', '30').stdout}"
        return done.stdout

    def try_to(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of compose."""
        command = [*shlex.split(DOCKER), "compose", "--file", str(self._file), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)

    @contextmanager
    def running(self) -> Iterator[None]:
        """All of it on new volumes, which go with it."""
        self.do("down", "--volumes")
        try:
            self.start()
            yield
        finally:
            self.do("down", "--volumes")

    def start(self) -> None:
        """Start it with the images that are there, and wait until everything is well."""
        self.do("up", "--no-build", "--wait")

    def sick(self) -> dict[str, str]:
        """Containers that say of themselves that they are not well, or do not run."""
        found: list[dict[str, Any]] = [
            json.loads(line) for line in self.do("ps", "--all", "--format", "json").splitlines()
        ]
        return {
            container["Name"]: container["Status"]
            for container in found
            if container["State"] != "running" or container["Health"] not in ("healthy", "")
        }

    def table(self) -> list[tuple[int, str]]:
        """The table of orders as Spark sees it now; empty while there is none."""
        statement = f"SELECT id, item FROM {TOPIC} ORDER BY id"
        done = self.try_to("exec", "-T", "connect", "caudal", "spark", "sql", statement, "--json")
        return [(row["id"], row["item"]) for row in json.loads(done.stdout)] if done.returncode == 0 else []


def post_orders(orders: Sequence[tuple[int, str]]) -> httpx2.Response:
    """Produce orders over HTTP."""
    records = [{"value": {"id": number, "item": item}} for number, item in orders]
    body = json.dumps({"value_schema": json.dumps(_ORDER), "records": records})
    return httpx2.post(f"http://localhost:8082/topics/{TOPIC}", content=body, headers=_AVRO, timeout=_TIMEOUT_S)


def put_sink() -> httpx2.Response:
    """Create the sink."""
    return httpx2.put(f"http://localhost:8083/connectors/{TOPIC}/config", json=SINK, timeout=_TIMEOUT_S)


def subjects() -> list[str]:
    """What the registry knows."""
    found: list[str] = httpx2.get("http://localhost:8081/subjects", timeout=_TIMEOUT_S).json()
    return found
