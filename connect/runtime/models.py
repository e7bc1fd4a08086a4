"""What the worker tells of connectors and tasks; the REST API shows these as they are."""

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
FENCED = "The transactions of this task were taken over"
"""How the trace begins of a task that another run of it has replaced, or whose transaction the cluster gave up: not
its fault, so the leader starts it again."""


class TaskInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A task and its configuration."""

    id: Annotated[TaskId, Meta(description="Which task.")]
    config: Annotated[dict[str, str], Meta(description="Its configuration.")]


class ConnectorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A connector as it was configured."""

    name: Annotated[str, Meta(description="Its name.")]
    config: Annotated[dict[str, str], Meta(description="Its configuration, with placeholders as they were given.")]
    tasks: Annotated[list[TaskId], Meta(description="Its tasks.")]
    type: Annotated[ConnectorType, Meta(description="Which way data goes.")]


class ConnectorState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the connector itself fares."""

    state: Annotated[State, Meta(description="What it does.")]
    worker_id: Annotated[str, Meta(description="The worker that runs it.", examples=["connect-1:8083"])]
    trace: Annotated[str | None, Meta(description="Why it failed; left out when it did not.")] = None
    version: Annotated[str | None, Meta(description="The version of its class; left out when unknown.")] = None


class TaskState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a task fares."""

    id: Annotated[int, Meta(description="Its number.", examples=[0])]
    state: Annotated[State, Meta(description="What it does.")]
    worker_id: Annotated[str, Meta(description="The worker that runs it.", examples=["connect-1:8083"])]
    trace: Annotated[str | None, Meta(description="Why it failed; left out when it did not.")] = None
    version: Annotated[str | None, Meta(description="The version of its class; left out when unknown.")] = None


class ConnectorStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a connector and its tasks fare."""

    name: Annotated[str, Meta(description="Its name.")]
    connector: Annotated[ConnectorState, Meta(description="The connector itself.")]
    tasks: Annotated[list[TaskState], Meta(description="Its tasks.")]
    type: Annotated[ConnectorType, Meta(description="Which way data goes.")]


class ExpandedConnector(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was asked for of a connector."""

    status: Annotated[ConnectorStatus | None, Meta(description="With expand=status.")] = None
    info: Annotated[ConnectorInfo | None, Meta(description="With expand=info.")] = None


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
