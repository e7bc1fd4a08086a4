"""A task in this process: it begins when its world opens, and can be stopped before."""

import threading
from pathlib import Path

from connect.executors.ending import stop_all
from connect.executors.local_task import LocalTask
from connect.runtime.models import Target, TaskId, TaskPlan
from connect.settings import ConnectSettings
from tests.support.line_task import LineTask, LineWorld, lines_of
from tests.support.patience import PATIENCE_S


class Maker:
    """Makes tasks, but fails so often at first."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.has_failed = threading.Event()

    def __call__(self, plan: TaskPlan) -> LineTask:
        if self.failures:
            self.failures -= 1
            self.has_failed.set()
            raise RuntimeError("the cluster does not answer")
        return LineTask(plan, LineWorld(ConnectSettings()))


def _plan(path: Path, **config: str) -> TaskPlan:
    options = {"line.file": str(path), **{key.replace("_", "."): value for key, value in config.items()}}
    return TaskPlan(id=TaskId("c", 0), connector_config={}, task_config=options, target=Target.STARTED, generation=1)


def test_a_task_begins_when_its_world_opens_and_then_as_it_is_wanted(tmp_path: Path) -> None:
    make = Maker(failures=1)
    task = LocalTask(_plan(tmp_path / "lines", line_fails_after="3"), make)
    task.start()
    assert make.has_failed.wait(PATIENCE_S)
    assert task.is_alive
    task.set_target(Target.PAUSED)
    assert task.join(PATIENCE_S)
    assert [line.word for line in lines_of(tmp_path / "lines")] == ["begin", "paused", "paused", "paused", "end"]
    assert not task.was_stopped


def test_a_task_that_is_stopped_before_its_world_opens_never_begins(tmp_path: Path) -> None:
    make = Maker(failures=1000)
    task = LocalTask(_plan(tmp_path / "lines"), make)
    task.start()
    assert make.has_failed.wait(PATIENCE_S)
    stop_all([task], graceful_s=PATIENCE_S)
    assert not task.is_alive
    assert lines_of(tmp_path / "lines") == []


def test_the_end_of_a_task_is_told_once(tmp_path: Path) -> None:
    ended: list[LocalTask] = []
    task = LocalTask(_plan(tmp_path / "lines", line_fails_after="1"), Maker(failures=0), on_end=ended.append)
    task.start()
    assert task.join(PATIENCE_S)
    assert ended == [task]


def test_a_task_that_lost_its_lease_writes_nothing(tmp_path: Path) -> None:
    plan = _plan(tmp_path / "lines", line_fails_after="3")
    task = LocalTask(plan, Maker(failures=0), is_owner=lambda: False)
    task.start()
    assert task.join(PATIENCE_S)
    assert lines_of(tmp_path / "lines") == []
