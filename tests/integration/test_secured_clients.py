"""A secured platform from outside: curl, Python's HTTP clients and tools for Kafka Connect, each with its user."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import kafka_connect_api.errors  # type: ignore[import-untyped]
import pytest
import requests
from kafka_connect_api.kafka_connect_api import Api, Cluster  # type: ignore[import-untyped]

from tests.support.connect_access import right
from tests.support.patience import eventually
from tests.support.platform import PATIENCE_S
from tests.support.secured_services import SERVICES, SecuredServices, secured_services
from tests.support.service import service_environment

pytestmark = pytest.mark.timeout(300)

PATHS: Final = {"registry": "/subjects", "rest-proxy": "/topics", "connect": "/connectors"}
WAYS: Final = ("password", "token", "certificate")
PASSWORD: Final = "password-of-shop"
GUESS: Final = "not-the-password-of-shop"


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredServices]:
    """`shop` may use topics, groups and connectors whose names begin with shop-."""
    with secured_services(tmp_path_factory.mktemp("services")) as running:
        running.add_user("shop", PASSWORD)
        running.allow("shop", "shop-")
        running.create_topic("shop-orders")
        rules = [right(operation, "shop-", who="User:shop", pattern_type="PREFIXED") for operation in ("ALL",)]
        with running.client("connect", running.admin()) as admin:
            assert admin.post("/security/acls", json=rules).status_code == 201
        yield running
        assert running.places_with({PASSWORD, GUESS}) == []


def expected_status(service: str, way: str) -> int:
    """A certificate cannot be passed on to the cluster."""
    return 403 if (service, way) == ("rest-proxy", "certificate") else 200


# --- curl and Python --------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("curl") is None, reason="the command curl is not installed")
@pytest.mark.parametrize("way", [*WAYS, "wrong"])
def test_curl_logs_in_at_every_service(services: SecuredServices, way: str) -> None:
    lines = {
        "password": f'user = "shop:{PASSWORD}"',
        "token": f'oauth2-bearer = "{services.token("shop")}"',
        "certificate": f'cert = "{services.certificate("shop")}"',
        "wrong": f'user = "shop:{GUESS}"',
    }
    for service in SERVICES:
        command = ["curl", "--silent", "--config", "-", "--cacert", str(services.security.authority_file)]
        command += ["--write-out", "%{http_code}", "--output", "/dev/null"]
        done = subprocess.run(
            [*command, services.platform.url(service) + PATHS[service]],
            input=lines[way],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
        assert int(done.stdout) == (401 if way == "wrong" else expected_status(service, way)), service


@pytest.mark.parametrize("way", WAYS)
def test_requests_logs_in_at_every_service(services: SecuredServices, way: str) -> None:
    with requests.Session() as session:
        session.verify, session.trust_env = str(services.security.authority_file), False
        match way:
            case "password":
                session.auth = ("shop", PASSWORD)
            case "token":
                session.headers["authorization"] = f"Bearer {services.token('shop')}"
            case _:
                session.cert = str(services.certificate("shop"))
        for service in SERVICES:
            answer = session.get(services.platform.url(service) + PATHS[service], timeout=PATIENCE_S)
            assert answer.status_code == expected_status(service, way), (service, answer.text)


@pytest.mark.parametrize("way", WAYS)
def test_httpx_logs_in_at_every_service(services: SecuredServices, way: str) -> None:
    trusting = services.trusting(services.certificate("shop") if way == "certificate" else None)
    headers = {"authorization": f"Bearer {services.token('shop')}"} if way == "token" else {}
    auth = ("shop", PASSWORD) if way == "password" else None
    with httpx.Client(verify=trusting, auth=auth, headers=headers, timeout=PATIENCE_S) as client:
        for service in SERVICES:
            answer = client.get(services.platform.url(service) + PATHS[service])
            assert answer.status_code == expected_status(service, way), (service, answer.text)


def test_a_user_writes_and_reads_through_the_rest_proxy(services: SecuredServices) -> None:
    with requests.Session() as session:
        session.verify, session.trust_env = str(services.security.authority_file), False
        session.auth = ("shop", PASSWORD)
        url = services.platform.url("rest-proxy")
        records = {"records": [{"value": {"amount": 3}}]}
        kind = {"content-type": "application/vnd.kafka.json.v2+json"}
        written = session.post(f"{url}/topics/shop-orders", json=records, headers=kind, timeout=PATIENCE_S)
        assert written.status_code == 200, written.text
        path = f"{url}/topics/shop-orders/partitions/0/records?offset=0"
        read = session.get(path, headers={"accept": kind["content-type"]}, timeout=PATIENCE_S)
        assert read.json()[0]["value"] == {"amount": 3}
        refused = session.post(f"{url}/topics/others", json=records, headers=kind, timeout=PATIENCE_S)
        assert (refused.status_code, refused.json()["error_code"]) == (403, 40301)


# --- tools for Kafka Connect ------------------------------------------------------------------------------------------


def connector(services: SecuredServices) -> dict[str, str]:
    file = str(services.files / "shop.txt")
    return {"connector.class": "FileStreamSink", "tasks.max": "1", "topics": "shop-orders", "file": file}


def test_a_library_for_kafka_connect_works_with_a_user(
    services: SecuredServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(services.security.authority_file))
    url = services.platform.url("connect")
    api = Api(url=url, username="shop", password=PASSWORD)
    cluster = Cluster(api)
    assert cluster.version
    api.post("/connectors", json={"name": "shop-library", "config": connector(services)})
    made = cluster.connectors["shop-library"]
    eventually(lambda: made.state == "RUNNING" and made.tasks and made.tasks[0].is_running())
    made.restart()
    made.pause()
    eventually(lambda: made.state == "PAUSED")
    made.config = {**connector(services), "tasks.max": "2"}
    assert made.config["tasks.max"] == "2"
    made.resume()
    made.delete()
    with pytest.raises(kafka_connect_api.errors.GenericNotFound):
        made.exists()
    with pytest.raises(kafka_connect_api.errors.GenericForbidden):
        api.post("/connectors", json={"name": "others", "config": connector(services)})
    with pytest.raises(kafka_connect_api.errors.GenericForbidden):
        _ = cluster.loggers
    with pytest.raises(kafka_connect_api.errors.GenericUnauthorized):
        _ = Cluster(Api(url=url, username="shop", password=GUESS)).version


def test_a_command_for_kafka_connect_works_with_a_user(services: SecuredServices) -> None:
    def kc(*words: str, password: str = PASSWORD) -> Any:
        environment = {
            **service_environment(),
            "KAFKA_CONNECT_URL": services.platform.url("connect"),
            "KAFKA_CONNECT_BASIC_AUTH": f"shop:{password}",
            "REQUESTS_CA_BUNDLE": str(services.security.authority_file),
        }
        done = subprocess.run(
            [Path(sys.executable).with_name("kc"), *words],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
            env=environment,
        )
        return json.loads(done.stdout) if done.stdout.startswith(("[", "{")) else done.stdout

    config = json.dumps(connector(services))
    assert kc("update", "shop-command", "--config-data", config)["name"] == "shop-command"
    assert "shop-command" in kc("list")
    eventually(lambda: kc("status", "shop-command")["connector"]["state"] == "RUNNING")
    assert "403" in kc("update", "others", "--config-data", config)
    assert "404" in kc("status", "others")
    assert "401" in kc("list", password=GUESS)
    kc("delete", "shop-command")
    assert kc("list") == []
