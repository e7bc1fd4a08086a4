"""What connectors are to do: a table of the config topic. Written by the leader alone (`ConfigWriter`)."""

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import msgspec

from connect.settings import ConnectSettings
from connect.stores import config_records as records
from connect.stores.config_records import Leader
from connect.stores.states import Target
from connect.stores.topic import CompactedTopic, TopicPlan
from connect.stores.writer import Pair
from core_broker.client.records import IncomingRecord

log = logging.getLogger(__name__)

Config = dict[str, str]


@dataclass(slots=True)
class _Entry:
    """All that stands in the topic about one connector."""

    config: Config | None = None
    config_offset: int = -1
    target: Target = Target.STARTED
    tasks: list[Config] = field(default_factory=list)
    commit_offset: int = -1
    is_inconsistent: bool = False
    uncommitted: dict[int, Config] = field(default_factory=dict)
    fenced_tasks: int | None = None
    redrives: dict[str, dict[str, object]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredConnector:
    """What a connector is to do, as the topic says. It is shared: do not change it."""

    name: str
    config: Config
    config_offset: int
    """The offset at which the connector was last configured."""
    target: Target
    tasks: tuple[Config, ...]
    """Configurations of tasks that were committed; none while they are inconsistent."""
    is_planned: bool
    """Whether the tasks were planned after the connector was last configured, and are complete."""
    decided_at: int
    """The offset at which the connector or its tasks were last configured."""
    fenced_tasks: int | None
    """How many tasks must be fenced before new ones start; None when there never were any."""


class ConfigStore:
    """Knows what connectors are to do. Safe for any number of threads."""

    def __init__(self, settings: ConnectSettings) -> None:
        plan = TopicPlan(
            name=settings.config_storage_topic,
            key="config.storage.topic",
            partitions=1,
            replication_factor=settings.config_storage_replication_factor,
            is_single=True,
        )
        self._topic = CompactedTopic(settings.kafka(), plan, self._apply)
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        self._leader: Leader | None = None
        self._levels: dict[str, str] = {}
        self.on_logger_level: Callable[[str, str], None] = lambda _, __: None
        """Called from the topic's thread when somebody set a level for all workers."""

    def start(self) -> None:
        """Read all that is there, and follow what comes."""
        self._topic.start()

    def stop(self) -> None:
        """Follow no more."""
        self._topic.stop()

    def refresh(self, timeout_seconds: float = 30.0) -> None:
        """Wait until all that was committed before this call is known."""
        self._topic.read_to_end(timeout_seconds)

    def read_back(self, pair: Pair) -> AbstractContextManager[None]:
        """Wait at the end of the block until this record, written inside of it, is known."""
        return self._topic.read_back(pair)

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self._topic.plan.name

    @property
    def position(self) -> int:
        """The offset that is read next: it grows with everything that anybody decides."""
        return self._topic.position

    @property
    def leader(self) -> Leader | None:
        """Who said last to be the leader."""
        return self._leader

    def connectors(self) -> list[str]:
        """The names of all connectors."""
        with self._lock:
            return [name for name, entry in self._entries.items() if entry.config is not None]

    def contains(self, name: str) -> bool:
        """Whether there is such a connector."""
        with self._lock:
            entry = self._entries.get(name)
            return entry is not None and entry.config is not None

    def desired(self, name: str) -> DesiredConnector | None:
        """What a connector is to do; None when there is no such connector."""
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
        """How many keys of tasks there may be in the topic, committed or not."""
        with self._lock:
            entry = self._entries.get(name)
            return max(len(entry.tasks), *(number + 1 for number in entry.uncommitted), 0) if entry else 0

    def redrives(self, name: str) -> dict[str, dict[str, object]]:
        """How far redrives of a connector's dead letters are, by their marks."""
        with self._lock:
            entry = self._entries.get(name)
            return dict(entry.redrives) if entry else {}

    def logger_levels(self) -> dict[str, str]:
        """The levels that were set for all workers."""
        with self._lock:
            return dict(self._levels)

    # --- the topic's thread ---

    def _apply(self, record: IncomingRecord) -> None:
        about, rest = records.split_key((record.key or b"").decode())
        with self._lock:
            self._take(about, rest, record)
        if about == records.LOGGER and rest in self._levels:
            self.on_logger_level(rest, self._levels[rest])

    def _take(self, about: str, rest: str, record: IncomingRecord) -> None:
        match about:
            case records.CONNECTOR:
                self._apply_connector(rest, record)
            case records.TASK:
                self._apply_task(rest, record.value)
            case records.COMMIT:
                self._apply_commit(rest, record)
            case records.TARGET:
                self._entry(rest).target = records.target_of(record.value) if record.value else Target.STARTED
            case records.FENCING:
                value = msgspec.json.decode(record.value, type=records.Fencing) if record.value else None
                self._entry(rest).fenced_tasks = value.task_count if value else None
            case records.REDRIVE:
                self._apply_redrive(rest, record.value)
            case _:
                self._apply_other(about, rest, record.value)

    def _apply_connector(self, name: str, record: IncomingRecord) -> None:
        entry = self._entry(name)
        if record.value is None:
            # What must be fenced is remembered; the rest belongs to the connector that is no more.
            self._entries[name] = _Entry(fenced_tasks=entry.fenced_tasks)
        else:
            entry.config, entry.config_offset = records.properties_of(record.value), record.offset

    def _apply_task(self, rest: str, value: bytes | None) -> None:
        task = records.task_of(rest)
        if task is None:
            log.warning("a task's configuration has an unknown key", extra={"key": rest})
        elif value is None:
            self._entry(task.connector).uncommitted.pop(task.task, None)
        else:
            self._entry(task.connector).uncommitted[task.task] = records.properties_of(value)

    def _apply_commit(self, name: str, record: IncomingRecord) -> None:
        entry = self._entry(name)
        if record.value is None:
            entry.tasks, entry.commit_offset = [], -1
        else:
            count = msgspec.json.decode(record.value, type=records.Commit).tasks
            # Compaction may have taken records of tasks that belonged to an earlier commit.
            entry.is_inconsistent = any(number not in entry.uncommitted for number in range(count))
            if not entry.is_inconsistent:
                entry.tasks = [entry.uncommitted[number] for number in range(count)]
            entry.commit_offset = record.offset
        entry.uncommitted.clear()

    def _apply_redrive(self, rest: str, value: bytes | None) -> None:
        name, _, mark = rest.rpartition(":")
        if value is None:
            self._entry(name).redrives.pop(mark, None)
        else:
            self._entry(name).redrives[mark] = msgspec.json.decode(value, type=dict[str, object])

    def _apply_other(self, about: str, rest: str, value: bytes | None) -> None:
        if about == records.LEADER:
            self._leader = msgspec.json.decode(value, type=Leader) if value else None
        elif about == records.LOGGER and value:
            self._levels[rest] = msgspec.json.decode(value, type=records.LoggerLevel).level
        elif about != records.RESTART:
            log.debug("a record of the config topic is of no use here", extra={"key": about + rest})

    def _entry(self, name: str) -> _Entry:
        return self._entries.setdefault(name, _Entry())
