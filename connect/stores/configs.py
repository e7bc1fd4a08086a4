"""The desired state of connectors: the config topic as a table. Only the leader writes it (`ConfigWriter`)."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from connect.settings import ConnectSettings
from connect.stores import config_records as records
from connect.stores.config_records import Leader, SessionKey
from connect.stores.states import Target
from connect.stores.topic import CompactedTopic, TopicPlan
from core_broker.client.records import IncomingRecord
from core_broker.web_access.rules import Rule

log = logging.getLogger(__name__)

Config = dict[str, str]


@dataclass(slots=True)
class _Entry:
    """The records of the topic about one connector."""

    config: Config | None = None
    config_offset: int = -1
    target: Target = Target.STARTED
    tasks: list[Config] = field(default_factory=list)
    commit_offset: int = -1
    is_inconsistent: bool = False
    uncommitted: dict[int, Config] = field(default_factory=dict)
    fenced_tasks: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredConnector:
    """The desired state of a connector. It is shared: do not change it."""

    name: str
    config: Config
    config_offset: int
    """The offset at which the connector was last configured."""
    target: Target
    tasks: tuple[Config, ...]
    """The committed configurations of its tasks; none while they are inconsistent."""
    is_planned: bool
    """Whether the tasks were planned after the connector was last configured, and are complete."""
    decided_at: int
    """The offset at which the connector or its tasks were last configured."""
    fenced_tasks: int | None
    """How many tasks must be fenced before new ones start; None if there never were any."""


class ConfigStore(CompactedTopic):
    """Knows the desired state of all connectors. Its `position` grows with every decision. Thread-safe."""

    def __init__(self, settings: ConnectSettings) -> None:
        plan = TopicPlan(
            name=settings.config_storage_topic,
            key="config.storage.topic",
            partitions=1,
            replicas_wanted=settings.config_storage_replication_factor,
            is_single=True,
        )
        super().__init__(settings.kafka(), plan, self._apply)
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        self._leader: Leader | None = None
        self._levels: dict[str, str] = {}
        self._rules: dict[str, Rule] = {}
        self.rules_version = 0
        """Changes with every change of the access rules."""
        self._session_keys: tuple[SessionKey, ...] = ()
        self.on_logger_level: Callable[[str, str], None] = lambda _, __: None
        """Called from the topic's thread when the level of a logger was set for all workers."""

    @property
    def leader(self) -> Leader | None:
        """The worker that last announced itself as the leader."""
        return self._leader

    @property
    def session_keys(self) -> tuple[SessionKey, ...]:
        """The keys with which workers sign for each other, the newest first: the former one is still in use."""
        return self._session_keys

    def rules(self) -> list[Rule]:
        """The access rules, in an order that stays."""
        with self._lock:
            rules = list(self._rules.items())
        return [rule for _, rule in sorted(rules, key=lambda item: (item[1].principal, item[1].resource, item[0]))]

    def connectors(self) -> list[str]:
        """The names of all connectors."""
        with self._lock:
            return [name for name, entry in self._entries.items() if entry.config is not None]

    def contains(self, name: str) -> bool:
        """Whether the connector exists."""
        with self._lock:
            entry = self._entries.get(name)
            return entry is not None and entry.config is not None

    def desired(self, name: str) -> DesiredConnector | None:
        """The desired state of a connector; None when it does not exist."""
        with self._lock:
            entry = self._entries.get(name)
            if entry is None or entry.config is None:
                return None
            return DesiredConnector(
                name=name,
                config=entry.config,
                config_offset=entry.config_offset,
                target=entry.target,
                tasks=() if entry.is_inconsistent else tuple(entry.tasks),
                is_planned=entry.commit_offset > entry.config_offset and not entry.is_inconsistent,
                decided_at=max(entry.config_offset, entry.commit_offset),
                fenced_tasks=entry.fenced_tasks,
            )

    def task_numbers(self, name: str) -> int:
        """How many task keys there may be in the topic, committed or not."""
        with self._lock:
            entry = self._entries.get(name)
            return max(len(entry.tasks), *(number + 1 for number in entry.uncommitted), 0) if entry else 0

    # --- the topic's thread ---

    def _apply(self, record: IncomingRecord) -> None:
        kind, rest = records.split_key((record.key or b"").decode())
        with self._lock:
            self._update(kind, rest, record)
        if kind == records.LOGGER and rest in self._levels:
            self.on_logger_level(rest, self._levels[rest])

    def _update(self, kind: str, rest: str, record: IncomingRecord) -> None:
        value = record.value
        match kind:
            case records.RULE:
                self._take_rule(rest, value)
            case records.SESSION_KEY | records.LEADER | records.LOGGER:
                self._take_common(kind, rest, value)
            case records.CONNECTOR:
                entry = self._entry(rest)
                if value is None:
                    # The tasks to fence are remembered; the rest belonged to the deleted connector.
                    self._entries[rest] = _Entry(fenced_tasks=entry.fenced_tasks)
                else:
                    entry.config, entry.config_offset = records.properties_of(value), record.offset
            case records.TASK:
                self._take_task(rest, value)
            case records.COMMIT:
                self._take_commit(self._entry(rest), record)
            case records.TARGET:
                self._entry(rest).target = records.target_of(value) if value else Target.STARTED
            case records.FENCING:
                fencing = msgspec.json.decode(value, type=records.Fencing) if value else None
                self._entry(rest).fenced_tasks = fencing.task_count if fencing else None
            case _:
                log.debug("a record of the config topic is ignored", extra={"key": kind + rest})

    def _take_common(self, kind: str, rest: str, value: bytes | None) -> None:
        """What is about no connector."""
        if kind == records.LEADER:
            self._leader = msgspec.json.decode(value, type=Leader) if value else None
        elif kind == records.LOGGER and value:
            self._levels[rest] = msgspec.json.decode(value, type=records.LoggerLevel).level
        elif kind == records.SESSION_KEY and value:
            key = msgspec.json.decode(value, type=SessionKey)
            self._session_keys = (key, *(one for one in self._session_keys if one != key))[:2]

    def _take_rule(self, digest: str, value: bytes | None) -> None:
        if value is None:
            self._rules.pop(digest, None)
        else:
            self._rules[digest] = msgspec.json.decode(value, type=Rule)
        self.rules_version += 1

    def _take_task(self, rest: str, value: bytes | None) -> None:
        task = records.task_of(rest)
        if task is None:
            log.warning("a task's configuration has an unknown key", extra={"key": rest})
        elif value is None:
            self._entry(task.connector).uncommitted.pop(task.task, None)
        else:
            self._entry(task.connector).uncommitted[task.task] = records.properties_of(value)

    def _take_commit(self, entry: _Entry, record: IncomingRecord) -> None:
        if record.value is None:
            entry.tasks, entry.commit_offset = [], -1
        else:
            count = msgspec.json.decode(record.value, type=records.Commit).tasks
            # Compaction may have removed task records of an earlier commit.
            entry.is_inconsistent = any(number not in entry.uncommitted for number in range(count))
            if not entry.is_inconsistent:
                entry.tasks = [entry.uncommitted[number] for number in range(count)]
            entry.commit_offset = record.offset
        entry.uncommitted.clear()

    def _entry(self, name: str) -> _Entry:
        return self._entries.setdefault(name, _Entry())
