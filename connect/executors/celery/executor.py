"""Runs tasks on Celery workers: the leader writes the tasks it wants, and a thread makes sure that they run."""

import logging
import threading
import time
from collections.abc import Callable, Collection
from typing import Any, Final

from msgspec.structs import replace

from connect.api.errors import RetriableError
from connect.executors.celery.desired_tasks import DesiredTasks, Seen, Survey
from connect.executors.celery.leases import Unreachable, touch
from connect.executors.celery.reconciliation import ROUND_S, Sent, due
from connect.runtime.counters import TaskCounters
from connect.runtime.models import TaskPlan
from connect.runtime.stopping import CANCEL_GRACE_S
from connect.settings import ConnectSettings
from connect.stores.config_writer import LeadershipLost
from connect.stores.states import Target, TaskId

log = logging.getLogger(__name__)

_POLL_S: Final = 0.05
_SETTLE_S: Final = 10.0
"""How long a new leader may take to start its tasks; other tasks are stopped after that."""
_SHORTEST_ROUND_S: Final = 0.02
_SOON_S: Final = 1.0
"""A lost task usually runs again within this time after a wake-up."""
_EXPIRES_S: Final = 3600
"""After this time Celery discards a message; old ones do no harm, but take up space."""


class CeleryExecutor:
    """The executor of the leader, which is the worker that took over last; other workers have no say."""

    def __init__(self, settings: ConnectSettings, *, settle_s: float = _SETTLE_S) -> None:
        self.on_lost: Callable[[TaskId, str], None] = lambda _, __: None
        self._settings = settings
        self._lease_s = settings.celery_lease_ms / 1000
        self._settle_s = max(settle_s, self._lease_s)
        self._store = DesiredTasks(settings)
        self._lock = threading.RLock()  # the wanted tasks change together with what Redis has
        self._wanted: dict[TaskId, TaskPlan] = {}
        self._sent: dict[TaskId, Sent] = {}
        self._reported_lost: dict[TaskId, int] = {}
        self._taken_over_at = self._swept_at = 0.0
        self._silent_until = 0.0  # when Redis is down, not every one of many tasks waits for it
        self._stamp: int | None = None
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        self._app: Any = None
        self._last_seen: list[Seen] = []
        touch(settings)

    # --- for the leader ---

    def take_over(self) -> None:
        """Become the leader, even without tasks to start: tasks of an earlier leader are stopped after a while."""
        with self._lock:
            self._taken_over_at = time.monotonic()
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._run, name="celery-reconciler", daemon=True)
                self._thread.start()

    def start(self, plan: TaskPlan) -> None:
        """Run a task; a run of the same generation continues, any other run of the task ends first."""
        self.take_over()
        self._want(plan)

    def set_target(self, task_id: TaskId, target: Target) -> None:
        """Pause or resume a task."""
        with self._lock:
            plan = self._wanted.get(task_id)
        if plan is not None and plan.target is not target:
            self._want(replace(plan, target=target))

    def stop(self, ids: Collection[TaskId]) -> None:
        """Return when none of these tasks runs for this leader; RetriableError when that is unknown."""
        with self._lock:
            for task_id in ids:
                self._wanted.pop(task_id, None)
                self._sent.pop(task_id, None)
                self._reported_lost.pop(task_id, None)
        # Time to stop it, to cancel it, to kill it, for its lease to end, and for Redis to come back.
        graceful_s = self._settings.task_shutdown_graceful_timeout_ms / 1000
        deadline = time.monotonic() + graceful_s + CANCEL_GRACE_S + 2 * self._lease_s + 10
        left = self._still_running(list(ids))
        while left:
            if time.monotonic() > deadline:
                raise RetriableError(f"these tasks may not have stopped: {', '.join(map(str, left))}")
            time.sleep(_POLL_S)
            left = self._still_running(left)

    def running_tasks(self) -> set[TaskId]:
        """The tasks that have an owner; the last known ones when Redis does not answer."""
        return {seen.id for seen in self._see() if seen.held_s}

    def counters(self) -> dict[TaskId, TaskCounters]:
        """Their counters, at most about a second old."""
        return {seen.id: seen.counters for seen in self._see() if seen.held_s and seen.counters is not None}

    def close(self) -> None:
        """Stop supervising the tasks. They continue, and the next leader decides about them."""
        self._closed.set()
        thread = self._thread
        if thread is not None:
            try:
                self._store.poke()
            except Unreachable:
                pass
            thread.join(ROUND_S + self._lease_s)
        if self._app is not None:
            self._app.close()
        self._store.close()

    def _want(self, plan: TaskPlan) -> None:
        """Run this plan from now on; if it cannot be written now, the next round writes it."""
        with self._lock:
            self._wanted[plan.id] = plan
            if time.monotonic() < self._silent_until:
                return
            try:
                try:
                    self._store.want(plan, stamp=self._leader_stamp())
                except LeadershipLost:  # a worker that starts a task is the leader again
                    self._stamp = self._store.lead()
                    self._store.want(plan, stamp=self._stamp)
                self._store.poke()
            except Unreachable as error:
                log.warning("Redis does not answer", extra={"error": str(error)})
                self._silent_until = time.monotonic() + ROUND_S

    def _still_running(self, ids: list[TaskId]) -> list[TaskId]:
        """Ask these tasks to stop; returns those that still run."""
        if not ids:
            return []
        try:
            stamp = self._leader_stamp()
            self._store.set_targets(ids, Target.STOPPED, stamp=stamp)
            return self._store.forget(ids, stamp=stamp)
        except LeadershipLost:
            return []  # they belong to another leader by now
        except Unreachable as error:
            log.warning("tasks cannot be stopped yet", extra={"error": str(error)})
            return ids

    def _see(self) -> list[Seen]:
        with self._lock:
            wanted = list(self._wanted)
        try:
            self._last_seen = self._store.survey(wanted).tasks
        except Unreachable as error:
            log.warning("Redis does not answer", extra={"error": str(error)})
        return self._last_seen

    def _leader_stamp(self) -> int:
        """The stamp of this leader; 0 when it does not lead."""
        with self._lock:
            if self._stamp is None and self._thread is not None:
                self._stamp = self._store.lead()
            return self._stamp or 0

    # --- the thread: compares the wanted tasks with the running ones, until another worker leads ---

    def _run(self) -> None:
        while not self._closed.is_set() and self._thread is threading.current_thread():
            try:
                pause = self._reconcile()
                self._sweep()
                self._store.wait_for_news(pause)
            except Unreachable as error:
                log.warning("Redis does not answer", extra={"error": str(error)})
                self._closed.wait(self._lease_s / 10)
            except LeadershipLost:
                log.info("another worker has taken over")  # the next round sees to it
            except Exception:
                log.exception("reconciling tasks failed")
                self._closed.wait(ROUND_S)
            self._closed.wait(_SHORTEST_ROUND_S)

    def _reconcile(self) -> float:
        """Write plans that Redis lacks, wake up workers, report lost tasks; returns how long to wait."""
        with self._lock:
            stamp, wanted, sent = self._leader_stamp(), dict(self._wanted), dict(self._sent)
        survey = self._store.survey(list(wanted))
        if survey.leader > stamp and self._has_lost_lead():
            return ROUND_S
        actions = due(survey, wanted, sent, now=time.monotonic())
        for plan in actions.writes:
            with self._lock:
                if self._wanted.get(plan.id) == plan:
                    self._store.want(plan, stamp=self._leader_stamp())
        for seen in actions.wakes:
            self._wake(seen, wanted[seen.id].generation)
        self._report_lost(survey, sent)
        return actions.next_s

    def _has_lost_lead(self) -> bool:
        """Check again under the lock: this worker may have just taken over."""
        with self._lock:
            if self._store.survey([]).leader <= self._leader_stamp():
                return False
            log.warning("another worker leads now", extra={"tasks": len(self._wanted)})
            self._wanted.clear()
            self._sent.clear()
            self._reported_lost.clear()
            self._stamp = None
            self._thread = None
            return True

    def _wake(self, seen: Seen, generation: int) -> None:
        from connect.executors.celery.tasks import RUN, create_app

        if self._app is None:
            self._app = create_app(self._settings)
        message = [seen.id.connector, seen.id.task, generation, seen.epoch]
        self._app.send_task(RUN, args=message, expires=_EXPIRES_S, retry=False)
        with self._lock:
            self._sent[seen.id] = Sent(seen.epoch, generation, time.monotonic())

    def _report_lost(self, survey: Survey, sent: dict[TaskId, Sent]) -> None:
        """Report owners that neither returned their lease nor were replaced soon."""
        now = time.monotonic()
        for seen in survey.tasks:
            last = sent.get(seen.id)
            is_ownerless = not seen.held_s and bool(seen.owner)
            is_unanswered = last is not None and last.epoch == seen.epoch and now - last.at > _SOON_S
            if not is_ownerless or not is_unanswered or self._reported_lost.get(seen.id) == seen.epoch:
                continue
            with self._lock:
                if seen.id not in self._wanted:
                    continue
                self._reported_lost[seen.id] = seen.epoch
            reason = f"Celery worker {seen.owner.partition('/')[0]} is gone"
            log.error("task lost", extra={"task": str(seen.id), "reason": reason})
            self.on_lost(seen.id, reason)

    def _sweep(self) -> None:
        """Stop tasks that an earlier leader wanted and this one does not."""
        now = time.monotonic()
        with self._lock:
            is_time = now - max(self._taken_over_at, self._swept_at) > self._settle_s
            if not is_time or self._stamp is None:
                return
            self._swept_at = now
            strangers = self._store.task_ids() - set(self._wanted)
            self._store.set_targets(strangers, Target.STOPPED, stamp=self._stamp)
            self._store.forget(strangers, stamp=self._stamp)
