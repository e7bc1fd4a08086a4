"""Sees to it that every wanted task runs: writes what Redis has forgotten, wakes workers up, tells what is lost."""

import logging
import threading
import time
from collections.abc import Callable, Collection
from typing import Any, Final

from connect.executors.celery.leases import Unreachable
from connect.executors.celery.reconciliation import ROUND_S, Sent, due
from connect.executors.celery.wishes import Deposed, Seen, Survey, Wishes
from connect.runtime.models import TaskPlan
from connect.settings import ConnectSettings
from connect.stores.states import Target, TaskId

log = logging.getLogger(__name__)

_SHORTEST_ROUND_S: Final = 0.02
_SOON_S: Final = 1.0
"""How long after a wake-up a lost task usually runs again, at the latest."""
_EXPIRES_S: Final = 3600
"""After that a message is thrown away unread; old ones do no harm, they only take room."""


class Reconciler:
    """A thread that compares what is wanted with what runs, for as long as nobody else leads."""

    def __init__(
        self,
        settings: ConnectSettings,
        wishes: Wishes,
        *,
        settle_s: float,
        on_lost: Callable[[TaskId, str], None],
    ) -> None:
        self._settings = settings
        self._lease_s = settings.celery_lease_ms / 1000
        self._settle_s = max(settle_s, self._lease_s)
        self._wishes = wishes
        self._on_lost = on_lost
        self._lock = threading.RLock()  # what is wanted changes together with what is written
        self._wanted: dict[TaskId, TaskPlan] = {}
        self._sent: dict[TaskId, Sent] = {}
        self._told_lost: dict[TaskId, int] = {}
        self._told_at = self._swept_at = 0.0
        self._silent_until = 0.0  # many tasks are started at once: not each of them waits for a Redis that is away
        self._stamp: int | None = None
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        self._app: Any = None

    def stamp(self) -> int:
        """Which leader this is; 0 when it does not lead."""
        with self._lock:
            if self._stamp is None and self._thread is not None:
                self._stamp = self._wishes.lead()
            return self._stamp or 0

    def wanted(self) -> dict[TaskId, TaskPlan]:
        """What this leader wants."""
        with self._lock:
            return dict(self._wanted)

    def take_over(self) -> None:
        """Lead, if this worker does not already."""
        with self._lock:
            self._told_at = time.monotonic()
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._run, name="celery-reconciler", daemon=True)
                self._thread.start()

    def want(self, plan: TaskPlan) -> None:
        """From now on this plan is wanted; what cannot be written now is written in the next round."""
        with self._lock:
            self._wanted[plan.id] = plan
            if time.monotonic() < self._silent_until:
                return
            try:
                self._write(plan)
                self._wishes.poke()
            except Unreachable as error:
                log.warning("Redis does not answer", extra={"error": str(error)})
                self._silent_until = time.monotonic() + ROUND_S

    def unwant(self, ids: Collection[TaskId]) -> None:
        """From now on these tasks are not wanted."""
        with self._lock:
            for task_id in ids:
                self._wanted.pop(task_id, None)
                self._sent.pop(task_id, None)
                self._told_lost.pop(task_id, None)

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        thread = self._thread
        if thread is not None:
            try:
                self._wishes.poke()
            except Unreachable:
                pass
            thread.join(ROUND_S + self._lease_s)
        if self._app is not None:
            self._app.close()

    def _write(self, plan: TaskPlan) -> None:
        """Write as the leader; whoever is deposed and wants something leads again."""
        try:
            self._wishes.want(plan, stamp=self.stamp())
        except Deposed:
            self._stamp = self._wishes.lead()
            self._wishes.want(plan, stamp=self._stamp)

    # --- the thread ---

    def _run(self) -> None:
        while not self._closed.is_set() and self._thread is threading.current_thread():
            try:
                pause = self._round()
                self._sweep()
                self._wishes.wait_for_news(pause)
            except Unreachable as error:
                log.warning("Redis does not answer", extra={"error": str(error)})
                self._closed.wait(self._lease_s / 10)
            except Deposed:
                log.info("another worker has taken over")  # the next round sees to it
            except Exception:
                log.exception("a round of the reconciler failed")
                self._closed.wait(ROUND_S)
            self._closed.wait(_SHORTEST_ROUND_S)

    def _round(self) -> float:
        with self._lock:
            stamp, wanted, sent = self.stamp(), dict(self._wanted), dict(self._sent)
        survey = self._wishes.survey(list(wanted))
        if survey.leader > stamp and self._is_deposed():
            return ROUND_S
        actions = due(survey, wanted, sent, now=time.monotonic())
        for plan in actions.writes:
            with self._lock:
                if self._wanted.get(plan.id) == plan:
                    self._wishes.want(plan, stamp=self.stamp())
        for seen in actions.wakes:
            self._wake(seen, wanted[seen.id].generation)
        self._tell_lost(survey, sent)
        return actions.next_s

    def _is_deposed(self) -> bool:
        """Look again while nothing is written: this worker may have taken over in this moment."""
        with self._lock:
            if self._wishes.survey([]).leader <= self.stamp():
                return False
            log.warning("another worker leads now", extra={"tasks": len(self._wanted)})
            self._wanted.clear()
            self._sent.clear()
            self._told_lost.clear()
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

    def _tell_lost(self, survey: Survey, sent: dict[TaskId, Sent]) -> None:
        """An owner that ends in good order gives its lease back; others are told when nobody took their place soon."""
        now = time.monotonic()
        for seen in survey.tasks:
            last = sent.get(seen.id)
            is_ownerless = not seen.held_s and bool(seen.owner)
            is_in_vain = last is not None and last.epoch == seen.epoch and now - last.at > _SOON_S
            if is_ownerless and is_in_vain and self._told_lost.get(seen.id) != seen.epoch:
                with self._lock:
                    if seen.id not in self._wanted:
                        continue
                    self._told_lost[seen.id] = seen.epoch
                self._on_lost(seen.id, f"Celery worker {seen.owner.partition('/')[0]} is gone")

    def _sweep(self) -> None:
        """Stop what a former leader wanted and this one does not."""
        now = time.monotonic()
        with self._lock:
            is_time = now - max(self._told_at, self._swept_at) > self._settle_s
            if not is_time or self._stamp is None:
                return
            self._swept_at = now
            strangers = self._wishes.known() - set(self._wanted)
            self._wishes.set_targets(strangers, Target.STOPPED, stamp=self._stamp)
            self._wishes.forget(strangers, stamp=self._stamp)
