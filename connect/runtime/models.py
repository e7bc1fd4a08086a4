"""What the worker tells of connectors and tasks; the REST API shows these as they are."""

from enum import StrEnum
from typing import Literal

import msgspec

ConnectorType = Literal["source", "sink", "unknown"]


class State(StrEnum):
    """How a connector or a task fares."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"
    DESTROYED = "DESTROYED"
    """Never shown: what was deleted."""


class Target(StrEnum):
    """What the user wants of a connector."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class TaskId(msgspec.Struct, frozen=True, order=True):
    """One task of a connector."""

    connector: str
    task: int

    def __str__(self) -> str:
        return f"{self.connector}-{self.task}"


class TaskInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A task and its configuration."""

    id: TaskId
    config: dict[str, str]


class ConnectorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A connector as it was configured."""

    name: str
    config: dict[str, str]
    tasks: list[TaskId]
    type: ConnectorType


class ConnectorState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the connector itself fares."""

    state: State
    worker_id: str
    trace: str | None = None
    version: str | None = None


class TaskState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a task fares."""

    id: int
    state: State
    worker_id: str
    trace: str | None = None
    version: str | None = None


class ConnectorStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a connector and its tasks fare."""

    name: str
    connector: ConnectorState
    tasks: list[TaskState]
    type: ConnectorType


class TaskPlan(msgspec.Struct, frozen=True, kw_only=True):
    """All that is needed to run a task, wherever that is. Placeholders such as `${file:…}` are not filled in yet."""

    id: TaskId
    connector_config: dict[str, str]
    task_config: dict[str, str]
    target: Target
    generation: int
    """Grows with every new configuration of the connector and every restart of the task."""
    task_count: int = 1
    epoch: int = 0
    """Grows with every owner of the task; an owner with a lower one has lost it."""
    worker_id: str = ""
