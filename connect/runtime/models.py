"""Connectors and tasks as the REST API shows them, and the plan of a task."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

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
FENCED = "The place of this task was taken over"
"""The trace of a task contains this if its transactions or its membership in a group are no longer valid, because
another run has replaced it or a response of the cluster was lost: the leader then restarts it."""


class TaskInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A task and its configuration."""

    id: Annotated[TaskId, Meta(description="The id of the task.")]
    config: Annotated[dict[str, str], Meta(description="Its configuration.")]


class ConnectorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration and the tasks of a connector."""

    name: Annotated[str, Meta(description="Its name.")]
    config: Annotated[dict[str, str], Meta(description="Its configuration, with placeholders unresolved.")]
    tasks: Annotated[list[TaskId], Meta(description="Its tasks.")]
    type: Annotated[ConnectorType, Meta(description="source, sink, or unknown.")]


class ConnectorState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of the connector itself."""

    state: Annotated[State, Meta(description="Its state.")]
    worker_id: Annotated[str, Meta(description="The worker that runs it.", examples=["connect-1:8083"])]
    trace: Annotated[str | None, Meta(description="The stack trace of its failure; omitted if it has not failed.")] = (
        None
    )
    version: Annotated[str | None, Meta(description="The version of its class; omitted if unknown.")] = None


class TaskState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a task."""

    id: Annotated[int, Meta(description="Its number.", examples=[0])]
    state: Annotated[State, Meta(description="Its state.")]
    worker_id: Annotated[str, Meta(description="The worker that runs it.", examples=["connect-1:8083"])]
    trace: Annotated[str | None, Meta(description="The stack trace of its failure; omitted if it has not failed.")] = (
        None
    )
    version: Annotated[str | None, Meta(description="The version of its class; omitted if unknown.")] = None


class ConnectorStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The states of a connector and its tasks."""

    name: Annotated[str, Meta(description="Its name.")]
    connector: Annotated[ConnectorState, Meta(description="The connector itself.")]
    tasks: Annotated[list[TaskState], Meta(description="Its tasks.")]
    type: Annotated[ConnectorType, Meta(description="source, sink, or unknown.")]


class ExpandedConnector(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The requested parts of a connector."""

    status: Annotated[ConnectorStatus | None, Meta(description="With expand=status.")] = None
    info: Annotated[ConnectorInfo | None, Meta(description="With expand=info.")] = None


class TaskPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything needed to run a task, on any machine. Placeholders such as `${file:…}` are not resolved yet."""

    id: TaskId
    connector_config: dict[str, str]
    task_config: dict[str, str]
    target: Target
    generation: int
    """Grows with every new configuration of the connector and every restart of the task."""
    task_count: int = 1
    epoch: int = 0
    """Grows with every owner of the task; an owner with a lower epoch has lost it."""
    worker_id: str = ""
