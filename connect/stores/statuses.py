"""States of connectors and tasks, and the topics they use: the status topic as a table, in Kafka Connect's format."""

import logging
import threading
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from connect.api.errors import ConnectError
from connect.settings import ConnectSettings
from connect.stores.states import State, TaskId
from connect.stores.topic import CompactedTopic, TopicPlan
from connect.stores.writer import TopicWriter
from core_broker.client.records import IncomingRecord
from core_broker.service.clock import Clock, SystemClock

log = logging.getLogger(__name__)

Key = TypeVar("Key", str, int)

_CONNECTOR, _TASK, _TOPIC, _OF_CONNECTOR = "status-connector-", "status-task-", "status-topic-", ":connector-"
_PAUSE_SECONDS: Final = 0.5
_BATCH: Final = 500


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """One record of the topic: the state of a connector or a task."""

    state: State
    trace: str | None = None
    worker_id: str = ""
    generation: int = 0


class TopicUse(msgspec.Struct, frozen=True, kw_only=True, rename={"discovered_ms": "discoverTimestamp"}):
    """A topic that a connector uses, and the task that used it first."""

    name: str
    connector: str
    task: int
    discovered_ms: int


Changed = tuple[str, int | None]
"""The connector whose status changed, and the task if it was one."""
Listener = Callable[[str, int | None], None]


