"""A schema registry as its users meet it."""

import http.client
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from typing_extensions import override

from tests.support.service import ServiceProcess, run_module

AVRO = json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "n", "type": "int"}]})
AVRO_KEY = json.dumps({"type": "record", "name": "OrderKey", "namespace": "shop", "fields": []})


class Registered(NamedTuple):
    """A schema that a registry knows."""

    id: int
    guid: str


class RegistryProcess(ServiceProcess):
    """One registry process; on a SQLite file in its own directory unless the settings name another database."""

    ready = re.compile(rb"registry ready: listeners=(http://[\w.\[\]:-]+:\d+)")

    def __init__(self, directory: Path, *, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(directory, settings={"database.url": f"sqlite:///{directory}/registry.db", **(settings or {})})

    @property
    def url(self) -> str:
        """Where clients send their requests."""
        return self.address

    def register(self, subject: str, schema: str = AVRO, *, kind: str = "AVRO") -> Registered:
        """Register a schema."""
        return register(self.url, subject, schema, kind=kind)

    @override
    def _command(self) -> list[str]:
        return run_module("schema_registry", {"listeners": f"http://127.0.0.1:{self._port}", **self.settings})


def register(url: str, subject: str, schema: str = AVRO, *, kind: str = "AVRO") -> Registered:
    """Register a schema with any registry."""
    body = json.dumps({"schema": schema, "schemaType": kind})
    answer = _request("POST", url, f"/subjects/{quote(subject, safe='')}/versions", body)
    return Registered(answer["id"], answer["guid"])


def delete_subject(url: str, subject: str) -> None:
    """Soft-delete all versions of a subject, with any registry."""
    _request("DELETE", url, f"/subjects/{quote(subject, safe='')}")


def _request(method: str, url: str, path: str, body: str | None = None) -> Any:
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    try:
        connection.request(method, path, body, {"Content-Type": "application/vnd.schemaregistry.v1+json"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        return json.load(answer)
    finally:
        connection.close()
