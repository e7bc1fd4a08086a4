"""Connectors: their states and those of their tasks, reasons of failures, and problems of a configuration."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from deploy.views.text import trace_summary

Status = Mapping[str, Any]
"""A connector's status in Kafka Connect's API."""
Verdict = Literal["running", "failed", "waiting"]

_WORST_FIRST: Final = ("FAILED", "RESTARTING", "UNASSIGNED", "STOPPED", "PAUSED", "RUNNING")


class Task(msgspec.Struct, frozen=True):
    """A task in a list."""

    id: int
    state: str


class ConnectorSummary(msgspec.Struct, frozen=True, kw_only=True, rename={"class_": "class"}):
    """A connector in a list."""

    name: str
    type: str
    state: str
    tasks: list[Task]
    worker: str
    class_: str


class KeyErrors(msgspec.Struct, frozen=True, kw_only=True):
    """The errors of one key."""

    key: str
    value: str | None
    errors: list[str]


class Problems(msgspec.Struct, frozen=True, kw_only=True):
    """The errors and warnings of a configuration."""

    connector_class: str
    error_count: int
    errors: list[KeyErrors]
    warnings: list[dict[str, str]]


def summarize(name: str, connector: Status) -> ConnectorSummary:
    """A connector, from its `info` and its `status`."""
    status, info = connector.get("status") or {}, connector.get("info") or {}
    own = status.get("connector") or {}
    return ConnectorSummary(
        name=name,
        type=info.get("type") or status.get("type") or "unknown",
        state=own.get("state", "UNASSIGNED"),
        tasks=[Task(task["id"], task["state"]) for task in status.get("tasks", [])],
        worker=own.get("worker_id", ""),
        class_=info.get("config", {}).get("connector.class", ""),
    )


def count_states(tasks: Iterable[Task]) -> list[tuple[str, int]]:
    """The number of tasks in each state, the worst first; states that Kafka Connect does not know come before all."""
    states = [task.state for task in tasks]
    order = sorted(set(states), key=lambda state: (_WORST_FIRST.index(state) if state in _WORST_FIRST else -1, state))
    return [(state, states.count(state)) for state in order]


def parts(status: Status) -> list[tuple[str, Status]]:
    """A connector and its tasks, each with its name."""
    return [("connector", status["connector"]), *((f"task {task['id']}", task) for task in status["tasks"])]


def failures(status: Status) -> Iterator[tuple[str, str]]:
    """Each part that has failed, and the reason in one line."""
    for title, part in parts(status):
        if part["state"] == "FAILED":
            yield title, trace_summary(part.get("trace")) or "the worker gives no reason"


def verdict(status: Status) -> Verdict:
    """What the states mean to a command that waits for the connector to run."""
    states = [part["state"] for _, part in parts(status)]
    if "FAILED" in states:
        return "failed"
    return "running" if len(states) > 1 and set(states) == {"RUNNING"} else "waiting"


def problems(infos: Mapping[str, Any], *, given: Mapping[str, object]) -> Problems:
    """The errors and warnings in a worker's answer to `validate`."""
    errors = []
    for config in infos["configs"]:
        key, value = config["value"]["name"], config["value"]["value"]
        if not config["value"]["errors"]:
            continue
        if key not in given:
            value = None
        elif value is None:  # workers leave out values that they cannot read, and hide passwords
            is_secret = (config.get("definition") or {}).get("type") == "PASSWORD"
            value = "[hidden]" if is_secret else str(given[key])
        errors.append(KeyErrors(key=key, value=value, errors=config["value"]["errors"]))
    return Problems(
        connector_class=infos["name"],
        error_count=infos["error_count"],
        errors=errors,
        warnings=list(infos.get("warnings") or []),  # Kafka's own workers send none
    )
