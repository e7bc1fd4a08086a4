"""Tasks in host processes: they are spread, stopped, lost and begun again, and never run twice at once."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from connect.executors.in_process import InProcess
from connect.runtime.models import Target, TaskId, TaskPlan
from connect.runtime.tasks.services import LazyServices
from connect.settings import ConnectSettings
from tests.support.admin import eventually
from tests.support.line_task import LineTask, assert_never_twice, is_running, line_services, lines_of
from tests.support.service import REPOSITORY


def _line_executor(settings: ConnectSettings) -> InProcess:
    services = LazyServices(settings, connect=line_services)
    return InProcess(settings, services=services, task_class=LineTask, host_module="tests.support.line_host")


@contextmanager
def _executor(processes: int, *, graceful_ms: int = 2000) -> Iterator[InProcess]:
    settings = ConnectSettings(task_processes=processes, task_shutdown_graceful_timeout_ms=graceful_ms)
    executor = _line_executor(settings)
    try:
        yield executor
    finally:
        executor.close()


def _plan(path: Path, task: int = 0, *, connector: str = "c", **config: str) -> TaskPlan:
    options = {"line.file": str(path)} | {key.replace("_", "."): value for key, value in config.items()}
    return TaskPlan(
        id=TaskId(connector, task), connector_config={}, task_config=options, target=Target.STARTED, generation=1
    )


def _beats(path: Path, task: str = "c-0") -> Callable[[], bool]:
    before = len(lines_of(path, task))
    return lambda: sum(line.word == "beat" for line in lines_of(path, task)[before:]) >= 2


def _pids(path: Path) -> set[int]:
    return {line.pid for line in lines_of(path)}


@pytest.mark.parametrize("processes", [0, 2])
def test_a_task_runs_until_it_is_stopped(tmp_path: Path, processes: int) -> None:
    path = tmp_path / "lines"
    with _executor(processes) as executor:
        executor.start(_plan(path))
        eventually(_beats(path))
        assert executor.running_tasks() == {TaskId("c", 0)}
        executor.stop([TaskId("c", 0)])
        assert lines_of(path)[-1].word == "end"
        assert executor.running_tasks() == set()
    assert (os.getpid() in _pids(path)) == (processes == 0)


@pytest.mark.parametrize("processes", [0, 2])
def test_a_task_pauses_and_goes_on(tmp_path: Path, processes: int) -> None:
    path = tmp_path / "lines"
    with _executor(processes) as executor:
        executor.start(_plan(path))
        eventually(_beats(path))
        executor.set_target(TaskId("c", 0), Target.PAUSED)
        eventually(lambda: lines_of(path)[-1].word == "paused")
        executor.set_target(TaskId("c", 0), Target.STARTED)
        eventually(lambda: lines_of(path)[-1].word == "beat")


@pytest.mark.parametrize("processes", [0, 2])
def test_a_task_that_is_started_again_runs_once(tmp_path: Path, processes: int) -> None:
    path = tmp_path / "lines"
    with _executor(processes) as executor:
        for _ in range(3):
            executor.start(_plan(path))
            eventually(_beats(path))
    assert [line.word for line in lines_of(path) if line.word != "beat"] == ["begin", "end"] * 3
    assert_never_twice(path)


def test_a_task_that_ends_by_itself_is_no_longer_owned(tmp_path: Path) -> None:
    with _executor(1) as executor:
        executor.start(_plan(tmp_path / "lines", line_fails_after="3"))
        eventually(lambda: executor.running_tasks() == set())


def test_tasks_of_a_connector_are_spread_over_hosts(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    with _executor(2) as executor:
        for connector, task in (("a", 0), ("a", 1), ("b", 0), ("b", 1)):
            executor.start(_plan(path, task, connector=connector))
        eventually(lambda: {line.task for line in lines_of(path)} == {"a-0", "a-1", "b-0", "b-1"})
    homes = {line.task: line.pid for line in lines_of(path)}
    assert len(set(homes.values())) == 2
    assert homes["a-0"] != homes["a-1"]
    assert homes["b-0"] != homes["b-1"]


def test_counters_of_hosts_are_told(tmp_path: Path) -> None:
    with _executor(1) as executor:
        executor.start(_plan(tmp_path / "lines"))
        told = eventually(executor.counters)
    assert told[TaskId("c", 0)].source_record_poll > 0


def test_tasks_of_a_killed_host_are_lost_and_begin_again_in_another(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    plans = {TaskId("c", number): _plan(path, number) for number in range(3)}
    lost: list[TaskId] = []
    with _executor(1) as executor:

        def begin_again(task_id: TaskId, reason: str) -> None:
            lost.append(task_id)
            executor.start(plans[task_id])

        executor.on_lost = begin_again
        for plan in plans.values():
            executor.start(plan)
        eventually(lambda: len({line.task for line in lines_of(path)}) == 3)
        (pid,) = _pids(path)
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: len({line.task for line in lines_of(path) if line.pid != pid}) == 3)
        assert sorted(lost) == sorted(plans)
    assert_never_twice(path)


def test_a_host_whose_task_hangs_is_killed_and_its_other_tasks_begin_again(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    with _executor(1, graceful_ms=100) as executor:
        executor.on_lost = lambda task_id, reason: executor.start(_plan(path, task_id.task))
        executor.start(_plan(path, 0, line_hangs="/never"))
        executor.start(_plan(path, 1))
        eventually(lambda: len({line.task for line in lines_of(path)}) == 2)
        (pid,) = _pids(path)
        executor.stop([TaskId("c", 0)])
        assert not is_running(pid)
        eventually(lambda: any(line.pid != pid for line in lines_of(path, "c-1")))
        assert executor.running_tasks() == {TaskId("c", 1)}
    assert_never_twice(path)


def test_tasks_that_kill_their_host_again_and_again_are_started_more_and_more_slowly(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    with _executor(1) as executor:
        executor.on_lost = lambda task_id, reason: executor.start(_plan(path, line_dies_after="1"))
        executor.start(_plan(path, line_dies_after="1"))
        begins = eventually(
            lambda: [line.at for line in lines_of(path) if line.word == "begin"], lambda found: len(found) >= 4
        )
    assert begins[3] - begins[2] > begins[1] - begins[0]


def test_hosts_end_when_their_worker_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    program = f"""
import time
from pathlib import Path
from tests.integration.test_connect_hosts import _executor, _plan
with _executor(2) as executor:
    executor.start(_plan(Path({str(path)!r})))
    executor.start(_plan(Path({str(path)!r}), 1))
    time.sleep(60)
