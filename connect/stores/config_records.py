"""Records of the config topic in Kafka Connect's format: their keys and values."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from typing_extensions import override

from connect.stores.states import Target, TaskId
from connect.stores.writer import Pair
from core_broker.web_access.rules import Rule

CONNECTOR: Final = "connector-"
TASK: Final = "task-"
COMMIT: Final = "commit-"
TARGET: Final = "target-state-"
FENCING: Final = "tasks-fencing-"
RESTART: Final = "restart-connector-"
LOGGER: Final = "logger-cluster-"
SESSION_KEY: Final = "session-key"
LEADER: Final = "leader"
"""Only ours: Kafka Connect ignores keys that it does not know."""
RULE: Final = "access-rule-"
"""Only ours, too."""

_PREFIXES: Final = (CONNECTOR, TASK, COMMIT, TARGET, FENCING, RESTART, LOGGER, RULE)
_WORDS: Final = (LEADER, SESSION_KEY)


class Properties(msgspec.Struct, frozen=True):
    """A configuration."""

    properties: dict[str, str | None]


class Commit(msgspec.Struct, frozen=True):
    """The preceding task configurations are complete, and valid from now on."""

    tasks: int


class TargetState(msgspec.Struct, frozen=True, rename={"state_v2": "state.v2"}):
    """The target state of a connector; workers that do not know STOPPED read PAUSED."""

    state: str
    state_v2: str | None = None


class Fencing(msgspec.Struct, frozen=True, rename={"task_count": "task-count"}):
    """How many tasks must be fenced before new ones may start."""

    task_count: int


class LoggerLevel(msgspec.Struct, frozen=True):
    """The level of a logger on every worker."""

    level: str


class SessionKey(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """The key with which workers sign the requests that they forward."""

    key: str
    """In base64."""
    algorithm: str
    creation_timestamp: int
    """In milliseconds since 1970."""

    @override
    def __repr__(self) -> str:
        return f"SessionKey(creation_timestamp={self.creation_timestamp})"

    @override
    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("creation_timestamp", self.creation_timestamp)]


class Leader(msgspec.Struct, frozen=True, kw_only=True):
    """The worker that leads, and the URL of its REST API."""

    url: str
    worker_id: str


def split_key(key: str) -> tuple[str, str]:
    """The prefix of a key and the rest, such as `task-` and `copy-0`; an empty prefix when it is unknown."""
    if key in _WORDS:
        return key, ""
    prefix = next((prefix for prefix in _PREFIXES if key.startswith(prefix)), "")
    return prefix, key.removeprefix(prefix)


def task_of(rest: str) -> TaskId | None:
    """The task that the rest of a key names."""
    name, _, number = rest.rpartition("-")
    return TaskId(name, int(number)) if name and number.isdecimal() else None


def properties_of(value: bytes) -> dict[str, str]:
    """A configuration, without keys that have no value."""
    found = msgspec.json.decode(value, type=Properties).properties
    return {key: text for key, text in found.items() if text is not None}


def target_of(value: bytes) -> Target:
    """The target state."""
    found = msgspec.json.decode(value, type=TargetState)
    return Target(found.state_v2 or found.state)


def connector_record(name: str, config: Mapping[str, str]) -> Pair:
    """A connector's configuration."""
    return _pair(f"{CONNECTOR}{name}", Properties(dict(config)))


def task_record(task: TaskId, config: Mapping[str, str]) -> Pair:
    """A task's configuration; valid once the commit record follows."""
    return _pair(f"{TASK}{task}", Properties(dict(config)))


def commit_record(name: str, tasks: int) -> Pair:
    """The end of a list of tasks."""
    return _pair(f"{COMMIT}{name}", Commit(tasks))


def target_record(name: str, target: Target) -> Pair:
    """The target state of a connector."""
    known_by_all = Target.PAUSED if target is Target.STOPPED else target
    return _pair(f"{TARGET}{name}", TargetState(str(known_by_all), str(target)))


def fencing_record(name: str, tasks: int) -> Pair:
    """The number of tasks to fence."""
    return _pair(f"{FENCING}{name}", Fencing(tasks))


def logger_record(logger: str, level: str) -> Pair:
    """The level of a logger on every worker."""
    return _pair(f"{LOGGER}{logger}", LoggerLevel(level))


def leader_record(leader: Leader) -> Pair:
    """The worker that leads."""
    return _pair(LEADER, leader)


def session_key_record(key: SessionKey) -> Pair:
    """The key of all workers."""
    return _pair(SESSION_KEY, key)


def rule_record(rule: Rule) -> Pair:
    """An access rule."""
    return _pair(f"{RULE}{rule.digest}", rule)


def rule_removal_record(rule: Rule) -> Pair:
    """An access rule that ends."""
    return f"{RULE}{rule.digest}".encode(), None


def removal_records(name: str, tasks: int) -> list[Pair]:
    """Delete a connector. The number of tasks to fence stays: a connector of that name may be created again."""
    keys = [f"{CONNECTOR}{name}", f"{TARGET}{name}", *(f"{TASK}{name}-{n}" for n in range(tasks)), f"{COMMIT}{name}"]
    return [(key.encode(), None) for key in keys]


def _pair(key: str, value: Any) -> Pair:
    return key.encode(), msgspec.json.encode(value)
