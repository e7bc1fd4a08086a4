"""A task on its thread: it begins when its services open, and can be stopped before."""

import threading
from collections.abc import Callable
from pathlib import Path

from connect.executors.in_process import stop_all
from connect.runtime.models import Target, TaskId, TaskPlan
from connect.runtime.tasks.running_task import RunningTask
from connect.runtime.tasks.services import LazyServices, TaskServices
from connect.settings import ConnectSettings
from tests.support.line_task import LineTask, line_services, lines_of
from tests.support.patience import PATIENCE_S


class Cluster:
    """Does not answer so often at first."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.has_failed = threading.Event()

    def __call__(self, settings: ConnectSettings) -> TaskServices:
        if self.failures:
            self.failures -= 1
            self.has_failed.set()
            raise RuntimeError("the cluster does not answer")
        return line_services(settings)


def _task(
    path: Path,
    connect: Cluster,
    *,
    is_owner: Callable[[], bool] = lambda: True,
    on_end: Callable[[RunningTask], None] = lambda _: None,
    **config: str,
) -> LineTask:
    options = {"line.file": str(path), **{key.replace("_", "."): value for key, value in config.items()}}
    plan = TaskPlan(id=TaskId("c", 0), connector_config={}, task_config=options, target=Target.STARTED, generation=1)
    task = LineTask(plan, LazyServices(ConnectSettings(), connect=connect), is_owner=is_owner, on_end=on_end)
    task.start()
    return task


def test_a_task_begins_when_its_services_open_and_then_as_it_is_wanted(tmp_path: Path) -> None:
    cluster = Cluster(failures=1)
    task = _task(tmp_path / "lines", cluster, line_fails_after="3")
    assert cluster.has_failed.wait(PATIENCE_S)
    assert task.is_alive
    task.set_target(Target.PAUSED)
    assert task.join(PATIENCE_S)
    assert [line.word for line in lines_of(tmp_path / "lines")] == ["begin", "paused", "paused", "paused", "end"]
    assert not task.was_stopped


def test_a_task_that_is_stopped_before_its_services_open_never_begins(tmp_path: Path) -> None:
    cluster = Cluster(failures=1000)
    task = _task(tmp_path / "lines", cluster)
    assert cluster.has_failed.wait(PATIENCE_S)
    stop_all([task], graceful_s=PATIENCE_S)
    assert not task.is_alive
    assert lines_of(tmp_path / "lines") == []


def test_the_end_of_a_task_is_reported_once(tmp_path: Path) -> None:
    ended: list[RunningTask] = []
    task = _task(tmp_path / "lines", Cluster(failures=0), on_end=ended.append, line_fails_after="1")
    assert task.join(PATIENCE_S)
    assert ended == [task]


def test_a_task_that_lost_its_lease_writes_nothing(tmp_path: Path) -> None:
    task = _task(tmp_path / "lines", Cluster(failures=0), is_owner=lambda: False, line_fails_after="3")
    assert task.join(PATIENCE_S)
    assert lines_of(tmp_path / "lines") == []