class StatusWriter:
    """Writes states in the background: it never waits and never fails, and the last state of each key arrives.

    While the cluster is unreachable, one state of each key is kept.
    """

    def __init__(self, settings: ConnectSettings, *, clock: Clock | None = None) -> None:
        self._topic_name = settings.status_storage_topic
        self._clock = clock or SystemClock()
        self._writer = TopicWriter(settings.kafka(), self._topic_name)
        self._changed = threading.Condition()
        self._pending: dict[str, bytes | None] = {}
        self._sending: dict[str, bytes | None] = {}
        self._written: dict[str, int] = {}
        """The offset of the last record written, by key."""
        self._is_closing = False
        self._sender: threading.Thread | None = None

    def put_connector(
        self, name: str, state: State, *, worker_id: str, generation: int, trace: str | None = None
    ) -> None:
        """Write the state of a connector; DESTROYED deletes it."""
        status = Status(state=state, trace=trace, worker_id=worker_id, generation=generation)
        self._put(_CONNECTOR + name, status)

    def put_task(
        self, task: TaskId, state: State, *, worker_id: str, generation: int, trace: str | None = None
    ) -> None:
        """Write the state of a task; DESTROYED deletes it."""
        status = Status(state=state, trace=trace, worker_id=worker_id, generation=generation)
        self._put(f"{_TASK}{task}", status)

    def put_topic(self, topic: str, task: TaskId) -> None:
        """Note that a connector uses a topic, and which task did."""
        use = TopicUse(name=topic, connector=task.connector, task=task.task, discovered_ms=self._clock.now_ms())
        self._write(f"{_TOPIC}{topic}{_OF_CONNECTOR}{task.connector}", msgspec.json.encode({"topic": use}))

    def delete_topic(self, topic: str, connector: str) -> None:
        """Delete the note that a connector used a topic."""
        self._write(f"{_TOPIC}{topic}{_OF_CONNECTOR}{connector}", None)

    def flush(self, timeout_seconds: float = 10.0) -> bool:
        """Wait until everything is written; False on a timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._pending and not self._sending, timeout_seconds)

    def close(self, timeout_seconds: float = 5.0) -> None:
        """Write the rest, within the time given."""
        self.flush(timeout_seconds)
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
            sender = self._sender
        if sender is not None:
            sender.join(1)
        self._writer.close()

    def _put(self, key: str, status: Status) -> None:
        self._write(key, None if status.state is State.DESTROYED else msgspec.json.encode(status))

    def _write(self, key: str, value: bytes | None) -> None:
        with self._changed:
            self._pending.pop(key, None)
            self._pending[key] = value
            if self._sender is None:
                self._sender = threading.Thread(target=self._send, name="status-writer", daemon=True)
                self._sender.start()
            self._changed.notify_all()

    def _send(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._is_closing)
                if self._is_closing:
                    return
                chosen = list(self._pending)[:_BATCH]
                self._sending = {key: self._pending.pop(key) for key in chosen}
            offsets: list[int] | None = None
            try:
                offsets = self._writer.send([(key.encode(), value) for key, value in self._sending.items()])
            except ConnectError as error:
                log.warning("states could not be written yet", extra={"topic": self._topic_name, "error": str(error)})
            with self._changed:
                if offsets is None:
                    self._pending = {**self._sending, **self._pending}
                else:
                    self._written |= zip(self._sending, offsets, strict=True)
                self._sending = {}
                self._changed.notify_all()
                if offsets is None:
                    self._changed.wait_for(lambda: self._is_closing, _PAUSE_SECONDS)


class StatusStore(StatusWriter):
    """Writes states, and knows those of all workers and tasks. What is put here is known here at once."""

    def __init__(self, settings: ConnectSettings, *, clock: Clock | None = None) -> None:
        super().__init__(settings, clock=clock)
        plan = TopicPlan(
            name=settings.status_storage_topic,
            key="status.storage.topic",
            partitions=settings.status_storage_partitions,
            replicas_wanted=settings.status_storage_replication_factor,
        )
        self._followed = CompactedTopic(settings.kafka(), plan, self._read)
        self._lock = threading.Lock()
        self._connectors: dict[str, Status] = {}
        self._tasks: dict[str, dict[int, Status]] = {}
        self._topics: dict[str, dict[str, TopicUse]] = {}
        self.listeners: list[Listener] = []
        """Called from any thread after a status has changed."""

    def start(self) -> None:
        """Read the topic to its end, and follow it."""
        self._followed.start()

    def stop(self) -> None:
        """Write the rest, and stop following the topic."""
        self.close()
        self._followed.stop()

    def refresh(self) -> None:
        """Wait until all records are read that were committed before this call."""
        self._followed.refresh()

    def connectors(self) -> set[str]:
        """Names of the connectors that have a status."""
        with self._lock:
            tasks = {name for name, statuses in self._tasks.items() if statuses}
            topics = {name for name, uses in self._topics.items() if uses}
            return {*self._connectors, *tasks, *topics}

    def connector(self, name: str) -> Status | None:
        """The status of a connector."""
        with self._lock:
            return self._connectors.get(name)

    def task(self, task: TaskId) -> Status | None:
        """The status of a task."""
        with self._lock:
            return self._tasks.get(task.connector, {}).get(task.task)

    def tasks(self, name: str) -> dict[int, Status]:
        """The statuses of a connector's tasks, including old ones that were not deleted yet."""
        with self._lock:
            return dict(self._tasks.get(name, {}))

    def topics(self, name: str) -> list[TopicUse]:
        """The topics that a connector uses."""
        with self._lock:
            return list(self._topics.get(name, {}).values())

    def _write(self, key: str, value: bytes | None) -> None:
        with self._changed:
            changed = self._take(key, value)
            super()._write(key, value)
        self._notify(changed)

    def _read(self, record: IncomingRecord) -> None:
        key = (record.key or b"").decode()
        with self._changed:
            # Whether this record comes before one that is being sent is known once that is acknowledged or given up.
            self._changed.wait_for(lambda: key not in self._sending or self._is_closing)
            is_overtaken = key in self._pending or record.offset < self._written.get(key, 0)
            if not is_overtaken:
                self._written.pop(key, None)
            changed = self._take(key, record.value, is_overtaken=is_overtaken)
        self._notify(changed)

    def _take(self, key: str, value: bytes | None, *, is_overtaken: bool = False) -> Changed | None:
        """Apply a record that was put or read, and return whose status that changed.

        A record is overtaken when one was put here for the same key that is, or will be, later in the topic.
        """
        if key.startswith(_TOPIC):
            topic, _, connector = key.removeprefix(_TOPIC).partition(_OF_CONNECTOR)
            if not is_overtaken:
                with self._lock:
                    uses = self._topics.setdefault(connector, {})
                    if value is None:
                        uses.pop(topic, None)
                    else:
                        uses[topic] = msgspec.json.decode(value, type=dict[str, TopicUse])["topic"]
            return None
        status = msgspec.json.decode(value, type=Status) if value is not None else None
        if key.startswith(_CONNECTOR):
            name = key.removeprefix(_CONNECTOR)
            is_changed = self._take_status(self._connectors, name, status, is_overtaken=is_overtaken)
            return (name, None) if is_changed else None
        if key.startswith(_TASK):
            name, _, number = key.removeprefix(_TASK).rpartition("-")
            if number.isdigit():
                table = self._tasks.setdefault(name, {})
                is_changed = self._take_status(table, int(number), status, is_overtaken=is_overtaken)
                return (name, int(number)) if is_changed else None
            return None
        log.warning("a status has an unknown key", extra={"key": key})
        return None

    def _take_status(self, table: dict[Key, Status], key: Key, status: Status | None, *, is_overtaken: bool) -> bool:
        """Whether it changed anything: late records of an earlier generation are ignored."""
        with self._lock:
            known = table.get(key)
            is_of_later_generation = status and known and status.generation > known.generation
            if is_overtaken and not is_of_later_generation:
                return False
            if status is None:
                table.pop(key, None)
            elif known is None or status.generation >= known.generation:
                table[key] = status
            return table.get(key) != known

    def _notify(self, changed: Changed | None) -> None:
        if changed is not None:
            for listener in self.listeners:
                listener(*changed)
