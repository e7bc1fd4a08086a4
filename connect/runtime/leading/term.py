"""The control loop of a leader: plan, carry out the actions, observe.

The loop decides under a lock, only by `connect/runtime/leading/plan.py`. Steps that wait or run a connector's code
get a thread while they last, one for each connector at most, so that no connector blocks another.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any, Final

from connect.api.errors import ConnectError
from connect.runtime.errors import NotLeader
from connect.runtime.failures.traces import stack_trace
from connect.runtime.leading import plan as planning
from connect.runtime.leading.connector_host import ConnectorHost
from connect.runtime.leading.performer import ConnectorFailed, Performer
from connect.runtime.leading.plan import (
    Action,
    AskForTasks,
    Busy,
    Call,
    CleanUp,
    GiveUpCall,
    Observed,
    ReadConfig,
    Report,
    Rules,
    StartConnector,
    Step,
    StopConnector,
)
from connect.runtime.leading.services import LeaderServices
from connect.runtime.models import State, TaskId
from connect.runtime.signatures import new_session_key
from connect.stores.config_records import Leader
from connect.stores.config_writer import ConfigWriter, LeadershipLost
from core_broker.client.errors import ClientError

log = logging.getLogger(__name__)

_BEGIN_RETRY_SECONDS: Final = 1.0
_AT_ONCE: Final = 16
"""How many connectors carry out a step at the same time; slow steps do not count."""
_CROWDED_SECONDS: Final = 0.1
_BROKEN_SECONDS: Final = 30.0
_VERBS: Final[dict[type[Call], str]] = {
    ReadConfig: "be read",
    StartConnector: "start",
    StopConnector: "stop",
    AskForTasks: "plan its tasks",
    CleanUp: "clean up",
}

Request = tuple[Callable[[], Any], Future[Any]]


class _Entry:
    """One connector."""

    def __init__(self, performer: Performer) -> None:
        self.performer = performer
        self.observed = Observed()
        self.job: _Job | None = None
        self.requests: deque[Request] = deque()
        """Users' requests that need the connector to be left alone."""


class _Job:
    """The work of a thread for a connector."""

    def __init__(self) -> None:
        self.started_at = time.monotonic()
        self.is_given_up = False