"""
    worker = subprocess.Popen([sys.executable, "-c", program], cwd=REPOSITORY)
    try:
        pids = eventually(lambda: _pids(path), lambda found: len(found) == 2)
    finally:
        worker.kill()
        worker.wait()
    eventually(lambda: not any(is_running(pid) for pid in pids))


def test_no_secret_is_seen_in_the_arguments_of_a_host(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    settings = ConnectSettings(task_processes=1, client_properties=(("sasl.password", "hidden"),))
    executor = _line_executor(settings)
    try:
        executor.start(_plan(path, line_password="hidden"))
        eventually(lambda: lines_of(path))
        (pid,) = _pids(path)
        host = psutil.Process(pid)
        assert "hidden" not in " ".join(host.cmdline())
        assert "hidden" not in " ".join(host.environ().values())
    finally:
        executor.close()


def test_a_stopped_executor_leaves_no_process(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    with _executor(2) as executor:
        executor.start(_plan(path))
        executor.start(_plan(path, 1))
        eventually(lambda: len(_pids(path)) == 2)
    assert not any(is_running(pid) for pid in _pids(path))


def test_a_task_whose_thread_hangs_begins_again_only_when_that_has_ended(tmp_path: Path) -> None:
    path, free = tmp_path / "lines", tmp_path / "free"
    with _executor(0, graceful_ms=50) as executor:
        executor.start(_plan(path, line_hangs=str(free)))
        eventually(_beats(path))
        executor.start(_plan(path))
        assert len({line.run for line in lines_of(path)}) == 1
        free.touch()
        eventually(lambda: len({line.run for line in lines_of(path)}) == 2)
    assert_never_twice(path)
