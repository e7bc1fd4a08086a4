"""The secure settings of deploy/compose, run as processes: who has a login gets in, who has none does not."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from deploy.stack import BY_NAME
from tests.support.admin import eventually
from tests.support.authority import AuthorityFolder
from tests.support.clients.kcat import KCAT
from tests.support.deployment import DEPLOY, observed_ports, read_compose, read_yaml
from tests.support.secured_compose import CLUSTER, SecuredCompose
from tests.support.service import REPOSITORY

_PASSWORD: Final = "shop-secret-of-this-test"
_HTTP_SERVICES: Final = ("registry", "rest-proxy", "connect", "streams")
_PAGES: Final = {"registry": "/subjects", "rest-proxy": "/topics", "connect": "/connectors", "streams": "/info"}

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCompose]:
    """The platform with a user, as its administrator makes one."""
    folder = tmp_path_factory.mktemp("secured")
    password = folder / "shop.password"
    password.write_text(_PASSWORD)
    with SecuredCompose(folder) as running:
        running.run_admin("topic", "create", "orders")
        running.run_admin("user", "create", "shop", "--password-file", str(password))
        running.run_admin("acl", "allow", "User:shop", "--producer", "--topic", "orders")
        running.run_admin("acl", "allow", "User:shop", "--consumer", "--topic", "orders", "--group", "shop")
        yield running


def _curl(platform: SecuredCompose, service: str, path: str, *options: str) -> tuple[int, str]:
    """Status and body of a request."""
    command = ["curl", "--silent", "--show-error", "--cacert", str(platform.ca_file), "--write-out", "\n%{http_code}"]
    url = f"https://{platform.address(service, observed_ports()[service])}{path}"
    done = subprocess.run([*command, *options, url], capture_output=True, text=True, check=True, timeout=60)
    body, _, status = done.stdout.rpartition("\n")
    return int(status), body


def _client(platform: SecuredCompose, port: int, password: str = _PASSWORD) -> dict[str, str]:
    return {
        "bootstrap.servers": platform.address("broker", port),
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "shop",
        "sasl.password": password,
        "ssl.ca.location": str(platform.ca_file),
    }


@pytest.mark.parametrize("port", [9092, 29092], ids=["from the machine", "from containers"])
def test_a_user_with_a_password_uses_what_the_rules_allow(platform: SecuredCompose, port: int) -> None:
    client = _client(platform, port)
    producer = Producer(client)
    producer.produce("orders", b"an order")
    assert producer.flush(60) == 0
    consumer = Consumer({**client, "group.id": "shop", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    record = eventually(lambda: consumer.poll(1), timeout_s=60)
    consumer.close()
    assert record is not None
    assert record.error() is None
    assert record.value() == b"an order"
    assert set(AdminClient({**client}).list_topics(timeout=60).topics) == {"orders"}


@pytest.mark.skipif(KCAT is None, reason="the command kcat is not installed")
def test_no_listener_of_the_broker_answers_who_has_no_name(platform: SecuredCompose) -> None:
    trust = {"security.protocol": "SSL", "ssl.ca.location": str(platform.ca_file)}
    own = str(platform.certificate("connect"))
    refused = [
        *({"bootstrap.servers": platform.address("broker", port)} for port in (9092, 29092, 29094)),
        *(trust | {"bootstrap.servers": platform.address("broker", port)} for port in (9092, 29092, 29094, 9093)),
        _client(platform, 9092, "wrong"),
        _client(platform, 29094),
    ]
    known = trust | {"ssl.certificate.location": own, "ssl.key.location": own}
    with ThreadPoolExecutor(len(refused) + 1) as threads:
        *answers, accepted = threads.map(
            _kcat, [*refused, known | {"bootstrap.servers": platform.address("broker", 29094)}]
        )
    assert [answer.stdout for answer in answers if answer.returncode == 0] == []
    assert 'topic "connect-configs"' in accepted.stdout, accepted.stderr
    assert 'topic "orders"' not in accepted.stdout


def _kcat(properties: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Topics and brokers, or why not."""
    words = [word for key, value in properties.items() for word in ("-X", f"{key}={value}")]
    return subprocess.run(["kcat", *words, "-L", "-m", "5"], capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("service", _HTTP_SERVICES)
def test_http_services_know_the_users_of_the_cluster_and_refuse_others(platform: SecuredCompose, service: str) -> None:
    page = _PAGES[service]
    assert _curl(platform, service, page)[0] == 401
    assert _curl(platform, service, "/metrics")[0] == 401
    assert _curl(platform, service, page, "--user", "shop:wrong")[0] == 401
    assert _curl(platform, service, page, "--user", f"shop:{_PASSWORD}")[0] == 200
    if service != "rest-proxy":
        assert _curl(platform, service, page, "--cert", str(platform.certificate("admin")))[0] == 200


def test_the_metrics_of_the_broker_need_a_certificate(platform: SecuredCompose) -> None:
    for path in ("/metrics", "/health"):
        with pytest.raises(subprocess.CalledProcessError):
            _curl(platform, "broker", path)


def test_the_rest_proxy_acts_as_its_caller(platform: SecuredCompose) -> None:
    login = ("--user", f"shop:{_PASSWORD}")
    assert _produce(platform, "json", "orders", {"records": [{"value": 1}]}, *login) == 200
    assert _produce(platform, "json", "payments", {"records": [{"value": 1}]}, *login) in (403, 404)
    assert _produce(platform, "json", "orders", {"records": [{"value": 1}]}) == 401
    record = {"value_schema": '"long"', "records": [{"value": 1}]}
    assert _produce(platform, "avro", "orders", record, *login) == 403
    platform.run_admin("acl", "allow", "User:shop", "read,write", "--subject", "orders-value")
    assert _produce(platform, "avro", "orders", record, *login) == 200


def _produce(platform: SecuredCompose, kind: str, topic: str, body: object, *login: str) -> int:
    content = ("--header", f"Content-Type: application/vnd.kafka.{kind}.v2+json", "--data", json.dumps(body))
    status, text = _curl(platform, "rest-proxy", f"/topics/{topic}", *content, *login)
    return status if '"error_code":null' in text or status != 200 else int(re.findall(r'"error_code":(\d+)', text)[0])


@pytest.mark.parametrize("service", _HTTP_SERVICES)
def test_a_certificate_of_another_authority_is_refused(platform: SecuredCompose, service: str, tmp_path: Path) -> None:
    foreign = AuthorityFolder(tmp_path).issue("admin")
    with pytest.raises(subprocess.CalledProcessError):
        _curl(platform, service, _PAGES[service], "--cert", str(foreign))


@pytest.mark.parametrize("service", BY_NAME)
def test_health_checks_of_containers_need_no_password(platform: SecuredCompose, service: str) -> None:
    environment = platform.services[service].environment
    asked = [sys.executable, "-m", "deploy.health_check", "--wait", "60", service]
    done = subprocess.run(asked, env=environment, cwd=REPOSITORY, capture_output=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")


def test_prometheus_reads_the_metrics_with_its_certificate(platform: SecuredCompose) -> None:
    as_prometheus = ("--cert", str(platform.certificate("prometheus")))
    assert _curl(platform, "connect", "/metrics", *as_prometheus)[0] == 403
    monitoring = read_compose(DEPLOY / "compose" / "secure-monitoring.yaml")["services"]["monitoring-access"]
    platform.run_admin(*monitoring["command"])
    jobs = read_yaml(DEPLOY / "monitoring" / "prometheus-secure.yml")["scrape_configs"]
    for job in jobs:
        (found,) = job["dns_sd_configs"]
        service = found["names"][0]
        tls = job["tls_config"]
        assert (job["scheme"], tls["server_name"], found["port"]) == ("https", service, observed_ports()[service])
        assert (tls["ca_file"], tls["cert_file"]) == ("/run/secrets/ca.crt", "/run/secrets/tls.pem")
        status, text = _curl(platform, service, "/metrics", *as_prometheus)
        assert status == 200
        assert "process_resident_memory_bytes" in text


def test_services_have_only_the_rights_that_they_need(platform: SecuredCompose) -> None:
    again = platform.run_access()
    lines = again.stderr.splitlines()
    assert lines
    assert all("as before" in line for line in lines)
    listed = platform.run_admin("acl", "list", "--output", "json").stdout
    rules = {(rule["principal"], rule["resource_type"], rule["resource_name"]) for rule in json.loads(listed)}
    assert {name for principal, kind, name in rules if (principal, kind) == ("User:connect", "TOPIC")} == {"connect-"}
    assert {kind for principal, kind, _ in rules if principal == "User:broker"} == {"SUBJECT"}
    assert "User:rest-proxy" not in {principal for principal, _, _ in rules}
    refused = re.findall(r'"event": "denied", "principal": "(.*?)"', platform.services["broker"].log_text())
    assert "User:connect" not in refused


def test_the_tool_for_certificates_knows_the_folder_of_the_script(platform: SecuredCompose) -> None:
    listed = platform.run_admin("certificate", "list", "--folder", str(platform.ca_file.parent), "--output", "json")
    names = {"admin", "broker", "registry", "rest-proxy", "connect", "streams", "prometheus"}
    assert names <= set(re.findall(r'"name": "([\w-]+)"', listed.stdout))


def test_users_are_created_from_files_and_get_new_passwords_from_them(platform: SecuredCompose, tmp_path: Path) -> None:
    files = tmp_path / "users"
    files.mkdir()
    (files / "billing").write_text("first-password\n")
    created = platform.run_access(USERS_DIR=str(files))
    assert _curl(platform, "registry", "/subjects", "--user", "billing:first-password")[0] == 200
    (files / "billing").write_text("second-password\n")
    changed = platform.run_access(USERS_DIR=str(files))
    assert _curl(platform, "registry", "/subjects", "--user", "billing:second-password")[0] == 200
    assert "-password" not in created.stderr + changed.stderr


def test_three_secured_brokers_form_a_cluster_and_topics_have_three_copies(tmp_path: Path) -> None:
    brokers = ("broker", "broker-2", "broker-3")
    with SecuredCompose(tmp_path, files=CLUSTER, services=brokers) as cluster:
        eventually(
            lambda: cluster.run_admin("cluster", "-o", "json").stdout.count('"fenced": false') == 3, timeout_s=90
        )
        cluster.run_admin("topic", "create", "orders")
        described = cluster.run_admin("topic", "describe", "orders", "-o", "json").stdout
        (replicas,) = re.findall(r'"replicas": \[([^]]*)\]', described)
        assert sorted(re.findall(r"\d+", replicas)) == ["1", "2", "3"]


def test_no_variable_and_no_command_line_of_a_container_has_a_secret(platform: SecuredCompose) -> None:
    for service in platform.services.values():
        for key, value in service.environment.items():
            assert "PASSWORD" not in key
            assert "PRIVATE KEY" not in value
            assert urlsplit(value).password is None
        assert _PASSWORD not in service.log_text()
