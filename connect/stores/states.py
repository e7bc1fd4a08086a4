"""Tasks, their states and target states, as in the worker's topics."""

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta


class State(StrEnum):
    """The state of a connector or a task."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"
    DESTROYED = "DESTROYED"
    """Never shown: it was deleted."""


class Target(StrEnum):
    """The state that the user wants for a connector."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class TaskId(msgspec.Struct, frozen=True, order=True):
    """One task of a connector."""

    connector: Annotated[str, Meta(description="The connector's name.", examples=["orders-to-file"])]
    task: Annotated[int, Meta(description="Its number, from 0.", examples=[0])]

    def __str__(self) -> str:
        return f"{self.connector}-{self.task}"
