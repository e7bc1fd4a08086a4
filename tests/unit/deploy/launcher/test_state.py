import json
import os
from pathlib import Path

import msgspec

from deploy.launcher import state
from deploy.launcher.lock import PlatformLock
from deploy.launcher.state import PlatformState, ServiceState, SparkState


def a_state(data: Path, *, pid: int | None = None) -> PlatformState:
    service = ServiceState(
        state="ready",
        port=1,
        endpoint="localhost:1",
        metrics="http://localhost:2/metrics",
        log=str(data / "logs" / "broker.log"),
        pid=42,
        restarts=3,
        ready_after_s=0.25,
    )
    return PlatformState(
        pid=os.getpid() if pid is None else pid,
        started_ms=1_700_000_000_000,
        data=str(data),
        state="running",
        services={"broker": service},
        spark=SparkState(data_dir=str(data / "spark"), connect_port=15002),
    )


def test_what_is_written_is_read_while_a_launcher_has_the_lock(tmp_path: Path) -> None:
    lock = PlatformLock.try_acquire(tmp_path)
    assert lock is not None
    written = a_state(tmp_path)
    state.write(written)
    assert state.read(tmp_path) == written
    lock.release()


def test_without_a_launcher_there_is_no_platform_whatever_the_file_says(tmp_path: Path) -> None:
    state.write(a_state(tmp_path))
    assert state.read(tmp_path) is None
    lock = PlatformLock.try_acquire(tmp_path)
    assert lock is not None
    lock.release()
    assert state.read(tmp_path) is None


def test_a_folder_that_is_not_there_has_no_platform_and_is_not_made(tmp_path: Path) -> None:
    assert state.read(tmp_path / "nowhere") is None
    assert not (tmp_path / "nowhere").exists()


def test_the_state_that_a_killed_launcher_left_is_not_taken_for_the_next_ones(tmp_path: Path) -> None:
    state.write(a_state(tmp_path, pid=1))
    lock = PlatformLock.try_acquire(tmp_path)
    assert lock is not None
    assert state.read(tmp_path) is None
    lock.release()


def test_a_file_that_is_no_state_is_passed_over(tmp_path: Path) -> None:
    lock = PlatformLock.try_acquire(tmp_path)
    assert lock is not None
    (tmp_path / "platform.json").write_text("{")
    assert state.read(tmp_path) is None
    lock.release()


def test_programs_find_the_facts_by_their_names(tmp_path: Path) -> None:
    state.write(a_state(tmp_path))
    output = json.loads((tmp_path / "platform.json").read_text())
    assert {"version", "pid", "started_ms", "data", "state", "services", "spark"} <= output.keys()
    facts = {"state", "pid", "port", "endpoint", "metrics", "restarts", "log", "ready_after_s"}
    assert facts <= output["services"]["broker"].keys()
    assert output["spark"] | {"data_dir": str(tmp_path / "spark"), "connect_port": 15002} == output["spark"]


def test_only_its_owner_may_read_what_may_hold_passwords(tmp_path: Path) -> None:
    state.write(a_state(tmp_path))
    assert (tmp_path / "platform.json").stat().st_mode & 0o077 == 0


def test_a_platform_is_ready_when_it_runs_and_all_its_services_are(tmp_path: Path) -> None:
    ready = a_state(tmp_path)
    assert ready.is_ready
    assert not msgspec.structs.replace(ready, state="starting").is_ready
    ill = msgspec.structs.replace(ready.services["broker"], state="restarting")
    assert not msgspec.structs.replace(ready, services={"broker": ill}).is_ready


def test_the_bootstrap_address_names_every_broker_or_the_cluster_elsewhere(tmp_path: Path) -> None:
    single = a_state(tmp_path)
    assert single.bootstrap == "localhost:1"
    broker = single.services["broker"]
    others = {f"broker-{number}": msgspec.structs.replace(broker, endpoint=f"localhost:{number}") for number in (1, 2)}
    assert msgspec.structs.replace(single, services=others).bootstrap == "localhost:1,localhost:2"
    assert msgspec.structs.replace(single, services={}, elsewhere={"broker": "kafka:9092"}).bootstrap == "kafka:9092"
    assert msgspec.structs.replace(single, services={}).bootstrap is None
