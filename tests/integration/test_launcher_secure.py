"""`caudal up --secure`: what strangers get (nothing), how clients log in, renewal, and where secrets are."""

import json
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import psutil
import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from deploy.stack import BY_NAME
from tests.support.admin import eventually
from tests.support.platform import PATIENCE_S, PlatformProcess, run_caudal
from tests.support.secret_search import forms_of
from tests.support.secure_platform import (
    answers_without_a_name,
    as_admin,
    client_file,
    folder_of,
    http_client,
    kafka_client,
    open_ports,
    shown_certificate,
    tool,
)

pytestmark = pytest.mark.timeout(300)

LEAN: Final = ("--without", "rest-proxy", "--without", "connect", "--without", "streams")
HTTP: Final = ("registry", "rest-proxy", "connect", "streams")
_PATHS: Final = {"registry": "/subjects", "rest-proxy": "/topics", "connect": "/connectors", "streams": "/info"}


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlatformProcess]:
    """A whole platform, for tests that leave it as they found it."""
    with PlatformProcess(tmp_path_factory.mktemp("secure") / "platform", "--secure") as running:
        yield running


def create_topic(client: dict[str, Any], topic: str) -> None:
    admin = AdminClient(client)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(PATIENCE_S)


def produce(client: dict[str, Any], topic: str, value: str) -> None:
    producer = Producer({**client, "message.timeout.ms": int(PATIENCE_S * 1000)})
    failed: list[object] = []
    producer.produce(topic, value, on_delivery=lambda error, _: failed.append(error) if error else None)
    assert producer.flush(PATIENCE_S) == 0
    assert failed == []