class LeaderTerm:
    """Begins when the group makes this worker the leader, and ends for good when it does no longer."""

    def __init__(
        self,
        services: LeaderServices,
        *,
        url: str,
        on_lead_lost: Callable[[], None],
        predecessor: "LeaderTerm | None" = None,
    ) -> None:
        """`on_lead_lost` is called when another worker turns out to lead; waits for the end of the `predecessor`."""
        self.writer = ConfigWriter(services.settings, services.configs)
        self.has_begun = False
        """Whether changes may be made."""
        self._services = services
        self._url = url
        self._on_lead_lost = on_lead_lost
        settings = services.settings
        self._rules = Rules(
            worker_id=services.worker_id,
            tasks_outlive_leader=services.lasting is not None,
            call_seconds=settings.rest_request_timeout_ms / 1000,
            stop_seconds=settings.task_shutdown_graceful_timeout_ms / 1000 + 1,
        )
        self._changed = threading.Condition()
        self._entries: dict[str, _Entry] = {}
        self._dirty: set[str] = set()
        self._looks: dict[str, float] = {}
        """When to plan connectors again even if nothing happens."""
        self._crowded_out: dict[str, None] = {}
        """Connectors that wait until fewer steps are in progress, in order."""
        self._is_over = False
        self._thread = threading.Thread(target=self._run, args=(predecessor,), name="leader", daemon=True)
        self._thread.start()

    # --- from any thread ---

    def end(self) -> None:
        """Start and write nothing more; returns at once."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def join(self) -> None:
        """Wait until everything has stopped."""
        self._thread.join()

    def wake(self, name: str) -> None:
        """The desired state of a connector has changed."""
        with self._changed:
            entry = self._entry(name)
            entry.observed = planning.wake(entry.observed)
            self._look_at(name)

    def restart(self, name: str, *, connector: bool, tasks: Collection[int], is_shown: bool) -> None:
        """Restart the connector object, tasks, or both; `is_shown`: report them as RESTARTING at once."""
        statuses, worker_id = self._services.statuses, self._services.worker_id
        with self._changed:
            entry = self._entry(name)
            entry.observed = planning.restart(entry.observed, connector=connector, tasks=tasks)
            if connector and is_shown:
                known = statuses.connector(name)
                generation = known.generation if known else 0
                statuses.put_connector(name, State.RESTARTING, worker_id=worker_id, generation=generation)
            for number in tasks if is_shown else ():
                task, found = TaskId(name, number), statuses.task(TaskId(name, number))
                generation = found.generation if found else 0
                statuses.put_task(task, State.RESTARTING, worker_id=worker_id, generation=generation)
            self._look_at(name)

    def run_alone(self, name: str, work: Callable[[], Any]) -> "Future[Any]":
        """Run something when no step is left for a connector, and start none meanwhile."""
        future: Future[Any] = Future()
        with self._changed:
            if self._is_over:
                future.set_exception(NotLeader(None))
            else:
                self._entry(name).requests.append((work, future))
                self._look_at(name)
        return future

    def _entry(self, name: str) -> _Entry:
        if name not in self._entries:
            callbacks: Any = {"on_new_tasks": self._on_new_tasks, "on_failure": self._on_failure}
            self._entries[name] = _Entry(Performer(name, self._services, self.writer, **callbacks))
        return self._entries[name]

    def _look_at(self, name: str) -> None:
        self._dirty.add(name)
        self._changed.notify_all()

    def _on_status(self, name: str, number: int | None) -> None:
        if number is not None:
            with self._changed:
                self._look_at(name)

    def _on_task_lost(self, task: TaskId, reason: str) -> None:
        if self._services.lasting is None:  # a lasting executor restarts its tasks itself
            with self._changed:
                entry = self._entry(task.connector)
                entry.observed = planning.lose_task(entry.observed, task.task, reason)
                self._look_at(task.connector)

    def _on_new_tasks(self, host: ConnectorHost) -> None:
        with self._changed:
            entry = self._entry(host.name)
            if entry.performer.host is host:
                entry.observed = replace(entry.observed, has_new_tasks=True)
                self._look_at(host.name)

    def _on_failure(self, host: ConnectorHost, error: Exception) -> None:
        with self._changed:
            entry = self._entry(host.name)
            if entry.performer.host is host:
                self._note_failure(host.name, entry, error)

    def _note_failure(self, name: str, entry: _Entry, error: BaseException) -> None:
        trace = self._services.conceal(name, stack_trace(error))
        log.error("connector failed", extra={"connector": name, "trace": trace})
        observed = entry.observed
        step = observed.busy.step if observed.busy is not None else None
        offset = step.desired.config_offset if isinstance(step, StartConnector) else observed.running_offset
        if offset is not None:
            entry.observed = planning.fail_connector(observed, offset, trace, time.monotonic())
            self._look_at(name)

    # --- the loop ---

    def _run(self, predecessor: "LeaderTerm | None") -> None:
        if predecessor is not None:
            predecessor.join()
        try:
            if self._begin():
                self._loop()
        finally:
            self._finish()

    def _begin(self) -> bool:
        """Take over, so that no earlier leader can write. False when the term ends before that."""
        services = self._services
        while not self._is_over:
            try:
                self.writer.start()
                self.writer.put_leader(Leader(url=self._url, worker_id=services.worker_id))
                if services.settings.methods:
                    self.writer.put_session_key(new_session_key())
                services.statuses.refresh()
                services.executor.on_lost = self._on_task_lost
                if services.lasting is not None:
                    services.lasting.take_over()
            except LeadershipLost:
                self._on_lead_lost()
                return False
            except Exception:
                log.exception("this worker cannot lead yet")
                with self._changed:
                    self._changed.wait_for(lambda: self._is_over, _BEGIN_RETRY_SECONDS)
            else:
                services.statuses.listeners.append(self._on_status)
                names = services.configs.connectors()
                with self._changed:
                    self.has_begun = True
                    self._dirty.update(names, services.statuses.connectors())
                log.info("this worker leads", extra={"worker": services.worker_id, "connectors": len(names)})
                return True
        return False

    def _loop(self) -> None:
        with self._changed:
            while not self._is_over:
                now = time.monotonic()
                due = {name for name, moment in self._looks.items() if moment <= now}
                names, self._dirty = self._dirty | due, set()
                for name in names:
                    try:
                        self._plan(name)
                    except Exception:  # one connector must not block the others
                        log.exception("connector could not be planned", extra={"connector": name})
                        self._looks[name] = now + _BROKEN_SECONDS
                timeout = min(self._looks.values()) - time.monotonic() if self._looks else None
                self._changed.wait_for(lambda: self._dirty or self._is_over, timeout and max(0.0, timeout))

    def _plan(self, name: str) -> None:
        """Plan one connector, and start its actions."""
        entry, now = self._entry(name), time.monotonic()
        desired = self._services.configs.desired(name)
        self._observe(name, entry)
        if desired is not None:
            entry.observed = replace(entry.observed, last_config=desired.config)
        actions = planning.plan(desired, entry.observed, self._rules, now)
        self._looks.pop(name, None)
        self._crowded_out.pop(name, None)
        if actions and isinstance(actions[0], GiveUpCall):
            self._give_up_call(name, entry, actions[0])
        elif actions and all(isinstance(action, Report) for action in actions):  # these never wait
            for action in actions:
                self._carry_out_one(entry, _Job(), action)
            self._look_at(name)
        elif (actions or entry.requests) and entry.job is None:
            jobs = [entry.job for entry in self._entries.values() if entry.job is not None]
            if sum(now - job.started_at < planning.PATIENCE_SECONDS for job in jobs) >= _AT_ONCE:
                self._crowded_out[name] = None
                self._looks[name] = now + _CROWDED_SECONDS
                return
            self._begin_job(name, entry, actions, now)
        elif desired is None and entry.observed.is_empty and entry.job is None:
            del self._entries[name]
            return
        look = planning.next_look(entry.observed, self._rules, now)
        if look is not None:
            self._looks[name] = look

    def _observe(self, name: str, entry: _Entry) -> None:
        """Read the stores and the executor."""
        statuses, tasks = self._services.statuses, entry.observed.tasks
        if any(run.lost is not None for run in tasks.values()):
            running = self._services.executor.running_tasks()  # a task that was restarted since is not lost
            tasks = {n: replace(run, lost=None) if run.task.id in running else run for n, run in tasks.items()}
        entry.observed = replace(
            entry.observed,
            tasks=tasks,
            status=statuses.connector(name),
            task_statuses=statuses.tasks(name),
            topics=tuple(use.name for use in statuses.topics(name)),
            position=self._services.configs.position,
        )

    def _begin_job(self, name: str, entry: _Entry, actions: Sequence[Action], now: float) -> None:
        job = entry.job = _Job()
        step = next((action for action in actions if isinstance(action, Step)), None)
        entry.observed = replace(entry.observed, busy=Busy(step=step, since=now))
        work: Callable[[], None] = partial(self._carry_out, name, entry, job, actions)
        if not actions:
            work = partial(self._run_request, name, entry, entry.requests.popleft())
        threading.Thread(target=work, name=f"connector-{name}", daemon=True).start()

    def _give_up_call(self, name: str, entry: _Entry, action: GiveUpCall) -> None:
        busy = entry.observed.busy
        assert busy is not None
        assert isinstance(busy.step, Call)
        if entry.job is not None:
            entry.job.is_given_up = True
            entry.job = None
        entry.performer.give_up_call(busy.step)
        error = ConnectError(f"The connector {name} took longer than {action.seconds:g} s to {_VERBS[type(busy.step)]}")
        log.warning("connector hangs", extra={"connector": name, "error": str(error)})
        entry.observed = planning.give_up(entry.observed, stack_trace(error), time.monotonic())
        self._look_at(name)

    # --- on the thread of a job ---

    def _carry_out(self, name: str, entry: _Entry, job: _Job, actions: Sequence[Action]) -> None:
        error: BaseException | None = None
        try:
            for action in actions:
                if not self._carry_out_one(entry, job, action):
                    break
        except BaseException as failure:  # noqa: BLE001 - the loop handles any error
            error = failure
        with self._changed:
            if not job.is_given_up:
                self._settle(name, entry, error)
                self._job_ended(name, entry)

    def _carry_out_one(self, entry: _Entry, job: _Job, action: Action) -> bool:
        """False when the rest must not be carried out."""
        with self._changed:
            if self._is_over or job.is_given_up or isinstance(action, GiveUpCall):
                return False
            if isinstance(action, Report):
                entry.performer.report(action)
                entry.observed = planning.note(entry.observed, action)
                return True
            entry.observed = planning.begin(entry.observed, action, time.monotonic())
        result = entry.performer.perform(action)
        with self._changed:
            if not job.is_given_up:
                entry.observed = planning.complete(entry.observed, action, time.monotonic(), result)
        return True

    def _settle(self, name: str, entry: _Entry, error: BaseException | None) -> None:
        """Record the outcome of a job."""
        if error is None or isinstance(error, ConnectorFailed):
            if error is not None:
                self._note_failure(name, entry, error.__cause__ or error)
            entry.observed = planning.finish(entry.observed)
            return
        if isinstance(error, LeadershipLost):
            self._on_lead_lost()
        entry.observed = planning.retry(entry.observed, time.monotonic())
        is_expected = isinstance(error, ConnectError | ClientError)
        extra = {"connector": name, "error": str(error), "attempt": entry.observed.failed_steps}
        message = "connector has not reached its desired state, retrying"
        log.warning(message, extra=extra, exc_info=None if is_expected else error)

    def _run_request(self, name: str, entry: _Entry, request: Request) -> None:
        work, future = request
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            future.set_exception(error)
        with self._changed:
            entry.observed = replace(entry.observed, busy=None)
            self._job_ended(name, entry)

    def _job_ended(self, name: str, entry: _Entry) -> None:
        entry.job = None
        self._look_at(name)
        if self._crowded_out:
            self._look_at(next(iter(self._crowded_out)))

    # --- the end ---

    def _finish(self) -> None:
        """Stop everything; tasks that outlive this worker are the next leader's."""
        self.end()
        services = self._services
        if self._on_status in services.statuses.listeners:
            services.statuses.listeners.remove(self._on_status)
        self.writer.close()
        try:
            self._stop_tasks()
            with self._changed:
                for entry in self._entries.values():
                    threading.Thread(target=self._stop_connector, args=(entry,), daemon=True).start()
                    for _, future in entry.requests:
                        future.set_exception(NotLeader(None))
                entries = self._entries.values()
                self._changed.wait_for(
                    lambda: all(entry.job is None and entry.performer.host is None for entry in entries),
                    self._rules.stop_seconds + 1,
                )
            # A step that was in progress at the end may have started something.
            self._stop_tasks()
        except Exception:
            log.exception("not everything could be stopped")
        log.info("this worker no longer leads", extra={"worker": services.worker_id})

    def _stop_connector(self, entry: _Entry) -> None:
        entry.performer.stop_connector()
        with self._changed:
            self._changed.notify_all()

    def _stop_tasks(self) -> None:
        if self._services.lasting is None:
            self._services.executor.stop(self._services.executor.running_tasks())
