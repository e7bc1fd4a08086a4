"""Carries out the actions of the plan for one connector. Steps may wait, and raise errors."""

import logging
from collections.abc import Callable, Sequence
from typing import assert_never

from connect.api.engine import EngineSinkConnector
from connect.api.errors import ConnectError
from connect.runtime.configuration.config_providers import conceal
from connect.runtime.failures.traces import stack_trace
from connect.runtime.leading.connector_host import ConnectorHost, make_connector
from connect.runtime.leading.fencing import fence
from connect.runtime.leading.plan import (
    AskForTasks,
    Call,
    CleanUp,
    FenceTasks,
    Forget,
    ReadConfig,
    Report,
    ReportConnector,
    ReportTask,
    RestartLater,
    SetTarget,
    StartConnector,
    StartTask,
    Step,
    StopConnector,
    StopTasks,
    Traits,
    WriteTasks,
)
from connect.runtime.leading.services import LeaderServices
from connect.runtime.models import State, TaskId
from connect.stores.config_writer import ConfigWriter
from connect.stores.configs import Config

log = logging.getLogger(__name__)


class ConnectorFailed(Exception):
    """The connector's code failed; the cause is its error."""


class Performer:
    """Holds the connector object."""

    def __init__(
        self,
        name: str,
        services: LeaderServices,
        writer: ConfigWriter,
        *,
        on_new_tasks: Callable[[ConnectorHost], None],
        on_failure: Callable[[ConnectorHost, Exception], None],
    ) -> None:
        self._name = name
        self._services = services
        self._writer = writer
        self._on_new_tasks = on_new_tasks
        self._on_failure = on_failure
        self.host: ConnectorHost | None = None
        """The connector object."""

    def perform(self, step: Step) -> Traits | Sequence[Config] | None:
        """Carry out a step; returns the result of ReadConfig or AskForTasks."""
        executor = self._services.executor
        match step:
            case ReadConfig() | StartConnector() | StopConnector() | AskForTasks() | CleanUp():
                return self._call(step)
            case WriteTasks(configs):
                self._writer.put_tasks(self._name, configs)
            case StopTasks(numbers):
                executor.stop([TaskId(self._name, number) for number in numbers])
            case FenceTasks(config, earlier, count):
                if earlier:
                    resolved = self._services.parse(config).resolved
                    fence(self._services.settings, resolved, connector=self._name, tasks=earlier)
                if earlier != count:
                    self._writer.put_fencing(self._name, count)
            case StartTask(task):
                try:
                    executor.start(task)
                except Exception as error:  # noqa: BLE001 - the status shows any failure
                    trace = self._services.conceal(self._name, stack_trace(error))
                    log.error("a task could not be started", extra={"task": str(task.id), "trace": trace})
                    self.report(ReportTask(task.id.task, State.FAILED, task.generation, trace))
            case SetTarget(number, target):
                executor.set_target(TaskId(self._name, number), target)
            case _:
                assert_never(step)
        return None

    def _call(self, step: Call) -> Traits | Sequence[Config] | None:
        """Run the connector's code."""
        match step:
            case ReadConfig(desired):
                try:
                    return self._services.parse(desired.config).traits
                except ConnectError:
                    return None  # the connector, or its tasks, will report the error
            case StartConnector(desired):
                self._start_connector(desired.config)
            case StopConnector():
                self.stop_connector()
            case AskForTasks():
                try:
                    return self.host.task_configs() if self.host is not None else ()
                except Exception as error:
                    raise ConnectorFailed from error
            case CleanUp(config):
                self._clean_up(config)
            case _:
                assert_never(step)
        return None

    def give_up_call(self, step: Call) -> None:
        """The code that was called hangs; from any thread."""
        host = self.host
        if host is not None and isinstance(step, StartConnector | StopConnector):
            self.host = None
            host.give_up()

    def _start_connector(self, config: Config) -> None:
        host = self.host = ConnectorHost(self._name, on_new_tasks=self._on_new_tasks, on_failure=self._on_failure)
        try:
            host.start(lambda: self._services.parse(config))
        except Exception as error:
            host.give_up()
            if self.host is host:
                self.host = None
            raise ConnectorFailed from error

    def stop_connector(self) -> None:
        """Stop the connector object, if there is one."""
        host, self.host = self.host, None
        try:
            if host is not None:
                host.stop()
        except Exception as error:  # noqa: BLE001 - it is discarded in any case
            reason = self._services.conceal(self._name, repr(error))
            log.warning("connector failed while it stopped", extra={"connector": self._name, "error": reason})

    def _clean_up(self, config: Config) -> None:
        """Let a connector clean up in its engine; failures only are logged."""
        try:
            parsed = self._services.parse(config)
            if issubclass(parsed.connector, EngineSinkConnector):
                connector = make_connector(self._name, parsed.connector, parsed.resolved)
                assert isinstance(connector, EngineSinkConnector)
                connector.removed(parsed.facts(self._name))
        except Exception as error:  # noqa: BLE001 - the connector is deleted in any case
            reason = conceal(repr(error), self._services.secrets.concealing(config))
            log.warning("connector failed to clean up", extra={"connector": self._name, "error": reason})

    def report(self, report: Report) -> None:
        """Write states; returns at once."""
        statuses, name, worker_id = self._services.statuses, self._name, self._services.worker_id
        match report:
            case ReportConnector(state, trace):
                known = statuses.connector(name)
                generation = max(self._services.configs.position, known.generation if known else 0)
                statuses.put_connector(name, state, worker_id=worker_id, generation=generation, trace=trace)
            case ReportTask(number, state, generation, trace):
                task = TaskId(name, number)
                statuses.put_task(task, state, worker_id=worker_id, generation=generation, trace=trace)
            case RestartLater(number, _, generation, trace):
                task = TaskId(name, number)
                log.info("task is started again", extra={"task": str(task), "failures": report.failures})
                statuses.put_task(task, State.RESTARTING, worker_id=worker_id, generation=generation, trace=trace)
            case Forget(tasks, topics):
                for number in tasks:
                    statuses.put_task(TaskId(name, number), State.DESTROYED, worker_id="", generation=0)
                for topic in topics:
                    statuses.delete_topic(topic, name)
            case _:
                assert_never(report)
