"""What a worker does for as long as it leads: connectors run, tasks are started, changes are written."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Final

from connect.api.errors import ConnectError
from connect.runtime.leading.connector_work import ConnectorWork
from connect.runtime.leading.lanes import Lanes
from connect.runtime.leading.office import Office
from connect.runtime.models import State, TaskId
from connect.stores.config_records import Leader
from connect.stores.config_writer import ConfigWriter, Deposed
from core_broker.client.errors import ClientError

log = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 1.0
_RETRY_SECONDS_MAX: Final = 30.0


class Reign:
    """Begins when the group gives this worker the lead, and ends for good when it takes it away."""

    def __init__(self, office: Office, *, url: str, on_deposed: Callable[[], None]) -> None:
        self.lanes = Lanes()
        self.writer = ConfigWriter(office.settings, office.configs)
        self._office = office
        self._url = url
        self._on_deposed = on_deposed
        self.has_begun = False
        """Whether changes may be made."""
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._works: dict[str, ConnectorWork] = {}
        self._queued: set[str] = set()
        self._timers: set[threading.Timer] = set()

    @property
    def is_over(self) -> bool:
        """Whether nothing may be started any more."""
        return self._over.is_set()

    def begin(self) -> None:
        """Take over: whoever led before can write no more. Then all that the topics say is done."""
        office = self._office
        self.writer.start()
        self.writer.put_leader(Leader(url=self._url, worker_id=office.worker_id))
        office.statuses.refresh()
        office.executor.on_lost = self._task_lost
        if office.lasting is not None:
            office.lasting.take_over()
        if self._status_changed not in office.statuses.listeners:
            office.statuses.listeners.append(self._status_changed)
        names = office.configs.connectors()
        self.has_begun = True
        for name in names:
            self.bring(name)
        for name in office.statuses.connectors() - set(names):
            self.bring(name)
        log.info("this worker leads", extra={"worker": office.worker_id, "connectors": len(names)})

    def depose(self) -> None:
        """From now on nothing is started or written; returns at once."""
        self._over.set()

    def end(self) -> None:
        """Stop everything; returns when nothing runs any more."""
        self.depose()
        office = self._office
        if self._status_changed in office.statuses.listeners:
            office.statuses.listeners.remove(self._status_changed)
        with self._lock:
            for timer in self._timers:
                timer.cancel()
            works = list(self._works.values())
        self.writer.close()
        self._end_tasks()
        for work in works:
            work.hurry()
        endings = [self.lanes.submit(work.name, work.end) for work in works]
        limit = office.settings.task_shutdown_graceful_timeout_ms / 1000 + 2
        wait(endings, timeout=limit)
        self.lanes.close(limit)
        # Something may have been started by a job that had begun before the end.
        self._end_tasks()

    def _end_tasks(self) -> None:
        """Tasks that outlive this worker are the next leader's."""
        if self._office.lasting is None:
            self._office.executor.stop(self._office.executor.owned())

    # --- work ---

    def bring(self, name: str, *, attempt: int = 0) -> None:
        """Make a connector what the config topic says; several requests that wait become one."""
        with self._lock:
            if name in self._works:
                self._works[name].hurry()
            if name in self._queued:
                return
            self._queued.add(name)

        def job() -> None:
            with self._lock:
                self._queued.discard(name)
            self._attempted(name, lambda work: work.bring(), attempt)

        self.submit(name, job)

    def restart(self, name: str, *, connector: bool, tasks: list[int]) -> None:
        """Begin again with the connector object, or with tasks, or both."""

        def job(work: ConnectorWork) -> None:
            if connector:
                work.bring(is_restart=True)
            if tasks:
                work.restart_tasks(tasks)

        self.submit(name, lambda: self._attempted(name, job, 0))

    def submit(self, name: str, job: Callable[[], None]) -> "Future[None]":
        """Do something for a connector, after all that is to be done for it already."""
        return self.lanes.submit(name, job)

    def attempt(self, name: str, job: Callable[[], None]) -> None:
        """Do something for a connector in its lane; when it fails, the connector is brought to what it is to be."""
        self.submit(name, lambda: self._attempted(name, lambda _: job(), 0))

    def later(self, seconds: float, name: str, job: Callable[[], None]) -> None:
        """Attempt something for a connector after a while."""
        self._after(seconds, lambda: self.attempt(name, job))

    def _after(self, seconds: float, call: Callable[[], None]) -> None:
        def fire() -> None:
            with self._lock:
                self._timers.discard(timer)
            if not self.is_over:
                call()

        timer = threading.Timer(seconds, fire)
        timer.daemon = True
        with self._lock:
            if self.is_over:
                return
            self._timers.add(timer)
        timer.start()

    def _attempted(self, name: str, job: Callable[[ConnectorWork], None], attempt: int) -> None:
        """What the cluster did not let us do now is tried again from what the topic says then."""
        if self.is_over:
            return
        with self._lock:
            work = self._works.get(name)
            if work is None:
                work = self._works[name] = ConnectorWork(name, self._office, self)
        try:
            job(work)
        except Deposed:
            self._on_deposed()
        except (ConnectError, ClientError) as error:
            told = {"connector": name, "error": str(error), "attempt": attempt}
            log.warning("connector is not yet what it is to be", extra=told)
            delay = min(_RETRY_SECONDS * 2 ** min(attempt, 10), _RETRY_SECONDS_MAX)
            self._after(delay, lambda: self.bring(name, attempt=attempt + 1))
        else:
            if not self._office.configs.contains(name):
                with self._lock:
                    self._works.pop(name, None)

    # --- what tasks and their processes tell ---

    def _task_lost(self, task: TaskId, reason: str) -> None:
        if self._office.lasting is not None:
            return  # It sees to it by itself.
        self.submit(
            task.connector,
            lambda: self._attempted(task.connector, lambda work: work.task_lost(task.task, reason), 0),
        )

    def _status_changed(self, name: str, number: int | None) -> None:
        if number is None or self.is_over:
            return
        task = TaskId(name, number)
        status = self._office.statuses.task(task)
        if status is None:
            return
        plan = self._office.configs.plan(name)
        if plan is None or number >= len(plan.tasks):
            # The last word of a task that is no more: nobody else will ever take it back.
            self._office.statuses.put_task(task, State.DESTROYED, worker_id="", generation=0)
        elif status.state is State.FAILED:
            self.submit(name, lambda: self._attempted(name, lambda work: work.task_failed(number), 0))
