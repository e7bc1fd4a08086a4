"""Connectors as they stand in the topics: every worker shows them alike."""

from typing import Final

from connect.api.errors import ConfigError
from connect.runtime import errors
from connect.runtime.errors import Forbidden
from connect.runtime.leading.office import Office, type_of
from connect.runtime.models import (
    ConnectorInfo,
    ConnectorState,
    ConnectorStatus,
    ConnectorType,
    State,
    TaskId,
    TaskInfo,
    TaskState,
)
from connect.stores.configs import ConfigStore, ConnectorPlan

_CLASSES_MAX: Final = 1_000


class Overview:
    """Shows connectors. Nothing here asks anybody: it is what the stores know."""

    def __init__(self, office: Office) -> None:
        self._office = office
        self._classes: dict[str, tuple[ConnectorType, str | None]] = {}

    @property
    def worker_id(self) -> str:
        """The name of this worker in states."""
        return self._office.worker_id

    @property
    def configs(self) -> ConfigStore:
        """What stands in the config topic."""
        return self._office.configs

    def connectors(self) -> list[str]:
        """The names of all connectors."""
        return sorted(self._office.configs.connectors())

    def info(self, name: str) -> ConnectorInfo:
        """A connector as it was configured."""
        plan = self._plan(name)
        tasks = [TaskId(name, number) for number in range(len(plan.tasks))]
        return ConnectorInfo(name=name, config=dict(plan.config), tasks=tasks, type=self._class(plan)[0])

    def config(self, name: str) -> dict[str, str]:
        """A connector's configuration, with its placeholders as they were written."""
        return dict(self._plan(name).config)

    def status(self, name: str) -> ConnectorStatus:
        """How a connector and its tasks fare."""
        plan = self._office.configs.plan(name)
        if plan is None:
            raise errors.no_connector_status(name)
        found = self._office.statuses.connector(name)
        state = ConnectorState(
            state=found.state if found else State.UNASSIGNED,
            worker_id=found.worker_id if found else self._office.worker_id,
            trace=(found.trace or None) if found else None,
            version=self._class(plan)[1],
        )
        tasks = [self._task_state(plan, TaskId(name, number)) for number in range(len(plan.tasks))]
        return ConnectorStatus(name=name, connector=state, tasks=tasks, type=self._class(plan)[0])

    def tasks(self, name: str) -> list[TaskInfo]:
        """The tasks and their configurations."""
        plan = self._plan(name)
        return [TaskInfo(id=TaskId(name, number), config=dict(config)) for number, config in enumerate(plan.tasks)]

    def task_status(self, name: str, task: int) -> TaskState:
        """How a task fares."""
        plan = self._office.configs.plan(name)
        if plan is None or not 0 <= task < len(plan.tasks):
            raise errors.no_task_status(name, task)
        return self._task_state(plan, TaskId(name, task))

    def topics(self, name: str) -> list[str]:
        """The topics that a connector has used."""
        if not self._office.settings.topic_tracking_enable:
            raise Forbidden("Topic tracking is disabled.")
        return sorted(use.name for use in self._office.statuses.topics(name))

    def _plan(self, name: str) -> ConnectorPlan:
        plan = self._office.configs.plan(name)
        if plan is None:
            raise errors.connector_not_found(name)
        return plan

    def _task_state(self, plan: ConnectorPlan, task: TaskId) -> TaskState:
        found = self._office.statuses.task(task)
        return TaskState(
            id=task.task,
            state=found.state if found else State.UNASSIGNED,
            worker_id=found.worker_id if found else self._office.worker_id,
            trace=(found.trace or None) if found else None,
            version=self._class(plan)[1],
        )

    def _class(self, plan: ConnectorPlan) -> tuple[ConnectorType, str | None]:
        """Which way data goes, and the version of the connector's class."""
        name = plan.config.get("connector.class", "")
        if name not in self._classes:
            if len(self._classes) >= _CLASSES_MAX:
                self._classes.clear()
            try:
                found = self._office.plugins.connector(name)
                self._classes[name] = type_of(found), self._office.plugins.version_of(found)
            except ConfigError:
                self._classes[name] = "unknown", None
        return self._classes[name]
