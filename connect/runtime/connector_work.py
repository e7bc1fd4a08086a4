"""One connector on the worker that leads: its object and its tasks, brought to what the config topic says."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable
from typing import Protocol, TypeVar

import msgspec

from connect.api.errors import ConnectError
from connect.runtime.connector_host import ConnectorHost
from connect.runtime.dead_letter import stack_trace
from connect.runtime.fencing import fence
from connect.runtime.lanes import Lanes
from connect.runtime.models import State, Target, TaskId, TaskPlan
from connect.runtime.office import Office, Understood
from connect.runtime.planning import difference, planned
from connect.runtime.restarts import LOST, Restarts, policy_of
from connect.stores.config_writer import ConfigWriter
from connect.stores.configs import ConnectorPlan

log = logging.getLogger(__name__)

T = TypeVar("T")


class Leader(Protocol):
    """What one connector needs of the leading worker."""

    lanes: Lanes
    writer: ConfigWriter

    @property
    def is_over(self) -> bool:
        """Whether the worker leads no more: nothing may be started."""

    def submit(self, name: str, job: Callable[[], None]) -> object:
        """Do something for a connector, after all that is to be done for it already."""

    def later(self, seconds: float, name: str, job: Callable[[], None]) -> None:
        """Do something for a connector after a while."""


class ConnectorWork:
    """All methods are called in the connector's lane: one at a time."""

    def __init__(self, name: str, office: Office, leader: Leader) -> None:
        self.name = name
        self._office = office
        self._leader = leader
        self._host: ConnectorHost | None = None
        self._understood: Understood | None = None
        self._plans: dict[int, TaskPlan] = {}
        self._known_tasks: set[int] = set()
        """Those that were started here: no former leader has to do with them any more."""
        self._own_failures = Restarts()
        self._failures: dict[int, Restarts] = {}
        self._losses: dict[int, Restarts] = {}
        self._is_replanning = False
        self._hurry = threading.Event()

    def hurry(self) -> None:
        """Something else is to be done: do not wait for a connector that hangs. From any thread."""
        self._hurry.set()

    # --- what the config topic says ---

    def bring(self, *, is_restart: bool = False) -> None:
        """Make the connector and its tasks what they are to be; a restart makes a new connector object at least."""
        self._hurry.clear()
        plan = self._office.configs.plan(self.name)
        if self._leader.is_over:
            return
        if plan is None:
            self._retire()
        elif plan.target is Target.STOPPED:
            self._halt(plan)
        elif plan.target is Target.PAUSED:
            self._stop_connector()
            self._tell(State.PAUSED)
            self._bring_tasks(plan)
        else:
            self._run(plan, is_restart=is_restart)

    def _run(self, plan: ConnectorPlan, *, is_restart: bool) -> None:
        known = self._understood
        is_new = self._host is None or known is None or known.raw != plan.config
        if is_restart or is_new or not plan.is_planned:
            if not self._start_connector(plan):
                if not self._plans:
                    self._bring_tasks(plan)  # What was planned before the worker started is still to be done.
                return
            self._replan()
            return
        self._tell(State.RUNNING)
        self._bring_tasks(plan)

    def _halt(self, plan: ConnectorPlan) -> None:
        self._stop_connector()
        self._end_tasks(set(self._plans))
        if plan.tasks:
            self._leader.writer.put_tasks(self.name, [])
        self._forget_tasks(self._office.statuses.tasks(self.name))
        self._tell(State.STOPPED)

    def _retire(self) -> None:
        self._stop_connector()
        self._end_tasks(set(self._plans))
        statuses = self._office.statuses
        self._forget_tasks(statuses.tasks(self.name))
        for use in statuses.topics(self.name):
            statuses.delete_topic(use.name, self.name)
        if statuses.connector(self.name) is not None:
            self._tell(State.DESTROYED)

    def end(self) -> None:
        """The worker leads no more, or stops: stop the connector object. The tasks are stopped all together."""
        self._stop_connector()

    # --- the connector object ---

    def _start_connector(self, plan: ConnectorPlan) -> bool:
        self._stop_connector()
        self._understood = None
        host: ConnectorHost | None = None
        try:
            understood = self._office.understood(plan.config)
            host = ConnectorHost(
                self.name, understood.connector, on_reconfiguration=self._asked_to_replan, on_failure=self._has_failed
            )
            started, resolved = host.start, understood.resolved
            self._limited(lambda: started(resolved), "start")
        except Exception as error:  # noqa: BLE001 - whatever an author's code raises, the status tells it
            if host is not None:
                host.give_up()
            self._fail(error)
            return False
        self._host, self._understood = host, understood
        self._own_failures.started(time.monotonic())
        self._tell(State.RUNNING)
        return True

    def _stop_connector(self) -> None:
        host, self._host = self._host, None
        if host is None:
            return
        try:
            self._limited(host.stop, "stop", self._office.settings.task_shutdown_graceful_timeout_ms / 1000 + 1)
        except Exception as error:  # noqa: BLE001 - it is gone all the same
            log.warning("connector did not stop well", extra={"connector": self.name, "error": repr(error)})

    def _limited(self, work: Callable[[], T], what: str, seconds: float | None = None) -> T:
        limit = self._office.settings.rest_request_timeout_ms / 1000 if seconds is None else seconds
        try:
            return self._leader.lanes.limited(work, limit, hurry=self._hurry)
        except TimeoutError as error:
            if self._hurry.is_set():
                raise ConnectError(f"The connector {self.name} was given up: it took too long to {what}") from error
            raise ConnectError(f"The connector {self.name} took longer than {limit:g} s to {what}") from error

    def _asked_to_replan(self, host: ConnectorHost) -> None:
        """From any thread."""

        def replan() -> None:
            self._is_replanning = False
            if host is self._host and not self._leader.is_over:
                self._replan()

        if not self._is_replanning:
            self._is_replanning = True
            self._leader.submit(self.name, replan)

    def _has_failed(self, host: ConnectorHost, error: Exception) -> None:
        """From any thread."""

        def fail() -> None:
            if host is self._host:
                self._stop_connector()
                self._fail(error)

        self._leader.submit(self.name, fail)

    def _fail(self, error: Exception) -> None:
        log.error("connector failed", extra={"connector": self.name}, exc_info=error)
        plan = self._office.configs.plan(self.name)
        understood = self._known(plan) if plan is not None else None
        delay = None
        if understood is not None and understood.settled.errors_restart_max:
            delay = self._own_failures.delay(policy_of(understood.settled), time.monotonic())
        self._tell(State.FAILED if delay is None else State.RESTARTING, stack_trace(error))
        if delay is not None:
            self._leader.later(delay, self.name, self._start_again)

    def _start_again(self) -> None:
        """The connector failed a while ago: if nobody has done something about it since, it begins again."""
        status = self._office.statuses.connector(self.name)
        if self._host is None and status is not None and status.state is State.RESTARTING:
            self.bring(is_restart=True)

    def _tell(self, state: State, trace: str | None = None) -> None:
        statuses, office = self._office.statuses, self._office
        known = statuses.connector(self.name)
        if known is not None and (known.state, known.trace, known.worker_id) == (state, trace, office.worker_id):
            return
        generation = max(office.configs.position, known.generation if known else 0)
        statuses.put_connector(self.name, state, worker_id=office.worker_id, generation=generation, trace=trace)

    # --- tasks ---

    def _replan(self) -> None:
        """Ask the connector what its tasks are to do; write it down where it has changed, and do it."""
        host, understood, plan = self._host, self._understood, self._office.configs.plan(self.name)
        if host is None or understood is None or plan is None or plan.target is not Target.STARTED:
            return
        if plan.config != understood.raw:
            return  # It was configured anew meanwhile, and is brought to that next.
        tasks_max = understood.settled.tasks_max
        try:
            given = self._limited(lambda: host.task_configs(tasks_max), "plan its tasks")
            configs = planned(
                given,
                understood.connector,
                settled=understood.settled,
                raw=understood.raw,
                resolved=understood.resolved,
            )
        except Exception as error:  # noqa: BLE001 - whatever an author's code raises, the status tells it
            self._stop_connector()
            self._fail(error)
            return
        if configs != list(plan.tasks) or not (configs or plan.is_planned):
            self._leader.writer.put_tasks(self.name, configs)
            plan = self._office.configs.plan(self.name)
        if plan is not None:
            self._bring_tasks(plan)

    def _bring_tasks(self, plan: ConnectorPlan) -> None:
        count = len(plan.tasks)
        wanted = {number: (config, plan.config, count) for number, config in enumerate(plan.tasks)}
        running = {n: (task.task_config, task.connector_config, task.task_count) for n, task in self._plans.items()}
        understood = self._known(plan)
        is_exactly_once = understood is not None and understood.is_exactly_once
        change = difference(running, wanted, all_at_once=is_exactly_once)
        self._end_tasks(change.ending)
        self._forget_tasks(n for n in self._office.statuses.tasks(self.name) if n not in wanted)
        goes_on = all(self._goes_on(TaskId(self.name, number), plan) for number in change.beginning)
        if change.beginning and is_exactly_once and understood is not None and not goes_on:
            self._fence(plan, understood)
        self._start_tasks(sorted(change.beginning), plan)
        for number, task in self._plans.items():
            if task.target is not plan.target and number not in change.beginning:
                self._plans[number] = msgspec.structs.replace(task, target=plan.target)
                self._office.executor.set_target(task.id, plan.target)

    def _known(self, plan: ConnectorPlan) -> Understood | None:
        """What the tasks' configuration means, be there a connector object of it or not."""
        if self._understood is not None and self._understood.raw == plan.config:
            return self._understood
        try:
            return self._office.understood(plan.config)
        except ConnectError:
            return None  # The tasks will tell what is wrong.

    def _fence(self, plan: ConnectorPlan, understood: Understood) -> None:
        with self._leader.lanes.aside():
            if plan.fenced_tasks:
                fence(self._office.settings, understood.resolved, connector=self.name, tasks=plan.fenced_tasks)
            if plan.fenced_tasks != len(plan.tasks):
                self._leader.writer.put_fencing(self.name, len(plan.tasks))

    def _start_tasks(self, numbers: Iterable[int], plan: ConnectorPlan) -> None:
        office, statuses = self._office, self._office.statuses
        starting = []
        for number in numbers:
            task_id = TaskId(self.name, number)
            status, former = statuses.task(task_id), self._plans.get(number)
            known = max(status.generation if status else 0, former.generation if former else 0)
            if self._goes_on(task_id, plan):
                generation = known
            else:
                # One generation is for what is told here: the task's own word, should it come first, counts more.
                generation = max(office.configs.position, known + 1) + 1
                self._tell_of_start(task_id, generation - 1)
            starting.append(
                TaskPlan(
                    id=task_id,
                    connector_config=plan.config,
                    task_config=plan.tasks[number],
                    target=plan.target,
                    generation=generation,
                    task_count=len(plan.tasks),
                    worker_id=office.worker_id,
                )
            )
        for task in starting:
            self._start_task(task)

    def _goes_on(self, task: TaskId, plan: ConnectorPlan) -> bool:
        """Whether the task may run already, as a former leader started it: a generation tells when that was."""
        status = self._office.statuses.task(task)
        is_first_time = task.task not in self._plans and task.task not in self._known_tasks
        is_alive = status is not None and status.state in (State.RUNNING, State.PAUSED)
        is_current = status is not None and status.generation > plan.decided_at
        return self._office.lasting is not None and is_first_time and is_alive and is_current

    def _tell_of_start(self, task: TaskId, generation: int) -> None:
        statuses, worker_id = self._office.statuses, self._office.worker_id
        before = statuses.task(task)
        if before is not None and before.state is State.RESTARTING:
            statuses.put_task(task, State.RESTARTING, worker_id=worker_id, generation=generation, trace=before.trace)
        else:
            statuses.put_task(task, State.UNASSIGNED, worker_id=worker_id, generation=generation)

    def _start_task(self, task: TaskPlan) -> None:
        if self._leader.is_over:
            return
        self._plans[task.id.task] = task
        self._known_tasks.add(task.id.task)
        for counts in (self._failures, self._losses):
            if task.id.task in counts:
                counts[task.id.task].started(time.monotonic())
        try:
            with self._leader.lanes.aside():
                self._office.executor.start(task)
        except Exception as error:
            log.exception("a task could not be started", extra={"task": str(task.id)})
            self._office.statuses.put_task(
                task.id,
                State.FAILED,
                worker_id=task.worker_id,
                generation=task.generation,
                trace=stack_trace(error),
            )

    def _end_tasks(self, numbers: Collection[int]) -> None:
        ids = [self._plans[number].id for number in numbers]
        if ids:
            with self._leader.lanes.aside():
                self._office.executor.stop(ids)
        for number in numbers:
            del self._plans[number]

    def _forget_tasks(self, numbers: Iterable[int]) -> None:
        for number in list(numbers):
            task_id = TaskId(self.name, number)
            self._office.statuses.put_task(task_id, State.DESTROYED, worker_id="", generation=0)
            self._failures.pop(number, None)
            self._losses.pop(number, None)

    # --- restarts ---

    def restart_tasks(self, numbers: Collection[int]) -> None:
        """Somebody wants these tasks to begin again."""
        plan = self._office.configs.plan(self.name)
        if plan is None or self._leader.is_over or plan.target is Target.STOPPED:
            return
        there = [number for number in numbers if number < len(plan.tasks)]
        self._end_tasks([number for number in there if number in self._plans])
        for number in there:
            self._failures.pop(number, None)
        self._start_tasks(there, plan)

    def task_failed(self, number: int) -> None:
        """A task said that it failed: start it again after a while, if the connector's configuration wants that."""
        task, status = self._plans.get(number), self._office.statuses.task(TaskId(self.name, number))
        if task is None or status is None or (status.state, status.generation) != (State.FAILED, task.generation):
            return
        plan = self._office.configs.plan(self.name)
        understood = self._known(plan) if plan is not None else None
        if understood is None or understood.settled.errors_restart_max == 0:
            return
        restarts = self._failures.get(number)
        if restarts is None:
            restarts = self._failures[number] = Restarts()
            restarts.started(time.monotonic())
        delay = restarts.delay(policy_of(understood.settled), time.monotonic())
        self._restart_later(task, delay, status.trace)

    def task_lost(self, number: int, reason: str) -> None:
        """A task's process died."""
        task = self._plans.get(number)
        if task is None or task.id in self._office.executor.owned():
            return
        restarts = self._losses.setdefault(number, Restarts(first_at_once=True))
        self._restart_later(task, restarts.delay(LOST, time.monotonic()), reason)

    def _restart_later(self, task: TaskPlan, delay: float | None, trace: str | None) -> None:
        if delay is None:
            return
        log.info("task is started again", extra={"task": str(task.id), "delay_seconds": delay})
        self._office.statuses.put_task(
            task.id, State.RESTARTING, worker_id=task.worker_id, generation=task.generation, trace=trace
        )

        def restart() -> None:
            plan, current = self._office.configs.plan(self.name), self._plans.get(task.id.task)
            is_same = current is not None and current.generation == task.generation
            if plan is not None and is_same and not self._leader.is_over and task.id.task < len(plan.tasks):
                self._start_tasks([task.id.task], plan)

        if delay:
            self._leader.later(delay, self.name, restart)
        else:
            restart()
