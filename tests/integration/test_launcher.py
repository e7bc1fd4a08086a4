"""`caudal up`, `status`, `logs` and `down`, as users type them, with real services."""

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx2
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from deploy.launcher import state
from deploy.launcher.lock import lock_holder
from deploy.stack import BY_NAME
from tests.support.admin import eventually
from tests.support.platform import PATIENCE_S, PlatformProcess, caudal, run_caudal, wait_until_ended
from tests.support.service import service_environment

pytestmark = pytest.mark.timeout(300)

LEAN: Final = ("--without", "rest-proxy", "--without", "connect", "--without", "streams")
"""What is enough for what concerns the launcher alone."""
_TOPIC: Final = "river"


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlatformProcess]:
    """A whole platform, for tests that leave it as they found it."""
    with PlatformProcess(tmp_path_factory.mktemp("launcher") / "platform") as running:
        yield running


@pytest.fixture
def lean(tmp_path: Path) -> Iterator[PlatformProcess]:
    """A broker and a registry, for tests that do what they like with them."""
    with PlatformProcess(tmp_path / "platform", *LEAN) as running:
        yield running


def pids_of(platform: PlatformProcess) -> list[int]:
    return [service.pid for service in platform.state.services.values() if service.pid]


# --- a platform that runs ---


def test_everything_is_ready_and_listed_with_endpoints_and_commands_to_copy(platform: PlatformProcess) -> None:
    eventually(lambda: "State  caudal status" in platform.said(), timeout_s=PATIENCE_S)
    said = platform.said()
    for name in BY_NAME:
        assert re.search(rf"✓ {name} +{re.escape(platform.service(name).endpoint)} +\d", said), said
    assert re.search(r"[·!] spark", said)
    assert f"{platform.url('rest-proxy')}/topics/hello" in said
    assert f"caudal topic consume hello --bootstrap {platform.bootstrap}" in said
    assert f"caudal down --data {platform.data}" in said


def test_what_is_copied_from_the_summary_works(platform: PlatformProcess) -> None:
    answer = httpx2.post(
        f"{platform.url('rest-proxy')}/topics/{_TOPIC}",
        content=b'{"records": [{"value": {"greeting": "hello, river"}}]}',
        headers={"Content-Type": "application/vnd.kafka.json.v2+json"},
        timeout=PATIENCE_S,
    )
    assert answer.json()["offsets"][0]["error"] is None
    consumed = run_caudal("topic", "consume", _TOPIC, "--bootstrap", platform.bootstrap, "--timeout", "60")
    assert "hello, river" in consumed.stdout, consumed


def test_a_client_that_says_localhost_is_served(platform: PlatformProcess) -> None:
    assert platform.bootstrap.startswith("localhost:")
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": platform.bootstrap, "error_cb": failures.append})
    producer.produce(_TOPIC, b"from localhost")
    assert producer.flush(PATIENCE_S) == 0
    assert failures == []


def test_status_tells_programs_and_people(platform: PlatformProcess) -> None:
    printed = run_caudal("status", "--data", str(platform.data), "-o", "json")
    assert printed.returncode == 0, printed
    found = json.loads(printed.stdout)
    assert found["ready"] is True
    assert {name: service["state"] for name, service in found["services"].items()} == dict.fromkeys(BY_NAME, "ready")
    assert all(service["memory_bytes"] > 1 << 20 for service in found["services"].values())
    assert found["disk_free_bytes"] > 0
    shown = run_caudal("status", "--data", str(platform.data))
    assert shown.returncode == 0
    for service in platform.state.services.values():
        assert f"{service.pid} " in shown.stdout
        assert service.endpoint in shown.stdout


def test_logs_of_all_stand_side_by_side_and_one_alone_has_no_prefix(platform: PlatformProcess) -> None:
    everybody = run_caudal("logs", "--data", str(platform.data), "--lines", "100")
    assert everybody.returncode == 0
    names = {line.partition("|")[0].strip() for line in everybody.stdout.splitlines()}
    assert names >= {"launcher", *BY_NAME}
    alone = run_caudal("logs", "broker", "--data", str(platform.data), "--lines", "2")
    assert len(alone.stdout.splitlines()) == 2
    assert not alone.stdout.startswith("broker")


def test_logs_of_an_unknown_service_are_refused_with_the_names_there_are(platform: PlatformProcess) -> None:
    refused = run_caudal("logs", "zookeeper", "--data", str(platform.data))
    assert refused.returncode == 2
    assert "launcher, broker, registry" in " ".join(refused.stderr.replace("│", " ").split())


