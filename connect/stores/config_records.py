"""Records of the config topic, in Kafka Connect's format: the keys, what stands behind them, and how it is written."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from connect.stores.states import Target, TaskId
from connect.stores.writer import Pair

CONNECTOR: Final = "connector-"
TASK: Final = "task-"
COMMIT: Final = "commit-"
TARGET: Final = "target-state-"
FENCING: Final = "tasks-fencing-"
RESTART: Final = "restart-connector-"
LOGGER: Final = "logger-cluster-"
LEADER: Final = "leader"
"""Ours alone: Kafka Connect passes over keys that it does not know."""
REDRIVE: Final = "redrive-"
"""Ours alone, too."""

_PREFIXES: Final = (CONNECTOR, TASK, COMMIT, TARGET, FENCING, RESTART, LOGGER, REDRIVE)


class Properties(msgspec.Struct, frozen=True):
    """A configuration."""

    properties: dict[str, str | None]


class Commit(msgspec.Struct, frozen=True):
    """The configurations of tasks that came before are complete, and count from now on."""

    tasks: int


class TargetState(msgspec.Struct, frozen=True, rename={"state_v2": "state.v2"}):
    """What is wanted of a connector; those who do not know STOPPED read PAUSED."""

    state: str
    state_v2: str | None = None


class Fencing(msgspec.Struct, frozen=True, rename={"task_count": "task-count"}):
    """How many tasks must be fenced before others may start."""

    task_count: int


class Restart(msgspec.Struct, frozen=True, rename={"include_tasks": "include-tasks", "only_failed": "only-failed"}):
    """Somebody asked for a restart."""

    include_tasks: bool
    only_failed: bool


class LoggerLevel(msgspec.Struct, frozen=True):
    """How much a logger tells, on every worker."""

    level: str


class Leader(msgspec.Struct, frozen=True, kw_only=True):
    """The worker that decides, and where it answers."""

    url: str
    worker_id: str


def split_key(key: str) -> tuple[str, str]:
    """What a key is about, and whose it is: `task-`, `copy-0` for instance; nothing when it is unknown."""
    if key == LEADER:
        return LEADER, ""
    prefix = next((prefix for prefix in _PREFIXES if key.startswith(prefix)), "")
    return prefix, key.removeprefix(prefix)


def task_of(rest: str) -> TaskId | None:
    """The task that the rest of a key names."""
    name, _, number = rest.rpartition("-")
    return TaskId(name, int(number)) if name and number.isdecimal() else None


def properties_of(value: bytes) -> dict[str, str]:
    """A configuration as it is used; keys without a value are left out."""
    found = msgspec.json.decode(value, type=Properties).properties
    return {key: text for key, text in found.items() if text is not None}


def target_of(value: bytes) -> Target:
    """What is wanted."""
    found = msgspec.json.decode(value, type=TargetState)
    return Target(found.state_v2 or found.state)


def connector_record(name: str, config: Mapping[str, str]) -> Pair:
    """A connector's configuration."""
    return _pair(f"{CONNECTOR}{name}", Properties(dict(config)))


def task_record(task: TaskId, config: Mapping[str, str]) -> Pair:
    """A task's configuration; it counts once the commit record came."""
    return _pair(f"{TASK}{task}", Properties(dict(config)))


def commit_record(name: str, tasks: int) -> Pair:
    """The end of a list of tasks."""
    return _pair(f"{COMMIT}{name}", Commit(tasks))


def target_record(name: str, target: Target) -> Pair:
    """What is wanted of a connector."""
    known_by_all = Target.PAUSED if target is Target.STOPPED else target
    return _pair(f"{TARGET}{name}", TargetState(str(known_by_all), str(target)))


def fencing_record(name: str, tasks: int) -> Pair:
    """How many tasks there are to be fenced."""
    return _pair(f"{FENCING}{name}", Fencing(tasks))


def restart_record(name: str, restart: Restart) -> Pair:
    """A request to restart."""
    return _pair(f"{RESTART}{name}", restart)


def logger_record(logger: str, level: str) -> Pair:
    """A level for a logger on every worker."""
    return _pair(f"{LOGGER}{logger}", LoggerLevel(level))


def leader_record(leader: Leader) -> Pair:
    """Who leads."""
    return _pair(LEADER, leader)


def redrive_record(name: str, mark: str, value: Mapping[str, object] | None) -> Pair:
    """How far a redrive of dead letters is; None forgets it."""
    return f"{REDRIVE}{name}:{mark}".encode(), None if value is None else msgspec.json.encode(value)


def removal_records(name: str, tasks: int) -> list[Pair]:
    """Forget a connector. How many tasks must be fenced stays: there may be one of that name again."""
    keys = [f"{CONNECTOR}{name}", f"{TARGET}{name}", *(f"{TASK}{name}-{n}" for n in range(tasks)), f"{COMMIT}{name}"]
    return [(key.encode(), None) for key in keys]


def _pair(key: str, value: Any) -> Pair:
    return key.encode(), msgspec.json.encode(value)
