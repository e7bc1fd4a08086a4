"""A task on its thread: it runs the work and writes its states to the status topic."""

import logging
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Final

from connect.api.backoff import Backoff
from connect.api.engine import EngineSinkConnector
from connect.api.sink import SinkConnector
from connect.runtime.configuration.config_providers import conceal
from connect.runtime.configuration.connector_config import SourceConnectorConfig
from connect.runtime.configuration.reach import limits_of
from connect.runtime.counters import TaskCounters
from connect.runtime.failures.traces import stack_trace
from connect.runtime.models import FENCED, State, Target, TaskPlan
from connect.runtime.stopping import Stopped, Stopping
from connect.runtime.tasks.engine_task import EngineAway, EngineWork
from connect.runtime.tasks.exactly_once_source import ExactlyOnceSource, is_exactly_once
from connect.runtime.tasks.services import LazyServices, TaskServices
from connect.runtime.tasks.setup import OUTAGES, TaskSetup, Work, set_up
from connect.runtime.tasks.sink_task import SinkWork
from connect.runtime.tasks.source_task import AtLeastOnceSource

log = logging.getLogger(__name__)

_STARTS: Final = Backoff(0.5, 10.0)
_ENGINE_RETRIES: Final = Backoff(0.5, 5.0)


class RunningTask:
    """Runs from `start` until it is stopped, cancelled, or fails."""

    def __init__(
        self,
        plan: TaskPlan,
        services: LazyServices,
        *,
        is_owner: Callable[[], bool] = lambda: True,
        on_end: Callable[["RunningTask"], None] = lambda _: None,
    ) -> None:
        """`is_owner` is checked before every write: a process that was suspended may have lost the task."""
        self.plan = plan
        self.counters = TaskCounters()
        self.state = State.UNASSIGNED
        self._target = plan.target
        self._stopping = Stopping(is_owner)
        self._lazy_services = services
        self._services: TaskServices
        self._on_end = on_end
        self._outages = 0
        self._thread = threading.Thread(target=self._run, name=f"task-{plan.id}", daemon=True)

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    @property
    def was_stopped(self) -> bool:
        """Whether it was asked to end; otherwise it ended on its own."""
        return self._stopping.is_asked

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def set_target(self, target: Target) -> None:
        """Run or pause."""
        self._target = target

    def stop(self) -> None:
        """End soon, with a last commit; returns at once."""
        self._stopping.ask()

    def cancel(self) -> None:
        """End without committing: others may own the task already."""
        self._stopping.cancel()

    def join(self, timeout_seconds: float) -> bool:
        """Wait for the end; False on a timeout."""
        self._thread.join(max(0.0, timeout_seconds))
        return not self._thread.is_alive()

    # --- the thread ---

    def _run(self) -> None:
        try:
            if self._open_services():
                with limits_of(self._services.settings).enforced():
                    self.run()
        finally:
            self._on_end(self)

    def _open_services(self) -> bool:
        """Wait for the cluster, without which not even a state can be written; False when the task was stopped."""
        for attempt in count():
            if self._stopping.is_asked:
                break
            try:
                self._services = self._lazy_services.open()
                return not self._stopping.is_asked
            except Exception:
                delay = _STARTS.delay(attempt)
                log.exception("task cannot start yet", extra={"task": str(self.plan.id), "again_in_s": delay})
                self._stopping.wait(delay)
        return False

    def run(self) -> None:
        """Run the task, on its thread."""
        try:
            if self._target is Target.PAUSED:
                self._report(State.PAUSED)
            while self._target is Target.PAUSED:  # nothing is opened before the first resume
                self._stopping.wait_or_raise(0.1)
            work = self._start_work()
            try:
                self._run_work(work)
                if not self._stopping.is_cancelled:
                    work.finish()
            finally:
                work.close()
        except Stopped:
            self._report(State.UNASSIGNED)
        except BaseException as error:  # noqa: BLE001 - the status shows any failure
            trace = self._trace(error)
            extra = {"task": str(self.plan.id), "trace": trace}
            if self._stopping.is_asked:
                log.warning("the task failed while it stopped", extra=extra)
                self._report(State.UNASSIGNED)
            elif FENCED in trace:
                log.warning("the task was replaced, or missed a response of the cluster: it starts again", extra=extra)
                self._report(State.RESTARTING, trace)
            else:
                log.error("the task failed", extra=extra)
                self._report(State.FAILED, trace)
        else:
            self._report(State.UNASSIGNED)

    def _start_work(self) -> Work:
        """The started work; an unreachable other system is waited for."""
        for attempt in count():
            setup = set_up(self.plan, self._services, self._stopping, self.counters)
            work: Work | None = None
            try:
                work = _make_work(setup)
                work.start()
                return work
            except OUTAGES as error:
                _close(work or setup)
                self._report(State.RESTARTING, self._trace(error))
                extra = {"task": str(self.plan.id), "error": self._conceal(str(error))}
                log.warning("the task cannot start yet", extra=extra)
                self._stopping.wait_or_raise(_STARTS.delay(attempt))
            except BaseException:
                _close(work or setup)
                raise
        raise AssertionError("count() never ends")

    def _run_work(self, work: Work) -> None:
        self._report(State.RUNNING)
        while not self._stopping.is_asked:
            if self._target is Target.PAUSED:
                if self.state is not State.PAUSED:
                    self._report(State.PAUSED)
                work.rest()
                continue
            if self.state is State.PAUSED:
                work.resume()
                self._report(State.RUNNING)
            try:
                work.turn()
            except EngineAway as away:
                self._wait_for_engine(away.error)
            else:
                if self.state is State.RESTARTING:
                    self._outages = 0
                    self._report(State.RUNNING)
            self.counters.cpu_seconds = time.thread_time()

    def _wait_for_engine(self, error: Exception) -> None:
        """Engine tasks move no records themselves; all we can report is that the engine is unreachable."""
        if self.state is not State.RESTARTING:
            self._report(State.RESTARTING, self._trace(error))
            extra = {"task": str(self.plan.id), "error": self._conceal(str(error))}
            log.warning("the engine does not answer", extra=extra)
        self._stopping.wait(_ENGINE_RETRIES.delay(self._outages))
        self._outages += 1

    def _trace(self, error: BaseException) -> str:
        return self._conceal(stack_trace(error))

    def _conceal(self, text: str) -> str:
        return conceal(text, self._services.secrets_in(self.plan.connector_config))

    def _report(self, state: State, trace: str | None = None) -> None:
        self.state = state
        if self._stopping.is_cancelled:
            return  # the task's next owner reports
        self._services.statuses.put_task(
            self.plan.id, state, worker_id=self.plan.worker_id, generation=self.plan.generation, trace=trace
        )


def _close(what: Work | TaskSetup) -> None:
    """Clean up after a failed start; an error here must not hide the reason."""
    try:
        what.close()
    except Exception as error:  # noqa: BLE001 - connectors may raise anything
        log.warning("cleaning up after a failed start failed", extra={"error": str(error)})


def _make_work(setup: TaskSetup) -> Work:
    if issubclass(setup.connector, EngineSinkConnector):
        return EngineWork(setup)
    if issubclass(setup.connector, SinkConnector):
        return SinkWork(setup)
    assert isinstance(setup.config, SourceConnectorConfig)
    if is_exactly_once(setup.config, setup.services.settings):
        return ExactlyOnceSource(setup)
    return AtLeastOnceSource(setup)