@pytest.mark.parametrize("name", BY_NAME)
def test_a_service_that_is_killed_comes_back_on_its_port_and_the_others_do_not_notice(
    platform: PlatformProcess, name: str
) -> None:
    before = platform.state.services
    pid = before[name].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    now = platform.wait_until_restarted(name, before=before[name])
    assert (now.port, now.endpoint) == (before[name].port, before[name].endpoint)
    assert httpx2.get(now.metrics, timeout=PATIENCE_S).status_code == 200
    others = {other: service.pid for other, service in platform.state.services.items() if other != name}
    assert others == {other: service.pid for other, service in before.items() if other != name}
    printed = rf"✗ {name} killed by signal 9 \(SIGKILL\); starting it again in [\d.]+ s.*{name}\.log\n    \S"
    assert re.search(printed, platform.said()), platform.said()


def test_logs_are_followed_over_the_restart_of_a_service(platform: PlatformProcess, tmp_path: Path) -> None:
    said = tmp_path / "followed"
    with said.open("wb") as output:
        following = subprocess.Popen(
            caudal("logs", "registry", "--follow", "--lines", "1", "--data", str(platform.data)),
            stdout=output,
            env=service_environment(),
        )
    try:
        eventually(lambda: said.stat().st_size, timeout_s=PATIENCE_S)  # it follows from here on
        seen = said.read_text().count("caudal registry ready:")
        before = platform.service("registry")
        assert before.pid is not None
        os.kill(before.pid, signal.SIGKILL)
        platform.wait_until_restarted("registry", before=before)
        eventually(lambda: said.read_text().count("caudal registry ready:") > seen, timeout_s=PATIENCE_S)
    finally:
        following.kill()
        following.wait()


def test_a_service_that_hangs_is_distinguished_from_a_healthy_one(platform: PlatformProcess) -> None:
    pid = platform.service("registry").pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        printed = run_caudal("status", "--data", str(platform.data))
    finally:
        os.kill(pid, signal.SIGCONT)
    assert printed.returncode == 1
    assert "does not answer" in printed.stdout


def test_a_second_launcher_on_the_same_data_is_refused_with_the_process_that_runs(platform: PlatformProcess) -> None:
    refused = run_caudal("up", "--data", str(platform.data), "--ports", "any")
    assert refused.returncode == 1
    assert f"a platform runs in {platform.data} already (process {platform.pid})" in refused.stderr
    assert f"caudal down --data {platform.data}" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_second_launcher_with_the_same_ports_is_refused_with_their_owners(
    platform: PlatformProcess, tmp_path: Path
) -> None:
    service = platform.service("registry")
    refused = run_caudal("up", "--data", str(tmp_path), "--ports", "any", "--ports", f"registry={service.port}")
    assert refused.returncode == 1
    assert f"port {service.port} of registry is in use by" in refused.stderr
    assert f"process {service.pid} (" in refused.stderr
    assert "--ports registry=PORT" in refused.stderr


# --- what is refused before anything starts ---


def test_a_folder_that_cannot_be_written_is_a_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = run_caudal("up", "--data", str(tmp_path / "file" / "river"), "--ports", "any")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "a part of its path is a file" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_launcher_in_the_background_tells_why_it_did_not_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        words = ("up", "--detach", "--data", str(tmp_path / "river"), "--ports", "any", "--ports", f"broker={port}")
        refused = run_caudal(*words)
    assert refused.returncode == 1
    assert f"port {port} of broker is in use" in refused.stderr


def test_without_a_platform_status_says_how_to_start_one(tmp_path: Path) -> None:
    printed = run_caudal("status", "--data", str(tmp_path / "river"))
    assert printed.returncode == 3
    assert "caudal up" in printed.stderr
    assert run_caudal("down", "--data", str(tmp_path / "river")).returncode == 0


# --- services that do not start ---


@pytest.mark.parametrize("detach", [(), ("--detach",)], ids=["here", "in the background"])
def test_settings_that_a_service_refuses_end_everything_at_once(tmp_path: Path, detach: tuple[str, ...]) -> None:
    data = tmp_path / "river"
    words = ("up", *detach, "--data", str(data), "--ports", "any", *LEAN, "--set", "registry:databse.url=x")
    refused = run_caudal(*words)
    assert refused.returncode == 1
    assert "registry refused its settings" in refused.stderr
    assert "did you mean database.url?" in refused.stderr
    assert "schema_registry/SETTINGS.md" in refused.stderr
    assert eventually(lambda: lock_holder(data) is None, timeout_s=PATIENCE_S)


