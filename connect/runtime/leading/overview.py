"""Connectors as the topics describe them, the same on every worker."""

from collections.abc import Mapping
from typing import Final

from connect.api.errors import ConfigError
from connect.runtime import errors
from connect.runtime.errors import Forbidden
from connect.runtime.leading.services import LeaderServices, connector_type
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
from connect.stores.configs import Config, ConfigStore, DesiredConnector

_CLASSES_MAX: Final = 1_000


class Overview:
    """Shows connectors, from the stores only."""

    def __init__(self, services: LeaderServices) -> None:
        self._services = services
        self._shown_configs: dict[str, tuple[Config, dict[str, str]]] = {}
        self._classes: dict[str, tuple[ConnectorType, str | None]] = {}

    @property
    def worker_id(self) -> str:
        """The name of this worker in states."""
        return self._services.worker_id

    @property
    def configs(self) -> ConfigStore:
        """The config topic."""
        return self._services.configs

    def connectors(self) -> list[str]:
        """The names of all connectors."""
        return sorted(self._services.configs.connectors())

    def info(self, name: str) -> ConnectorInfo:
        """The configuration, without secrets, and the tasks of a connector."""
        desired = self._desired(name)
        tasks = [TaskId(name, number) for number in range(len(desired.tasks))]
        return ConnectorInfo(name=name, config=self._shown(desired), tasks=tasks, type=self._class(desired)[0])

    def config(self, name: str) -> dict[str, str]:
        """A connector's configuration as it is shown: with placeholders unresolved, and without secrets."""
        return self._shown(self._desired(name))

    def stored_config(self, name: str) -> dict[str, str]:
        """A connector's configuration, with placeholders unresolved. It contains secrets."""
        return dict(self._desired(name).config)

    def unmasked(self, name: str, given: Mapping[str, str | None]) -> dict[str, str | None]:
        """A configuration for a connector that may exist, with its stored secrets where they are masked."""
        desired = self._services.configs.desired(name)
        return self._services.secrets.restored(given, desired.config if desired is not None else {})

    def status(self, name: str) -> ConnectorStatus:
        """The states of a connector and its tasks."""
        desired = self._services.configs.desired(name)
        if desired is None:
            raise errors.no_connector_status(name)
        found = self._services.statuses.connector(name)
        state = ConnectorState(
            state=found.state if found else State.UNASSIGNED,
            worker_id=found.worker_id if found else self._services.worker_id,
            trace=(found.trace or None) if found else None,
            version=self._class(desired)[1],
        )
        tasks = [self._task_state(desired, TaskId(name, number)) for number in range(len(desired.tasks))]
        return ConnectorStatus(name=name, connector=state, tasks=tasks, type=self._class(desired)[0])

    def tasks(self, name: str) -> list[TaskInfo]:
        """The tasks and their configurations, without secrets."""
        desired = self._desired(name)
        shown = self._services.secrets.shown
        # A task's options are those of its connector, of whatever class it says it is.
        kind = {"connector.class": desired.config.get("connector.class", "")}
        return [
            TaskInfo(
                id=TaskId(name, number),
                config={key: text for key, text in shown(kind | config).items() if key in config},
            )
            for number, config in enumerate(desired.tasks)
        ]

    def task_status(self, name: str, task: int) -> TaskState:
        """The state of a task."""
        desired = self._services.configs.desired(name)
        if desired is None or not 0 <= task < len(desired.tasks):
            raise errors.no_task_status(name, task)
        return self._task_state(desired, TaskId(name, task))

    def topics(self, name: str) -> list[str]:
        """The topics that a connector has used."""
        self._require_tracking()
        return sorted(use.name for use in self._services.statuses.topics(name))

    def _require_tracking(self) -> None:
        if not self._services.settings.topic_tracking_enable:
            raise Forbidden("Topic tracking is disabled.")

    def _shown(self, desired: DesiredConnector) -> dict[str, str]:
        """Remembered, since a request may ask for hundreds of connectors."""
        known = self._shown_configs.get(desired.name)
        if known is None or known[0] is not desired.config:
            if len(self._shown_configs) >= _CLASSES_MAX:
                self._shown_configs.clear()
            known = desired.config, self._services.secrets.shown(desired.config)
            self._shown_configs[desired.name] = known
        return dict(known[1])

    def _desired(self, name: str) -> DesiredConnector:
        desired = self._services.configs.desired(name)
        if desired is None:
            raise errors.connector_not_found(name)
        return desired

    def _task_state(self, desired: DesiredConnector, task: TaskId) -> TaskState:
        found = self._services.statuses.task(task)
        return TaskState(
            id=task.task,
            state=found.state if found else State.UNASSIGNED,
            worker_id=found.worker_id if found else self._services.worker_id,
            trace=(found.trace or None) if found else None,
            version=self._class(desired)[1],
        )

    def _class(self, desired: DesiredConnector) -> tuple[ConnectorType, str | None]:
        """Whether it is a source or a sink, and the version of its class."""
        name = desired.config.get("connector.class", "")
        if name not in self._classes:
            if len(self._classes) >= _CLASSES_MAX:
                self._classes.clear()
            try:
                found = self._services.plugins.connectors.find(name)
                self._classes[name] = connector_type(found), self._services.plugins.version_of(found)
            except ConfigError:
                self._classes[name] = "unknown", None
        return self._classes[name]
