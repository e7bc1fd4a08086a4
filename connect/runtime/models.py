"""What the worker tells of connectors and tasks; the REST API shows these as they are."""

from typing import Literal

import msgspec

from connect.stores.states import State, Target, TaskId

__all__ = [
    "ConnectorInfo",
    "ConnectorState",
    "ConnectorStatus",
    "ConnectorType",
    "State",
    "Target",
    "TaskId",
    "TaskInfo",
    "TaskPlan",
    "TaskState",
]

ConnectorType = Literal["source", "sink", "unknown"]
FENCED = "The transactions of this task were taken over"
"""How the trace begins of a task that another run of it has replaced, or whose transaction the cluster gave up: not
its fault, so the leader starts it again."""


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
