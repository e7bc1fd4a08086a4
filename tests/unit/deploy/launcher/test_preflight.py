import errno
import fcntl
import os
import shutil
import socket
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from deploy.launcher.lock import PlatformLock, lock_holder
from deploy.launcher.plan import Plan, make_plan
from deploy.launcher.preflight import DISK_FREE_MIN_BYTES, check_disk, prepare_folders, ready_to_start
from deploy.launcher.request import Refused, Request
from tests.support.patience import PATIENCE_S


def plan_in(folder: Path, *ports: str) -> Plan:
    return make_plan(Request(data=str(folder), ports=("any", *ports)))


def refusal_of(plan: Plan) -> Refused:
    with pytest.raises(Refused) as refused, ready_to_start(plan):
        pass
    return refused.value


def test_folders_are_made_and_ports_are_chosen(tmp_path: Path) -> None:
    with ready_to_start(plan_in(tmp_path / "new" / "river")) as settled:
        assert all(port > 0 for port in settled.ports.values())
        assert len(set(settled.ports.values())) == len(settled.ports)
        assert sorted(path.name for path in settled.data.iterdir()) == [
            *("broker", "lock", "logs", "registry", "rest-proxy", "spark", "streams")
        ]


def test_the_folder_is_locked_until_the_end(tmp_path: Path) -> None:
    with ready_to_start(plan_in(tmp_path)):
        assert lock_holder(tmp_path) == os.getpid()
    assert lock_holder(tmp_path) is None


def test_a_file_where_the_folder_should_be_is_reported(tmp_path: Path) -> None:
    (tmp_path / "river").write_text("")
    refusal = refusal_of(plan_in(tmp_path / "river"))
    assert f"{tmp_path / 'river'} is a file" in refusal.text
    assert any("--data DIR" in step for step in refusal.next_steps)


def test_a_file_in_the_way_of_the_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "a part of its path is a file" in refusal_of(plan_in(tmp_path / "file" / "river")).text


def test_a_file_where_a_service_keeps_its_data_is_reported(tmp_path: Path) -> None:
    (tmp_path / "broker").write_text("")
    assert f"{tmp_path / 'broker'} is a file" in refusal_of(plan_in(tmp_path)).text


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system that nobody can write")
def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    refusal = refusal_of(plan_in(Path("/proc/river")))
    assert "/proc/river cannot be written" in refusal.text
    assert any("--data DIR" in step for step in refusal.next_steps)


def test_a_disk_that_is_nearly_full_is_reported_with_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = SimpleNamespace(free=DISK_FREE_MIN_BYTES - (1 << 20))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: left)
    with pytest.raises(Refused) as refused:
        check_disk(tmp_path)
    assert "has 199 MB free; the platform starts with at least 200 MB" in refused.value.text


def test_a_disk_that_is_full_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(Refused, match="is full"):
        prepare_folders(plan_in(tmp_path))


def test_a_second_launcher_on_the_same_folder_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with ready_to_start(plan_in(tmp_path)):
        refusal = refusal_of(plan_in(tmp_path))
    assert f"a platform runs in {tmp_path} already (process {os.getpid()})" in refusal.text
    assert any(f"caudal down --data {tmp_path}" in step for step in refusal.next_steps)


def test_a_lock_that_cannot_be_opened_is_reported(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    assert f"{tmp_path / 'lock'} cannot be written: Is a directory" in refusal_of(plan_in(tmp_path)).text


def test_a_process_that_only_tests_the_lock_does_not_keep_a_launcher_from_starting(tmp_path: Path) -> None:
    looking = (tmp_path / "lock").open("w")
    fcntl.flock(looking, fcntl.LOCK_SH)
    done = threading.Timer(0.1, looking.close)
    done.start()
    lock = PlatformLock.try_acquire(tmp_path, patience_s=PATIENCE_S)
    done.join()
    assert lock is not None
    lock.release()


def test_a_taken_port_is_reported_with_service_owner_and_the_option_for_another(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        refusal = refusal_of(plan_in(tmp_path, f"registry={port}"))
    assert f"port {port} of registry is in use" in refusal.text
    assert f"process {os.getpid()}" in refusal.text or not Path("/proc/net").exists()
    assert any("--ports registry=PORT" in step for step in refusal.next_steps)


def test_a_refusal_leaves_neither_lock_nor_ports_behind(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        refusal_of(plan_in(tmp_path, f"connect={other.getsockname()[1]}"))
    with ready_to_start(plan_in(tmp_path)):
        pass


def test_an_address_of_another_machine_is_reported(tmp_path: Path) -> None:
    plan = make_plan(Request(data=str(tmp_path), host="203.0.113.7", ports=("any",), insecure=True))
    refusal = refusal_of(plan)
    assert "cannot listen on 203.0.113.7" in refusal.text
    assert any("--host ADDR" in step for step in refusal.next_steps)