def consume(client: dict[str, Any], topic: str) -> str:
    consumer = Consumer({**client, "group.id": f"{topic}-{uuid.uuid4()}", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        found: list[bytes] = []

        def poll() -> list[bytes]:
            message = consumer.poll(1)
            if message is not None and not message.error():
                found.append(message.value() or b"")
            return found

        return eventually(poll, timeout_s=PATIENCE_S)[0].decode()
    finally:
        consumer.close()


# --- strangers ---


def test_nothing_that_listens_answers_someone_without_a_name(platform: PlatformProcess) -> None:
    ports = open_ports(platform)
    assert {port.number for port in ports} >= {service.port for service in platform.state.services.values()}
    assert answers_without_a_name(platform, ports) == []


def test_everything_listens_on_this_machine_alone(platform: PlatformProcess) -> None:
    assert {port.address for port in open_ports(platform)} <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


@pytest.mark.parametrize("name", HTTP)
def test_http_services_want_a_login_and_refuse_a_wrong_one(platform: PlatformProcess, name: str) -> None:
    url = platform.url(name)
    assert url.startswith("https:")
    with http_client(platform) as stranger, http_client(platform, user="admin", password="not it") as liar:
        for path in (_PATHS[name], "/health", "/metrics"):
            assert stranger.get(url + path).status_code == 401
        assert liar.get(url + _PATHS[name]).status_code == 401
    with as_admin(platform) as admin, http_client(platform, certificate="admin") as shown:
        assert admin.get(url + _PATHS[name]).status_code == 200
        assert shown.get(url + "/health").status_code == 200
        assert "python_info" in shown.get(url + "/metrics").text


def test_the_metrics_of_a_broker_want_a_certificate(platform: PlatformProcess) -> None:
    url = platform.service("broker").metrics
    with http_client(platform, certificate="admin") as shown:
        assert "kafka_server" in shown.get(url).text
    with as_admin(platform) as without, pytest.raises(httpx2.HTTPError):
        without.get(url)


# --- clients ---


@pytest.mark.parametrize("by_certificate", [False, True])
def test_confluents_client_logs_in_by_the_file(platform: PlatformProcess, name: str, by_certificate: bool) -> None:
    client = kafka_client(platform, by_certificate=by_certificate)
    create_topic(client, name)
    produce(client, name, "a secret greeting")
    assert consume(client, name) == "a secret greeting"


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_kcat_logs_in_by_the_file(platform: PlatformProcess) -> None:
    listed = subprocess.run(
        ["kcat", "-F", str(folder_of(platform).certificate_config), "-L"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert "1 brokers:" in listed.stdout, listed


@pytest.mark.parametrize("name", HTTP)
def test_curl_logs_in_by_the_file(platform: PlatformProcess, name: str) -> None:
    words = ["curl", "--silent", "--fail", "--config", str(folder_of(platform).curl_config)]
    done = subprocess.run(
        [*words, platform.url(name) + _PATHS[name]], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done
    assert isinstance(json.loads(done.stdout), dict if name == "streams" else list)


def test_tools_log_in_by_themselves_at_the_platform_of_the_folder(platform: PlatformProcess) -> None:
    for words in (("topic", "list"), ("user", "list"), ("schema", "list"), ("connector", "list")):
        done = tool(platform, *words)
        assert done.returncode == 0, (words, done)
    assert "User:connect" in tool(platform, "acl", "list").stdout
    assert "admin" in tool(platform, "profile", "show").stdout


def test_status_and_doctor_know_a_secured_platform(platform: PlatformProcess) -> None:
    status = run_caudal("status", "--data", str(platform.data), "-o", "json")
    assert status.returncode == 0, status
    assert json.loads(status.stdout)["ready"] is True
    doctor = run_caudal("doctor", "--data", str(platform.data), "-o", "json", "--timeout", "30")
    findings = json.loads(doctor.stdout)["findings"]
    by_subject = {finding["subject"]: finding for finding in findings if finding["group"] == "Platform"}
    wanted = {"Secrets", "Certificates", "Cluster", "Schemas", *(f"Service: {name}" for name in BY_NAME)}
    assert {subject: by_subject[subject]["level"] for subject in wanted} == dict.fromkeys(wanted, "ok")


def test_what_is_printed_names_files_and_no_password(platform: PlatformProcess) -> None:
    eventually(lambda: "State  caudal status" in platform.said(), timeout_s=PATIENCE_S)
    said, folder = platform.said(), folder_of(platform)
    for file in (folder.librdkafka_config, folder.client_config, folder.java_config, folder.curl_config):
        assert str(file) in said
        assert file.exists()
    assert folder.password("admin") not in said


# --- users ---


def test_services_have_the_rights_of_their_work_and_no_more(platform: PlatformProcess, name: str) -> None:
    create_topic(kafka_client(platform), name)
    folder = folder_of(platform)
    connect = {
        **kafka_client(platform),
        "sasl.username": "connect",
        "sasl.password": folder.password("connect"),
    }
    produce(connect, name, "moved")
    admin = AdminClient(connect)
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        admin.delete_topics([name])[name].result(PATIENCE_S)
    with http_client(platform, certificate="connect") as registry:
        assert registry.get(f"{platform.url('registry')}/subjects").status_code == 200
        assert registry.put(f"{platform.url('registry')}/mode", json={"mode": "READONLY"}).status_code == 403


def test_connectors_cannot_read_the_secrets_of_the_platform(platform: PlatformProcess) -> None:
    folder = folder_of(platform)
    files = (str(folder.password_file("admin")), f"${{file:{folder.librdkafka_config}:sasl.password}}")
    for file in files:
        config = {"connector.class": "FileStreamSource", "file": file, "topic": "stolen"}
        with as_admin(platform) as admin:
            answer = admin.put(f"{platform.url('connect')}/connectors/thief/config", json=config)
        assert answer.status_code == 400, answer.text
        assert "allowed.paths" in answer.text
        assert folder.password("admin") not in answer.text


def test_a_new_user_may_do_what_rules_say_at_every_door(platform: PlatformProcess, tmp_path: Path, name: str) -> None:
    password = tmp_path / "password"
    password.write_text("a-password-of-shop")
    create_topic(kafka_client(platform), name)
    assert tool(platform, "user", "create", "shop", "--password-file", str(password)).returncode == 0
    file = str(client_file(tmp_path, platform, "shop", "a-password-of-shop"))
    refused = tool(platform, "topic", "produce", name, "1", "--client-config", file)
    assert refused.returncode == 1
    assert tool(platform, "acl", "allow", "User:shop", "--producer", "--topic", name).returncode == 0
    assert tool(platform, "topic", "produce", name, "1", "--client-config", file).returncode == 0
    with http_client(platform, user="shop", password="a-password-of-shop") as shop:
        assert shop.get(f"{platform.url('registry')}/subjects").json() == []
        assert shop.delete(f"{platform.url('registry')}/subjects/x").status_code == 403


def test_a_certificate_is_a_user_as_a_password_is(platform: PlatformProcess, name: str) -> None:
    create_topic(kafka_client(platform), name)
    folder = str(folder_of(platform).path)
    assert run_caudal("certificate", "create", name, "--folder", folder).returncode == 0
    client = kafka_client(platform, by_certificate=True)
    own = str(folder_of(platform).certificate(name))
    client |= {"ssl.certificate.location": own, "ssl.key.location": own}
    allowed = tool(platform, "acl", "allow", f"User:{name}", "--producer", "--topic", name)
    assert allowed.returncode == 0, allowed
    produce(client, name, "by certificate")
    with http_client(platform, certificate=name) as caller:
        assert caller.get(f"{platform.url('registry')}/subjects").status_code == 200


# --- renewal ---


def test_renewed_certificates_are_shown_without_a_restart(platform: PlatformProcess) -> None:
    authority = folder_of(platform).authority
    before = {name: service.pid for name, service in platform.state.services.items()}
    metrics = int(platform.service("broker").metrics.split(":")[2].split("/")[0])
    ports = {metrics: "broker"} | {service.port: name for name, service in platform.state.services.items()}
    first = {port: shown_certificate(platform, port) for port in ports}
    renewed = run_caudal("certificate", "renew", "--all", "--folder", str(folder_of(platform).path))
    assert renewed.returncode == 0, renewed
    new = {port: authority.find(name).serial for port, name in ports.items()}
    assert not set(first.values()) & set(new.values())
    eventually(
        lambda: {port: shown_certificate(platform, port) for port in ports},
        lambda shown: shown == new,
        timeout_s=PATIENCE_S,
    )
    assert {name: service.pid for name, service in platform.state.services.items()} == before
    assert tool(platform, "topic", "list").returncode == 0


def test_a_service_that_dies_waits_for_a_certificate_that_is_missing(platform: PlatformProcess) -> None:
    file = folder_of(platform).certificate("launcher")
    moved = file.rename(file.with_suffix(".moved"))
    before = platform.service("rest-proxy")
    assert before.pid is not None
    try:
        psutil.Process(before.pid).kill()
        eventually(
            lambda: "certificate of the launcher cannot be used" in platform.log("rest-proxy"), timeout_s=PATIENCE_S
        )
        assert platform.service("registry").state == "ready"
    finally:
        moved.rename(file)
    platform.wait_until_restarted("rest-proxy", before=before)


# --- secrets ---


def test_no_secret_is_in_a_log_a_command_line_an_environment_or_the_state(platform: PlatformProcess) -> None:
    folder = folder_of(platform)
    files = [*(folder.path / "passwords").iterdir(), folder.path / "truststore.p12.password"]
    forms = {form: file.name for file in files for form in forms_of(file.read_text().strip())}
    places: dict[str, bytes] = {str(path): path.read_bytes() for path in (platform.data / "logs").iterdir()}
    places |= {str(path): path.read_bytes() for path in (platform.output, platform.data / "platform.json")}
    launcher = psutil.Process(platform.pid)
    for process in (launcher, *launcher.children(recursive=True)):
        places[f"command line of {process.pid}"] = " ".join(process.cmdline()).encode()
        places[f"environment of {process.pid}"] = str(process.environ()).encode()
    found = [(place, secret) for place, text in places.items() for form, secret in forms.items() if form in text]
    assert found == []


def test_only_the_owner_may_use_the_folder(platform: PlatformProcess) -> None:
    folder = folder_of(platform).path
    modes = {str(path): path.stat().st_mode & 0o077 for path in (folder, *folder.rglob("*"))}
    assert {path: mode for path, mode in modes.items() if mode} == {}


# --- from open to secured, and back ---


def test_an_open_platform_becomes_secured_and_keeps_its_data(tmp_path: Path) -> None:
    data = tmp_path / "river"
    with PlatformProcess(data, *LEAN) as plain:
        open_client = {"bootstrap.servers": plain.bootstrap}
        create_topic(open_client, "orders")
        produce(open_client, "orders", "from before")
        strangers = answers_without_a_name(plain, open_ports(plain))
        assert any("Kafka" in answer for answer in strangers)  # or the scan would find nothing anywhere
        assert any("HTTP" in answer for answer in strangers)
    with PlatformProcess(data, *LEAN, "--secure") as secured:
        assert "all its data stays" in secured.said()
        assert consume(kafka_client(secured), "orders") == "from before"
        folder = folder_of(secured)
        kept = {path: path.read_bytes() for path in folder.path.rglob("*") if path.suffix == ".pem"}
        kept[folder.password_file("admin")] = folder.password_file("admin").read_bytes()
        assert tool(secured, "acl", "remove", "User:connect", "--topic", "connect-status", "--yes").returncode == 0
    with PlatformProcess(data, *LEAN) as again:
        assert "secured, as it was started before" in again.said()
        assert {path: path.read_bytes() for path in kept} == kept
        rules = tool(again, "acl", "list", "User:connect").stdout
        assert "connect-configs" in rules
        assert "connect-status" not in rules  # what an administrator takes away stays away
    with PlatformProcess(data, *LEAN, "--insecure") as insisted:
        assert "was secured, and now runs without" in insisted.said()
        assert consume({"bootstrap.servers": insisted.bootstrap}, "orders") == "from before"
