"""One connector on the worker that leads: its object and its tasks, brought to what the config topic says."""

import logging
import threading
import time
from collections.abc import Callable, Collection
from typing import TypeVar

from connect.api.engine import EngineSinkConnector
from connect.api.errors import ConnectError
from connect.runtime.failures.traces import stack_trace
from connect.runtime.leading.connector_host import ConnectorHost, made_apart
from connect.runtime.leading.office import Office, Understood
from connect.runtime.leading.planning import planned
from connect.runtime.leading.restarts import Restarts, policy_of
from connect.runtime.leading.task_crew import Leader, TaskCrew
from connect.runtime.models import State, Target
from connect.stores.configs import ConnectorPlan

log = logging.getLogger(__name__)

T = TypeVar("T")


class ConnectorWork:
    """All methods are called in the connector's lane: one at a time."""

    def __init__(self, name: str, office: Office, leader: Leader) -> None:
        self.name = name
        self._office = office
        self._leader = leader
        self._host: ConnectorHost | None = None
        self._understood: Understood | None = None
        self._last_config: dict[str, str] | None = None
        self._crew = TaskCrew(name, office, leader)
        self._failures = Restarts()
        self._is_replanning = False
        self._must_plan = False
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
        if plan is not None:
            self._last_config = plan.config
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
            if self._start_connector(plan):
                self._replan()
            elif self._crew.is_empty:
                self._bring_tasks(plan)  # What was planned before the worker started is still to be done.
        elif self._must_plan:
            self._replan()
        else:
            self._tell(State.RUNNING)
            self._bring_tasks(plan)

    def _halt(self, plan: ConnectorPlan) -> None:
        self._stop_connector()
        self._crew.end()
        if plan.tasks:
            self._leader.writer.put_tasks(self.name, [])
        self._crew.forget(self._office.statuses.tasks(self.name))
        self._tell(State.STOPPED)

    def _retire(self) -> None:
        self._stop_connector()
        self._crew.end()
        statuses = self._office.statuses
        self._crew.forget(statuses.tasks(self.name))
        for use in statuses.topics(self.name):
            statuses.delete_topic(use.name, self.name)
        self._tell_removed()
        if statuses.connector(self.name) is not None:
            self._tell(State.DESTROYED)

    def _tell_removed(self) -> None:
        """Let a connector clean up in its engine; whether it can, changes nothing."""
        config, self._last_config = self._last_config, None
        try:
            understood = None if config is None else self._office.understood(config)
            if understood is None or not issubclass(understood.connector, EngineSinkConnector):
                return
            connector = made_apart(self.name, understood.connector, understood.resolved)
            assert isinstance(connector, EngineSinkConnector)
            facts = understood.facts(self.name)
            self._limited(lambda: connector.removed(facts), "clean up")
        except Exception as error:  # noqa: BLE001 - whatever an author's code raises, the connector is gone
            log.warning("connector did not clean up", extra={"connector": self.name, "error": repr(error)})

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
        self._failures.started(time.monotonic())
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
            self._leader.attempt(self.name, replan)

    def _has_failed(self, host: ConnectorHost, error: Exception) -> None:
        """From any thread."""

        def fail() -> None:
            if host is self._host:
                self._stop_connector()
                self._fail(error)

        self._leader.attempt(self.name, fail)

    def _fail(self, error: Exception) -> None:
        log.error("connector failed", extra={"connector": self.name}, exc_info=error)
        plan = self._office.configs.plan(self.name)
        understood = self._known(plan) if plan is not None else None
        delay = None
        if understood is not None and understood.settled.errors_restart_max:
            delay = self._failures.delay(policy_of(understood.settled), time.monotonic())
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
        self._must_plan = True  # If it cannot be written now, it is planned again.
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
        self._must_plan = False
        if plan is not None:
            self._bring_tasks(plan)

    def _bring_tasks(self, plan: ConnectorPlan) -> None:
        self._crew.bring(plan, self._known(plan))

    def _known(self, plan: ConnectorPlan) -> Understood | None:
        """What the configuration means, be there a connector object of it or not."""
        if self._understood is not None and self._understood.raw == plan.config:
            return self._understood
        try:
            return self._office.understood(plan.config)
        except ConnectError:
            return None  # The tasks will tell what is wrong.

    def restart_tasks(self, numbers: Collection[int]) -> None:
        """Somebody wants these tasks to begin again."""
        plan = self._office.configs.plan(self.name)
        if plan is not None and plan.target is not Target.STOPPED and not self._leader.is_over:
            self._crew.restart(numbers, plan)

    def task_failed(self, number: int) -> None:
        """A task said that it failed: it is started again, if the connector's configuration wants that."""
        plan = self._office.configs.plan(self.name)
        understood = self._known(plan) if plan is not None else None
        if understood is not None and understood.settled.errors_restart_max:
            self._crew.failed(number, policy_of(understood.settled))

    def task_lost(self, number: int, reason: str) -> None:
        """A task's process died."""
        self._crew.lost(number, reason)
