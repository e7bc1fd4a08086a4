"""A registry as a process: how it starts, what it says when it cannot, its settings as clients notice them."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.support.postgres import PostgresServer
from tests.support.registry import RegistryProcess
from tests.support.service import REPOSITORY, run_module


def start(**settings: str) -> subprocess.CompletedProcess[str]:
    """Start a registry that is expected to end by itself."""
    command = run_module("schema_registry", {key.replace("_", "."): value for key, value in settings.items()})
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=REPOSITORY)


@contextmanager
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


def test_a_port_in_use_is_reported(tmp_path: Path) -> None:
    with taken_port() as port:
        ended = start(listeners=f"http://127.0.0.1:{port}", database_url=f"sqlite:///{tmp_path}/registry.db")
    assert ended.returncode == 1
    assert "registry cannot start" in ended.stderr
    assert "Address already in use" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_database_that_does_not_answer_is_reported() -> None:
    with taken_port() as port:
        pass
    ended = start(listeners="http://127.0.0.1:0", database_url=f"postgresql://nobody@127.0.0.1:{port}/nothing")
    assert ended.returncode == 1
    assert "Connection refused" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "refused",
    [
        {
            "database_url": ("mysql://somewhere", "must be sqlite:///path/to/file or postgresql://"),
            "schema_compatibility_level": ("SIDEWAYS", "must be one of NONE, BACKWARD"),
            "schema_max_byte": ("1", "did you mean schema.max.bytes?"),
            "ssl_keystore_location": ("x.jks", "use ssl.certificate.location"),
        },
        {"listeners": ("localhost:8081", "must be http://host:port")},
    ],
    ids=["settings", "listeners"],
)
def test_wrong_settings_are_refused_with_what_is_allowed(refused: dict[str, tuple[str, str]]) -> None:
    ended = start(**{key: value for key, (value, _) in refused.items()})
    assert ended.returncode == 2
    assert [words for _, words in refused.values() if words not in ended.stderr] == []


def test_health_follows_the_database(tmp_path: Path, postgres: PostgresServer) -> None:
    settings = {"database.url": postgres.create_database(), "database.timeout.ms": "1000"}
    with RegistryProcess(tmp_path, settings=settings) as registry:
        assert httpx2.get(f"{registry.url}/health", timeout=30).status_code == 200
        postgres.stop()
        try:
            assert httpx2.get(f"{registry.url}/health", timeout=30).status_code == 503
            refused = httpx2.get(f"{registry.url}/subjects", timeout=30)
            assert (refused.status_code, refused.json()["error_code"]) == (500, 50001)
        finally:
            postgres.start()
        assert httpx2.get(f"{registry.url}/health", timeout=30).status_code == 200
        assert httpx2.get(f"{registry.url}/subjects", timeout=30).json() == []


@pytest.mark.parametrize("code", ["40901", "409"])
def test_incompatible_schemas_have_the_configured_code(tmp_path: Path, code: str) -> None:
    with RegistryProcess(tmp_path, settings={"schema.incompatible.error.code": code}) as registry:
        url = f"{registry.url}/subjects/s/versions"
        assert httpx2.post(url, json={"schema": '"int"'}, timeout=30).status_code == 200
        refused = httpx2.post(url, json={"schema": '"boolean"'}, timeout=30)
    assert (refused.status_code, refused.json()["error_code"]) == (409, int(code))


def test_metrics_count_what_happened(tmp_path: Path) -> None:
    with RegistryProcess(tmp_path) as registry:
        httpx2.post(f"{registry.url}/subjects/s/versions", json={"schema": '"int"'}, timeout=30)
        for _ in range(3):
            httpx2.get(f"{registry.url}/schemas/ids/1", timeout=30)
        text = httpx2.get(f"{registry.url}/metrics", timeout=30).text
    assert 'caudal_registry_schemas_registered_total{type="AVRO"} 1.0' in text
    assert "caudal_registry_ready_answers_total 2.0" in text
    assert 'route="/subjects/{subject}/versions",status="200"} 1.0' in text
