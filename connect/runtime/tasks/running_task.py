"""A task on a thread of its own: its life from the first state to the last, written to the status topic."""

import logging
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Final

from connect.api.backoff import Backoff
from connect.api.engine import EngineSinkConnector
from connect.api.sink import SinkConnector
from connect.runtime.configuration.config_providers import concealed
from connect.runtime.configuration.connector_config import SourceConnectorConfig
from connect.runtime.counters import TaskCounters
from connect.runtime.failures.traces import stack_trace
from connect.runtime.models import State, Target, TaskPlan
from connect.runtime.stopping import Stopped, Stopping
from connect.runtime.tasks.engine_task import EngineWork
from connect.runtime.tasks.exactly_once_source import ExactlyOnceSource
from connect.runtime.tasks.sink_task import SinkWork
from connect.runtime.tasks.source_task import AtLeastOnceSource
from connect.runtime.tasks.work import OUTAGES, Ground, Work, ground_of
from connect.runtime.tasks.world import World
from connect.settings import ConnectSettings

log = logging.getLogger(__name__)

_STARTS: Final = Backoff(0.5, 10.0)
_ENGINE_RETRIES: Final = Backoff(0.5, 5.0)


class RunningTask:
    """Runs until it is stopped, cancelled, or fails."""

    def __init__(self, plan: TaskPlan, world: World, *, on_end: Callable[["RunningTask"], None] | None = None) -> None:
        self.plan = plan
        self.counters = TaskCounters()
        self.state = State.UNASSIGNED
        self._world = world
        self._on_end = on_end
        self._target = plan.target
        self._stopping = Stopping()
        self._outages = 0
        self._thread = threading.Thread(target=self._run, name=f"task-{plan.id}", daemon=True)

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    @property
    def is_owner(self) -> Callable[[], bool]:
        """Asked before anything is written: whether the task is still this process's."""
        return self._stopping.is_owner

    @is_owner.setter
    def is_owner(self, ask: Callable[[], bool]) -> None:
        self._stopping.is_owner = ask

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def set_target(self, target: Target) -> None:
        """Carry records, or pause."""
        self._target = target

    def stop(self) -> None:
        """End soon, with a last commit."""
        self._stopping.ask()

    def cancel(self) -> None:
        """End without committing: others may own the task already."""
        self._stopping.cancel()

    def join(self, timeout_seconds: float) -> bool:
        """Wait for the end; False when it did not come in time."""
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    # --- the thread ---

    def _run(self) -> None:
        try:
            self._live()
        except Stopped:
            self._tell(State.UNASSIGNED)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the status tells it
            self._fail(error)
        finally:
            if self._on_end is not None:
                self._on_end(self)

    def _live(self) -> None:
        if self._wait_while_paused():
            work = self._started()
            try:
                self._carry(work)
                if not self._stopping.is_cancelled:
                    work.finish()
            finally:
                work.close()
        self._tell(State.UNASSIGNED)

    def _started(self) -> Work:
        """The work, ready: the other side may be away when a task starts, and is waited for as it is later."""
        for attempt in count():
            ground = ground_of(self.plan, self._world, self._stopping, self.counters)
            work: Work | None = None
            try:
                work = _work(ground)
                work.start()
                return work
            except OUTAGES as error:
                _close(work or ground)
                self._tell(State.RESTARTING, self._trace(error))
                log.warning("a task cannot start yet", extra={"task": str(self.plan.id), "error": str(error)})
                self._stopping.wait_or_raise(_STARTS.delay(attempt))
            except BaseException:
                _close(work or ground)
                raise
        raise AssertionError("attempts have no end")

    def _wait_while_paused(self) -> bool:
        """Nothing is opened for a task that is paused from the start; False when it is stopped meanwhile."""
        if self._target is Target.PAUSED:
            self._tell(State.PAUSED)
        while self._target is Target.PAUSED and not self._stopping.wait(0.1):
            pass
        return not self._stopping.is_asked

    def _carry(self, work: Work) -> None:
        self._tell(State.RUNNING)
        while not self._stopping.is_asked:
            if self._target is Target.PAUSED:
                if self.state is not State.PAUSED:
                    self._tell(State.PAUSED)
                work.rest()
                continue
            if self.state is State.PAUSED:
                if isinstance(work, SinkWork):
                    work.resume()
                self._tell(State.RUNNING)
            self._turn(work)
            self.counters.cpu_seconds = time.thread_time()

    def _turn(self, work: Work) -> None:
        try:
            work.turn()
        except OUTAGES as error:
            if not isinstance(work, EngineWork):
                raise
            self._wait_for_engine(error)
            return
        if self.state is State.RESTARTING:
            self._outages = 0
            self._tell(State.RUNNING)

    def _wait_for_engine(self, error: Exception) -> None:
        """Nobody has to do with records here: an engine that is away is all that can be told of."""
        if self.state is not State.RESTARTING:
            self._tell(State.RESTARTING, self._trace(error))
            log.warning("an engine does not answer", extra={"task": str(self.plan.id), "error": str(error)})
        self._stopping.wait(_ENGINE_RETRIES.delay(self._outages))
        self._outages += 1

    def _fail(self, error: BaseException) -> None:
        trace = self._trace(error)
        extra = {"task": str(self.plan.id), "trace": trace}
        if self._stopping.is_asked:
            log.warning("a task failed while it stopped", extra=extra)
            self._tell(State.UNASSIGNED)
            return
        log.error("a task failed", extra=extra)
        self._tell(State.FAILED, trace)

    def _trace(self, error: BaseException) -> str:
        return concealed(stack_trace(error), self._world.providers.secrets(self.plan.connector_config))

    def _tell(self, state: State, trace: str | None = None) -> None:
        self.state = state
        if self._stopping.is_cancelled:
            return  # whoever has the task now tells how it fares
        self._world.statuses.put_task(
            self.plan.id, state, worker_id=self.plan.worker_id, generation=self.plan.generation, trace=trace
        )


def _close(what: Work | Ground) -> None:
    """Leave nothing open of a start that failed; what goes wrong with that is not why."""
    try:
        what.close()
    except Exception as error:  # noqa: BLE001 - connectors are anybody's code
        log.warning("a task that did not start could not be closed", extra={"error": str(error)})


def _work(ground: Ground) -> Work:
    if issubclass(ground.connector, EngineSinkConnector):
        return EngineWork(ground)
    if issubclass(ground.connector, SinkConnector):
        return SinkWork(ground)
    assert isinstance(ground.config, SourceConnectorConfig)
    if is_exactly_once(ground.config, ground.world.settings):
        return ExactlyOnceSource(ground)
    return AtLeastOnceSource(ground)


def is_exactly_once(config: SourceConnectorConfig, settings: ConnectSettings) -> bool:
    """Whether a source writes in transactions: when it must, or all do."""
    match settings.exactly_once_source_support:
        case "enabled":
            return True
        case "requested":
            return config.exactly_once_support == "required"
        case _:
            return False
