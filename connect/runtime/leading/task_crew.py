"""The tasks of one connector on the worker that leads: started, ended, and started again when they fail or are lost."""

import logging
import time
from collections.abc import Callable, Collection, Iterable
from typing import Protocol

import msgspec

from connect.runtime.failures.traces import stack_trace
from connect.runtime.leading.fencing import fence
from connect.runtime.leading.lanes import Lanes
from connect.runtime.leading.office import Office, Understood
from connect.runtime.leading.planning import difference
from connect.runtime.leading.restarts import LOST, RestartPolicy, Restarts
from connect.runtime.models import FENCED, State, Target, TaskId, TaskPlan
from connect.stores.config_writer import ConfigWriter
from connect.stores.configs import ConnectorPlan

log = logging.getLogger(__name__)


class Leader(Protocol):
    """What one connector needs of the leading worker."""

    lanes: Lanes
    writer: ConfigWriter

    @property
    def is_over(self) -> bool:
        """Whether the worker leads no more: nothing may be started."""

    def attempt(self, name: str, job: Callable[[], None]) -> None:
        """Do something for a connector in its lane; when it fails, the connector is brought to what it is to be."""

    def later(self, seconds: float, name: str, job: Callable[[], None]) -> None:
        """The same, after a while."""


class TaskCrew:
    """All methods are called in the connector's lane: one at a time."""

    def __init__(self, name: str, office: Office, leader: Leader) -> None:
        self._name = name
        self._office = office
        self._leader = leader
        self._plans: dict[int, TaskPlan] = {}
        self._ending: set[int] = set()
        """Those that were told to end, and of whom nobody knows yet whether they did."""
        self._known: set[int] = set()
        """Those that were started here: no former leader has to do with them any more."""
        self._failures: dict[int, Restarts] = {}
        self._losses: dict[int, Restarts] = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is no task."""
        return not self._plans

    def bring(self, plan: ConnectorPlan, understood: Understood | None) -> None:
        """Make the tasks what they are to be; what the configuration means is not known when it cannot work."""
        count = len(plan.tasks)
        wanted = {number: (config, plan.config, count) for number, config in enumerate(plan.tasks)}
        is_exactly_once = understood is not None and understood.is_exactly_once
        change = difference(self._running(), wanted, all_at_once=is_exactly_once)
        self.end(change.ending)
        self.forget(number for number in self._office.statuses.tasks(self._name) if number not in wanted)
        goes_on = all(self._goes_on(TaskId(self._name, number), plan) for number in change.beginning)
        if change.beginning and is_exactly_once and understood is not None and not goes_on:
            self._fence(plan, understood)
        self._start(sorted(change.beginning), plan)
        self._set_target(plan.target)

    def end(self, numbers: Collection[int] | None = None) -> None:
        """End these tasks, or all."""
        chosen = list(self._plans if numbers is None else numbers)
        self._ending.update(chosen)
        if chosen:
            with self._leader.lanes.aside():
                self._office.executor.stop([self._plans[number].id for number in chosen])
        for number in chosen:
            del self._plans[number]
            self._ending.discard(number)

    def forget(self, numbers: Iterable[int]) -> None:
        """Show these tasks no more."""
        for number in list(numbers):
            self._office.statuses.put_task(TaskId(self._name, number), State.DESTROYED, worker_id="", generation=0)
            self._failures.pop(number, None)
            self._losses.pop(number, None)

    def restart(self, numbers: Collection[int], plan: ConnectorPlan) -> None:
        """Somebody wants these tasks to begin again."""
        there = [number for number in numbers if number < len(plan.tasks)]
        self.end([number for number in there if number in self._plans])
        for number in there:
            self._failures.pop(number, None)
        self._start(there, plan)

    def failed(self, number: int, policy: RestartPolicy) -> None:
        """A task said that it failed: start it again after a while, if there are restarts left."""
        task, status = self._plans.get(number), self._office.statuses.task(TaskId(self._name, number))
        if task is None or status is None or (status.state, status.generation) != (State.FAILED, task.generation):
            return
        if FENCED in (status.trace or ""):
            self._losses.setdefault(number, Restarts(first_at_once=True))
            self._restart_later(task, self._losses[number].delay(LOST, time.monotonic()), status.trace)
            return
        if number not in self._failures:
            self._failures[number] = Restarts()
            self._failures[number].started(time.monotonic())
        self._restart_later(task, self._failures[number].delay(policy, time.monotonic()), status.trace)

    def lost(self, number: int, reason: str) -> None:
        """A task's process died."""
        task = self._plans.get(number)
        if task is not None and task.id not in self._office.executor.owned():
            restarts = self._losses.setdefault(number, Restarts(first_at_once=True))
            self._restart_later(task, restarts.delay(LOST, time.monotonic()), reason)

    # --- pieces ---

    def _running(self) -> dict[int, object]:
        return {
            number: None if number in self._ending else (task.task_config, task.connector_config, task.task_count)
            for number, task in self._plans.items()
        }

    def _set_target(self, target: Target) -> None:
        for number, task in self._plans.items():
            if task.target is not target:
                self._plans[number] = msgspec.structs.replace(task, target=target)
                self._office.executor.set_target(task.id, target)

    def _fence(self, plan: ConnectorPlan, understood: Understood) -> None:
        with self._leader.lanes.aside():
            if plan.fenced_tasks:
                fence(self._office.settings, understood.resolved, connector=self._name, tasks=plan.fenced_tasks)
            if plan.fenced_tasks != len(plan.tasks):
                self._leader.writer.put_fencing(self._name, len(plan.tasks))

    def _start(self, numbers: Iterable[int], plan: ConnectorPlan) -> None:
        for task in [self._planned(TaskId(self._name, number), plan) for number in numbers]:
            self._start_one(task)

    def _planned(self, task: TaskId, plan: ConnectorPlan) -> TaskPlan:
        status, former = self._office.statuses.task(task), self._plans.get(task.task)
        generation = max(status.generation if status else 0, former.generation if former else 0)
        if not self._goes_on(task, plan):
            # One generation is for what is told here: the task's own word, should it come first, counts more.
            generation = max(self._office.configs.position, generation + 1) + 1
            is_waiting = status is not None and status.state is State.RESTARTING
            self._tell(
                task,
                State.RESTARTING if is_waiting else State.UNASSIGNED,
                generation=generation - 1,
                trace=status.trace if status and is_waiting else None,
            )
        return TaskPlan(
            id=task,
            connector_config=plan.config,
            task_config=plan.tasks[task.task],
            target=plan.target,
            generation=generation,
            task_count=len(plan.tasks),
            worker_id=self._office.worker_id,
        )

    def _goes_on(self, task: TaskId, plan: ConnectorPlan) -> bool:
        """Whether the task may run already, as a former leader started it: a generation tells when that was."""
        status = self._office.statuses.task(task)
        is_first_time = task.task not in self._plans and task.task not in self._known
        is_alive = status is not None and status.state in (State.RUNNING, State.PAUSED)
        is_current = status is not None and status.generation > plan.decided_at
        return self._office.lasting is not None and is_first_time and is_alive and is_current

    def _start_one(self, task: TaskPlan) -> None:
        if self._leader.is_over:
            return
        number = task.id.task
        self._plans[number] = task
        self._known.add(number)
        for restarts in (self._failures.get(number), self._losses.get(number)):
            if restarts is not None:
                restarts.started(time.monotonic())
        try:
            with self._leader.lanes.aside():
                self._office.executor.start(task)
        except Exception as error:
            log.exception("a task could not be started", extra={"task": str(task.id)})
            self._tell(task.id, State.FAILED, generation=task.generation, trace=stack_trace(error))

    def _restart_later(self, task: TaskPlan, delay: float | None, trace: str | None) -> None:
        if delay is None:
            return
        log.info("task is started again", extra={"task": str(task.id), "delay_seconds": delay})
        self._tell(task.id, State.RESTARTING, generation=task.generation, trace=trace)

        def restart() -> None:
            plan, current = self._office.configs.plan(self._name), self._plans.get(task.id.task)
            is_same = current is not None and current.generation == task.generation
            if plan is not None and is_same and not self._leader.is_over and task.id.task < len(plan.tasks):
                self._start([task.id.task], plan)

        if delay:
            self._leader.later(delay, self._name, restart)
        else:
            restart()

    def _tell(self, task: TaskId, state: State, *, generation: int, trace: str | None) -> None:
        self._office.statuses.put_task(
            task, state, worker_id=self._office.worker_id, generation=generation, trace=trace
        )