def test_a_service_that_cannot_start_is_tried_three_times_and_its_log_is_shown(tmp_path: Path) -> None:
    data = tmp_path / "river"
    (tmp_path / "file").touch()
    url = f"registry:database.url=sqlite:///{tmp_path}/file/registry.db"
    refused = run_caudal("up", "--data", str(data), "--ports", "any", *LEAN, "--set", url)
    assert refused.returncode == 1
    assert "registry did not start in 3 tries: ended with exit code" in refused.stderr
    assert str(data / "logs" / "registry.log") in refused.stderr
    assert (data / "logs" / "registry.log").read_text().count("launcher: registry started") == 3


# --- the end, and what comes after it ---


def test_ctrl_c_stops_all_in_the_opposite_order_and_the_data_is_there_next_time(tmp_path: Path) -> None:
    schema = {"schema": '{"type": "record", "name": "Drop", "fields": []}'}
    first = PlatformProcess(tmp_path / "platform").start()
    try:
        admin = AdminClient({"bootstrap.servers": first.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(_TOPIC, 2)])[_TOPIC].result(60)
        answer = httpx2.post(f"{first.url('registry')}/subjects/{_TOPIC}/versions", json=schema, timeout=PATIENCE_S)
        assert answer.json()["id"] == 1
        children = pids_of(first)
        first.interrupt()
        assert first.wait() == 0
    finally:
        first.kill()
    wait_until_ended(children)
    stopped = re.findall(r"service stopped  service=(\S+)", first.log("launcher"))
    assert stopped == ["streams", "connect", "rest-proxy", "registry", "broker"]
    with PlatformProcess(tmp_path / "platform", *LEAN) as again:
        topics = AdminClient({"bootstrap.servers": again.bootstrap}).list_topics(timeout=60).topics
        assert len(topics[_TOPIC].partitions) == 2
        found = httpx2.get(f"{again.url('registry')}/subjects/{_TOPIC}/versions/1", timeout=PATIENCE_S).json()
        assert found["id"] == 1


def test_a_second_ctrl_c_kills_what_does_not_stop(lean: PlatformProcess) -> None:
    pids = pids_of(lean)
    os.kill(pids[0], signal.SIGSTOP)
    lean.interrupt()
    eventually(lambda: "service stopped  service=registry" in lean.log("launcher"), timeout_s=PATIENCE_S)
    lean.interrupt()
    lean.wait()
    wait_until_ended(pids)
    assert "killing everything" in lean.log("launcher")
    assert "broker was killed" in lean.said()


def test_services_end_with_a_launcher_that_is_killed_and_the_next_one_starts_on_the_same_ports(tmp_path: Path) -> None:
    first = PlatformProcess(tmp_path / "platform", *LEAN).start()
    pids, ports = pids_of(first), {name: one.port for name, one in first.state.services.items()}
    first.kill()
    wait_until_ended(pids)
    assert state.read(first.data) is None
    chosen = [word for name, port in ports.items() for word in ("--ports", f"{name}={port}")]
    with PlatformProcess(tmp_path / "platform", *LEAN, *chosen) as again:
        assert {name: one.port for name, one in again.state.services.items()} == ports


def test_a_platform_in_the_background_outlives_its_starter_until_down(tmp_path: Path) -> None:
    data = tmp_path / "river"
    started = run_caudal("up", "--detach", "--data", str(data), "--ports", "any", *LEAN)
    try:
        assert started.returncode == 0, started
        assert re.search(r"✓ broker +localhost:\d+ ", started.stderr)
        assert f"caudal down --data {data}" in started.stdout
        running = state.read(data)
        assert running is not None
        assert running.is_ready
        assert run_caudal("status", "--data", str(data)).returncode == 0
    finally:
        ended = run_caudal("down", "--data", str(data))
    assert ended.returncode == 0, ended
    assert "stopped" in ended.stderr
    wait_until_ended([running.pid, *(one.pid for one in running.services.values() if one.pid)])
    assert run_caudal("status", "--data", str(data)).returncode == 3


def test_down_kills_what_does_not_stop_in_time_and_says_so(lean: PlatformProcess) -> None:
    pids = pids_of(lean)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    ended = run_caudal("down", "--data", str(lean.data), "--timeout", "0.5")
    assert ended.returncode == 0, ended
    assert "did not stop within 0.5 s and is killed" in ended.stderr
    wait_until_ended([lean.pid, *pids])


def test_caudal_spark_means_the_spark_of_the_platform_that_runs_here(
    platform: PlatformProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAUDAL_DATA", str(platform.data))
    printed = json.loads(run_caudal("spark", "status", "-o", "json").stdout)
    assert printed["data_dir"] == str(platform.data / "spark")
    elsewhere = run_caudal("spark", "status", "-o", "json", "--set", "spark.caudal.data.dir=/nowhere")
    assert json.loads(elsewhere.stdout)["data_dir"] == "/nowhere"
