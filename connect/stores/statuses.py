"""How connectors and tasks fare, and which topics they use: a table of the status topic, in Kafka Connect's format."""

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
    """A topic that a connector uses, and which task met it first."""

    name: str
    connector: str
    task: int
    discovered_ms: int


Changed = tuple[str, int | None]
"""The connector whose status changed, and the task where it was one."""
Listener = Callable[[str, int | None], None]


class StatusWriter:
    """Writes states in the background: it never waits, never fails, and the last state of each is what arrives.

    While the cluster is away, states wait: one for each task, not more.
    """

    def __init__(self, settings: ConnectSettings, *, clock: Clock | None = None) -> None:
        self._topic_name = settings.status_storage_topic
        self._clock = clock or SystemClock()
        self._writer = TopicWriter(settings.kafka(), self._topic_name)
        self._changed = threading.Condition()
        self._pending: dict[str, bytes | None] = {}
        self._sending: dict[str, bytes | None] = {}
        self._written: dict[str, int] = {}
        """The offset of what was written last, for each key."""
        self._is_closing = False
        self._sender: threading.Thread | None = None

    def put_connector(
        self, name: str, state: State, *, worker_id: str, generation: int, trace: str | None = None
    ) -> None:
        """Note how a connector fares; DESTROYED forgets it."""
        status = Status(state=state, trace=trace, worker_id=worker_id, generation=generation)
        self._put(_CONNECTOR + name, status)

    def put_task(
        self, task: TaskId, state: State, *, worker_id: str, generation: int, trace: str | None = None
    ) -> None:
        """Note how a task fares; DESTROYED forgets it."""
        status = Status(state=state, trace=trace, worker_id=worker_id, generation=generation)
        self._put(f"{_TASK}{task}", status)

    def put_topic(self, topic: str, task: TaskId) -> None:
        """Note that a connector uses a topic; the task has met it."""
        use = TopicUse(name=topic, connector=task.connector, task=task.task, discovered_ms=self._clock.now_ms())
        self._write(f"{_TOPIC}{topic}{_OF_CONNECTOR}{task.connector}", msgspec.json.encode({"topic": use}))

    def delete_topic(self, topic: str, connector: str) -> None:
        """Forget that a connector used a topic."""
        self._write(f"{_TOPIC}{topic}{_OF_CONNECTOR}{connector}", None)

    def flush(self, timeout_seconds: float = 10.0) -> bool:
        """Wait until all is written; False when time was up."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._pending and not self._sending, timeout_seconds)

    def close(self, timeout_seconds: float = 5.0) -> None:
        """Write what is left, as far as time allows."""
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
            offsets = self._try_send()
            with self._changed:
                if offsets is None:
                    self._pending = {**self._sending, **self._pending}
                else:
                    self._written |= zip(self._sending, offsets, strict=True)
                self._sending = {}
                self._changed.notify_all()
                if offsets is None:
                    self._changed.wait_for(lambda: self._is_closing, _PAUSE_SECONDS)

    def _try_send(self) -> list[int] | None:
        """Where the states were written; None when they could not be, and are to be tried again."""
        try:
            return self._writer.send([(key.encode(), value) for key, value in self._sending.items()])
        except ConnectError as error:
            log.warning("states could not be written yet", extra={"topic": self._topic_name, "error": str(error)})
            return None


class StatusStore(StatusWriter):
    """Writes states, and knows those that all workers and tasks wrote. What is put here is known here at once."""

    def __init__(self, settings: ConnectSettings, *, clock: Clock | None = None) -> None:
        super().__init__(settings, clock=clock)
        plan = TopicPlan(
            name=settings.status_storage_topic,
            key="status.storage.topic",
            partitions=settings.status_storage_partitions,
            replication_factor=settings.status_storage_replication_factor,
        )
        self._followed = CompactedTopic(settings.kafka(), plan, self._read)
        self._lock = threading.Lock()
        self._connectors: dict[str, Status] = {}
        self._tasks: dict[str, dict[int, Status]] = {}
        self._topics: dict[str, dict[str, TopicUse]] = {}
        self.listeners: list[Listener] = []
        """Called, from any thread, after a status has changed."""

    def start(self) -> None:
        """Read all that is there, and follow what comes."""
        self._followed.start()

    def stop(self) -> None:
        """Follow no more; what is not written yet is written."""
        self.close()
        self._followed.stop()

    def refresh(self) -> None:
        """Wait until all that was committed before this call is known."""
        self._followed.read_to_end()

    def connectors(self) -> set[str]:
        """All of whom something is known."""
        with self._lock:
            tasks = {name for name, statuses in self._tasks.items() if statuses}
            topics = {name for name, uses in self._topics.items() if uses}
            return {*self._connectors, *tasks, *topics}

    def connector(self, name: str) -> Status | None:
        """How a connector fares."""
        with self._lock:
            return self._connectors.get(name)

    def task(self, task: TaskId) -> Status | None:
        """How a task fares."""
        with self._lock:
            return self._tasks.get(task.connector, {}).get(task.task)

    def tasks(self, name: str) -> dict[int, Status]:
        """How the tasks of a connector fare, those included that are no more and were not forgotten."""
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
        self._tell(changed)

    def _read(self, record: IncomingRecord) -> None:
        key = (record.key or b"").decode()
        with self._changed:
            # Whether a record comes before or after what is being sent is known once that is acknowledged or given up.
            self._changed.wait_for(lambda: key not in self._sending or self._is_closing)
            is_overtaken = key in self._pending or record.offset < self._written.get(key, 0)
            if not is_overtaken:
                self._written.pop(key, None)
            changed = self._take(key, record.value, is_overtaken=is_overtaken)
        self._tell(changed)

    def _take(self, key: str, value: bytes | None, *, is_overtaken: bool = False) -> Changed | None:
        """Note what was put or read, and return whose status that changed.

        A record is overtaken when something was put here for its key that is, or will be, later in the topic.
        """
        if key.startswith(_TOPIC):
            if not is_overtaken:
                self._take_topic(key.removeprefix(_TOPIC), value)
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
        """Whether it changed anything: what an earlier generation says late is passed over."""
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

    def _take_topic(self, key: str, value: bytes | None) -> None:
        topic, _, connector = key.partition(_OF_CONNECTOR)
        with self._lock:
            if value is None:
                self._topics.get(connector, {}).pop(topic, None)
            else:
                self._topics.setdefault(connector, {})[topic] = msgspec.json.decode(value, type=dict[str, TopicUse])[
                    "topic"
                ]

    def _tell(self, changed: Changed | None) -> None:
        if changed is not None:
            for listener in self.listeners:
                listener(*changed)
