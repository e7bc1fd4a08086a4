"""Runs tasks on Celery workers: the leader writes what it wants, wakes workers up and sees to it that all tasks run."""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Collection
from typing import Any, Final

from msgspec.structs import replace

from connect.api.errors import RetriableError
from connect.executors.ending import CANCEL_GRACE_S
from connect.executors.leases import Unreachable
from connect.executors.reconciliation import ROUND_S, Sent, due
from connect.executors.wishes import Seen, Wishes
from connect.runtime.counters import TaskCounters
from connect.runtime.models import TaskPlan
from connect.settings import ConnectSettings
from connect.stores.states import Target, TaskId

log = logging.getLogger(__name__)

_POLL_S: Final = 0.05
_SHORTEST_ROUND_S: Final = 0.02
_EXPIRES_S: Final = 3600
"""After that a message is thrown away unread; old ones do no harm, they only take room."""
_SETTLE_S: Final = 10.0
"""How long a new leader may take to tell all that it wants; what it has not told by then is stopped."""


class CeleryExecutor:
    """The executor of the worker that leads; others must not start tasks. Whoever started tasks last leads."""

    def __init__(self, settings: ConnectSettings, *, settle_s: float = _SETTLE_S) -> None:
        self.on_lost: Callable[[TaskId, str], None] = _nobody_needs_to_know
        self._settings = settings
        self._lease_s = settings.celery_lease_ms / 1000
        self._wishes = Wishes(settings)
        self._token = secrets.token_hex(16)
        self._settle_s = max(settle_s, settings.celery_lease_ms / 1000)
        self._lock = threading.Lock()
        self._writing = threading.RLock()  # what is wanted changes together with what is written
        self._wanted: dict[TaskId, TaskPlan] = {}
        self._sent: dict[TaskId, Sent] = {}
        self._last_seen: list[Seen] = []
        self._told_at = 0.0
        self._swept_at = 0.0
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._app: Any = None

    def take_over(self) -> None:
        """Lead: what runs and is wanted goes on, what is not wanted any more is stopped after a while."""
        with self._lock:
            self._told_at = time.monotonic()
            if self._thread is not None:
                return
            self._thread = threading.Thread(target=self._reconcile, name="celery-reconciler", daemon=True)
        self._try(lambda: self._wishes.lead(self._token, is_forced=True))
        self._thread.start()

    def start(self, plan: TaskPlan) -> None:
        """Run a task; a run of the same plan goes on, any other one of the task ends first."""
        self.take_over()
        with self._writing:
            with self._lock:
                self._wanted[plan.id] = plan
            self._try(lambda: self._wishes.want(plan))
        self._try(self._wishes.poke)

    def set_target(self, task_id: TaskId, target: Target) -> None:
        """Pause a task, or let it go on."""
        with self._writing:
            with self._lock:
                if task_id not in self._wanted:
                    return
                self._wanted[task_id] = replace(self._wanted[task_id], target=target)
            self._try(lambda: self._wishes.set_targets([task_id], target))

    def stop(self, ids: Collection[TaskId]) -> None:
        """Return when none of these tasks runs any more; RetriableError when that cannot be known."""
        with self._writing, self._lock:
            for task_id in ids:
                self._wanted.pop(task_id, None)
                self._sent.pop(task_id, None)
        deadline = time.monotonic() + self._longest_stop_s
        left = list(ids)
        while left:
            try:
                self._wishes.set_targets(left, Target.STOPPED)
                left = [task_id for task_id in left if not self._wishes.forget(task_id)]
            except Unreachable as error:
                log.warning("tasks cannot be stopped yet", extra={"error": str(error)})
            if left and time.monotonic() > deadline:
                names = ", ".join(map(str, left))
                raise RetriableError(f"nobody knows whether these tasks have stopped: {names}")
            if left:
                time.sleep(_POLL_S)

    def owned(self) -> set[TaskId]:
        """The tasks that somebody owns; those of the last answer when Redis does not answer."""
        return {seen.id for seen in self._seen() if seen.held_s}

    def counters(self) -> dict[TaskId, TaskCounters]:
        """What each of them has done so far, at most about a second old."""
        return {seen.id: seen.counters for seen in self._seen() if seen.held_s and seen.counters is not None}

    def close(self) -> None:
        """Stop looking after the tasks: they go on, and the next leader takes them over."""
        self._closed.set()
        if self._thread is not None:
            self._try(self._wishes.poke)
            self._thread.join(ROUND_S + self._lease_s)
        self._wishes.close()
        if self._app is not None:
            self._app.close()

    @property
    def _longest_stop_s(self) -> float:
        """Asked, cancelled, killed, and its lease over; and time for Redis to come back."""
        graceful_s = self._settings.task_shutdown_graceful_timeout_ms / 1000
        return graceful_s + CANCEL_GRACE_S + 2 * self._lease_s + 10

    def _seen(self) -> list[Seen]:
        with self._lock:
            ids = list(self._wanted)
        try:
            self._last_seen = self._wishes.survey(ids).tasks
        except Unreachable as error:
            log.warning("Redis does not answer", extra={"error": str(error)})
        return self._last_seen

    def _try(self, step: Callable[[], None]) -> None:
        """What fails now is done by the reconciler later."""
        try:
            step()
        except Unreachable as error:
            log.warning("Redis does not answer", extra={"error": str(error)})

    # --- the reconciler ---

    def _reconcile(self) -> None:
        while not self._closed.is_set() and self._thread is threading.current_thread():
            pause = ROUND_S
            try:
                pause = self._round()
                self._sweep()
                self._wishes.wait_for_news(pause)
            except Unreachable as error:
                log.warning("Redis does not answer", extra={"error": str(error)})
                self._closed.wait(self._lease_s / 10)
            except Exception:
                log.exception("a round of the reconciler failed")
                self._closed.wait(pause)
            self._closed.wait(_SHORTEST_ROUND_S)

    def _round(self) -> float:
        with self._lock:
            wanted, sent = dict(self._wanted), dict(self._sent)
        survey = self._wishes.survey(list(wanted))
        if survey.leader != self._token and not self._still_leads(survey.leader):
            return ROUND_S
        actions = due(survey, wanted, sent, now=time.monotonic())
        for plan in actions.writes:
            with self._writing:
                if self._wanted.get(plan.id) == plan:
                    self._wishes.want(plan)
        for seen in actions.wakes:
            self._wake(seen, wanted[seen.id].generation)
        return actions.next_s

    def _still_leads(self, leader: str) -> bool:
        if not leader:
            self._wishes.lead(self._token, is_forced=False)
            return True
        log.warning("another worker leads now")
        with self._lock:
            self._wanted.clear()
            self._sent.clear()
            self._thread = None
        return False

    def _sweep(self) -> None:
        """Stop what the former leader wanted and this one does not."""
        now = time.monotonic()
        with self._lock:
            is_time = now - max(self._told_at, self._swept_at) > self._settle_s
            wanted = set(self._wanted)
        if not is_time or self._thread is not threading.current_thread():
            return
        self._swept_at = now
        for task_id in self._wishes.known() - wanted:
            self._wishes.set_targets([task_id], Target.STOPPED)
            self._wishes.forget(task_id)

    def _wake(self, seen: Seen, generation: int) -> None:
        from connect.executors.celery_tasks import RUN, create_app

        if self._app is None:
            self._app = create_app(self._settings)
        message = [seen.id.connector, seen.id.task, generation, seen.epoch]
        self._app.send_task(RUN, args=message, expires=_EXPIRES_S, retry=False)
        with self._lock:
            self._sent[seen.id] = Sent(seen.epoch, generation, time.monotonic())


def _nobody_needs_to_know(task_id: TaskId, reason: str) -> None:
    """The reconciler itself starts lost tasks again."""
