"""`caudal up --brokers 3`: a cluster on one machine, and one of its brokers killed."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.admin import eventually
from tests.support.platform import PATIENCE_S, PlatformProcess, run_caudal

pytestmark = pytest.mark.timeout(300)

BROKERS_ONLY: Final = (
    "--without",
    "registry",
    "--without",
    "rest-proxy",
    "--without",
    "connect",
    "--without",
    "streams",
)
NOTICED_SOON: Final = ("broker:broker.session.timeout.ms=3000", "broker:broker.heartbeat.interval.ms=500")
TOPIC: Final = "river"


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[PlatformProcess]:
    with PlatformProcess(
        tmp_path / "platform", "--brokers", "3", "--racks", *BROKERS_ONLY, settings=NOTICED_SOON
    ) as running:
        yield running


def cluster_of(platform: PlatformProcess) -> dict[str, Any]:
    """What `caudal cluster` says."""
    printed = run_caudal("cluster", "--bootstrap", platform.bootstrap, "--output", "json")
    assert printed.returncode == 0, printed
    found: dict[str, Any] = json.loads(printed.stdout)
    return found


def produce(platform: PlatformProcess, value: str) -> None:
    printed = run_caudal("topic", "produce", TOPIC, value, "--bootstrap", platform.bootstrap, "--timeout", "60")
    assert printed.returncode == 0, printed


def fenced(found: dict[str, Any]) -> list[int]:
    return [item["id"] for item in found["brokers"] if item["fenced"]]


def test_three_brokers_go_on_without_one_and_take_it_back(platform: PlatformProcess) -> None:
    assert list(platform.state.services) == ["broker-1", "broker-2", "broker-3"]
    created = run_caudal("topic", "create", TOPIC, "--partitions", "3", "--bootstrap", platform.bootstrap)
    assert "3 copies of each partition" in created.stderr, created
    before = eventually(
        lambda: cluster_of(platform), lambda now: len(now["quorum"]["voters"]) == 3, timeout_s=PATIENCE_S
    )
    assert [item["rack"] for item in before["brokers"]] == ["rack-1", "rack-2", "rack-3"]
    assert before["under_replicated"] == before["offline"] == []
    produce(platform, "before")

    victim = platform.service("broker-2")
    assert victim.pid is not None
    os.kill(victim.pid, signal.SIGSTOP)  # a broker that was killed would come back before anyone looks
    without = eventually(
        lambda: cluster_of(platform),
        lambda now: fenced(now) == [2] and len(now["under_replicated"]) == 3,
        timeout_s=PATIENCE_S,
    )
    assert without["under_min_isr"] == without["offline"] == []
    status = run_caudal("status", "--data", str(platform.data), "--output", "json")
    assert status.returncode == 1
    shown = json.loads(status.stdout)
    assert {name: item["answers"] for name, item in shown["services"].items()} == {
        "broker-1": True,
        "broker-2": False,
        "broker-3": True,
    }
    assert shown["cluster"]["missing"] == [2]
    assert [item["is_outage"] for item in shown["cluster"]["troubles"]] == [False, False]
    described = run_caudal("cluster", "--bootstrap", platform.bootstrap)
    assert "are read and written as before" in described.stderr, described
    assert "is down" in described.stderr, described
    doctor = run_caudal("doctor", "--data", str(platform.data), "--output", "json")
    found = {item["subject"]: item["level"] for item in json.loads(doctor.stdout)["findings"]}
    assert found["Service: broker-1"] == "ok"
    assert found["Service: broker-2"] == "problem"
    assert found["Cluster"] == "warning"
    produce(platform, "meanwhile")

    os.kill(victim.pid, signal.SIGKILL)
    platform.wait_until_restarted("broker-2", before=victim)
    eventually(
        lambda: cluster_of(platform),
        lambda now: fenced(now) == [] == now["under_replicated"],
        timeout_s=PATIENCE_S,
    )
    consumed = run_caudal("topic", "consume", TOPIC, "--bootstrap", platform.bootstrap, "--format", "value")
    assert sorted(consumed.stdout.split()) == ["before", "meanwhile"], consumed
    logs = run_caudal("logs", "broker-2", "--data", str(platform.data), "--lines", "1000")
    assert "killed by signal 9" in logs.stdout


def test_a_platform_with_one_broker_grows_to_three_and_is_started_again_as_such(tmp_path: Path) -> None:
    platform = PlatformProcess(tmp_path / "platform", *BROKERS_ONLY)
    with platform:
        created = run_caudal("topic", "create", TOPIC, "--bootstrap", platform.bootstrap)
        assert created.returncode == 0, created
        produce(platform, "alone")
    with PlatformProcess(platform.data, "--brokers", "3", *BROKERS_ONLY) as grown:
        eventually(lambda: cluster_of(grown), lambda now: len(now["quorum"]["voters"]) == 3, timeout_s=PATIENCE_S)
        moved = run_caudal("cluster", "grow", "--all", "--bootstrap", grown.bootstrap)
        assert moved.returncode == 0, moved
        found = cluster_of(grown)
        assert {item["replicas"] for item in found["brokers"]} == {found["partitions"]}
    with platform:  # without --brokers, and on other ports
        assert list(platform.state.services) == ["broker-1", "broker-2", "broker-3"]
        consumed = run_caudal("topic", "consume", TOPIC, "--bootstrap", platform.bootstrap, "--format", "value")
        assert consumed.stdout.split() == ["alone"], consumed
