"""A compacted topic as a table: it is read to its end at the start, and then followed."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from connect.api.errors import ConfigError, RetriableError
from connect.stores.writer import Pair, TopicWriter, mapped_client_errors
from core_broker.client.admin import Admin
from core_broker.client.consumer import TopicPartition
from core_broker.client.errors import AlreadyExists, ClientError, Fatal, NotFound, Retriable, Unreachable
from core_broker.client.reader import OffsetOutOfRange, Reader
from core_broker.client.records import IncomingRecord
from core_broker.client.settings import ClientSettings

log = logging.getLogger(__name__)

_BATCH: Final = 2_000
_WAIT_MS: Final = 250
_PAUSE_SECONDS: Final = 0.5
_CREATION_SECONDS: Final = 30.0
_READER_PROPERTIES: Final = {
    # Only an empty fetch shows that a partition ends with the marker of a transaction.
    "fetch.wait.max.ms": "100"
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """How a topic is created if it is missing."""

    name: str
    key: str
    """The setting that names it, for error messages."""
    partitions: int
    replicas_wanted: int
    is_single: bool = False
    """Whether it must have a single partition."""


class CompactedTopic:
    """Reads a topic from its beginning, for ever, in its own thread; sees committed records only.

    `on_record` is called from that thread, one record after the other.
    """

    def __init__(self, settings: ClientSettings, plan: TopicPlan, on_record: Callable[[IncomingRecord], None]) -> None:
        self.plan = plan
        self._settings = replace(settings, properties={**_READER_PROPERTIES, **settings.properties})
        self._on_record = on_record
        self._writer = TopicWriter(settings, plan.name)
        self._passed = threading.Condition()
        self._positions: dict[TopicPartition, int] = {}
        self._awaited: list[tuple[Pair, threading.Event]] = []
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._admin: Admin | None = None

    def start(self, timeout_seconds: float = 60.0) -> None:
        """Create the topic if it is missing, read it to its end, and follow it.

        ConfigError when the topic has the wrong configuration.
        """
        with mapped_client_errors(self.plan.name):
            self._admin = Admin(self._settings)
            try:
                partitions = ensure_topic(self._admin, self.plan)
                places = [(self.plan.name, number) for number in range(partitions)]
                self._positions = self._admin.offsets(places, "earliest")
            except NotFound as error:
                # It was just created, by us or by another worker, and some broker does not know it yet.
                raise RetriableError(f"Topic {self.plan.name}: {error}") from error
        self._stopping.clear()
        self._thread = threading.Thread(target=self._follow, name=f"follow-{self.plan.name}", daemon=True)
        self._thread.start()
        try:
            self.refresh(timeout_seconds)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop reading."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(10)
            self._thread = None
        self._writer.close()
        self._admin = None

    def send(self, pairs: Sequence[Pair]) -> None:
        """Write records; returns when they are acknowledged, which may be before they are read back."""
        self._writer.send(pairs)

    def refresh(self, timeout_seconds: float = 30.0) -> None:
        """Wait until all records are read that were committed before this call; RetriableError on a timeout."""
        ends_at = time.monotonic() + timeout_seconds
        ends = self._ends(ends_at)
        with self._passed:
            while any(self._positions.get(place, 0) < end for place, end in ends.items()):
                left = ends_at - time.monotonic()
                if left <= 0 or self._stopping.is_set():
                    raise RetriableError(f"Topic {self.plan.name} could not be read to its end in time")
                self._passed.wait(min(left, 1.0))

    @contextmanager
    def read_back(self, pair: Pair, timeout_seconds: float = 30.0) -> Iterator[None]:
        """Wait at the end of the block until `on_record` got this record, which was written inside of it."""
        seen = threading.Event()
        awaited = (pair, seen)
        self._awaited.append(awaited)
        try:
            yield
            if not seen.wait(timeout_seconds):
                raise RetriableError(f"Topic {self.plan.name}: the record could not be read back in time")
        finally:
            self._awaited.remove(awaited)

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.plan.name

    @property
    def position(self) -> int:
        """The next offset to read of the first partition."""
        return self._positions.get((self.plan.name, 0), 0)

    def _ends(self, ends_at: float) -> dict[TopicPartition, int]:
        admin = self._admin
        if admin is None:
            raise RetriableError(f"Topic {self.plan.name} is not being read")
        while True:
            try:
                return admin.committed_ends(list(self._positions))
            except (Unreachable, Retriable) as error:
                if time.monotonic() >= ends_at or self._stopping.wait(_PAUSE_SECONDS):
                    raise RetriableError(f"Topic {self.plan.name}: {error}") from error

    # --- the thread ---

    def _follow(self) -> None:
        reader: Reader | None = None
        while not self._stopping.is_set():
            try:
                if reader is None:
                    reader = Reader(self._settings, isolation_level="read_committed")
                    reader.start(self._positions)
                self._take(reader.read(_BATCH, timeout_ms=_WAIT_MS), reader.positions)
            except OffsetOutOfRange as error:
                log.warning(
                    "offset out of range: the topic is read from its beginning", extra={"topic": self.plan.name}
                )
                assert self._admin is not None, "set before the thread starts"
                try:
                    self._positions |= self._admin.offsets([error.place], "earliest")
                except ClientError:
                    self._stopping.wait(_PAUSE_SECONDS)
                _close(reader)
                reader = None
            except ClientError as error:
                log.warning("a topic cannot be read", extra={"topic": self.plan.name, "error": str(error)})
                if isinstance(error, Fatal):
                    _close(reader)
                    reader = None
                self._stopping.wait(_PAUSE_SECONDS)
        _close(reader)

    def _take(self, records: Sequence[IncomingRecord], positions: Mapping[TopicPartition, int]) -> None:
        for record in records:
            try:
                self._on_record(record)
            except Exception:
                # One bad record must not hide those after it.
                place = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
                log.exception("a record could not be read and is ignored", extra=place)
            for pair, seen in self._awaited:
                if pair == (record.key, record.value):
                    seen.set()
        if positions != self._positions:
            with self._passed:
                self._positions = dict(positions)
                self._passed.notify_all()


def ensure_topic(admin: Admin, plan: TopicPlan) -> int:
    """Create the topic if it is missing; returns the number of its partitions. ConfigError if it is unsuitable."""
    try:
        admin.create_replicated_topic(
            plan.name,
            partitions=plan.partitions,
            replicas_wanted=plan.replicas_wanted,
            configs={"cleanup.policy": "compact"},
        )
        log.info("topic created", extra={"topic": plan.name, "partitions": plan.partitions})
    except AlreadyExists:
        pass
    partitions = _wait_for_partitions(admin, plan.name)
    policy = next((config.value for config in admin.configs(plan.name) if config.key == "cleanup.policy"), None)
    if policy != "compact":
        raise ConfigError(
            f"Topic '{plan.name}' supplied via the '{plan.key}' property is required to have 'cleanup.policy=compact' "
            f"to guarantee consistency and durability, but found the topic currently has 'cleanup.policy={policy}'. "
            f"Continuing would lose data. Change the '{plan.key}' property to name a topic with "
            "'cleanup.policy=compact'."
        )
    if plan.is_single and partitions != 1:
        raise ConfigError(
            f"Topic '{plan.name}' supplied via the '{plan.key}' property is required to have a single partition in "
            f"order to guarantee consistency of connector configurations, but found {partitions} partitions."
        )
    return partitions


def _wait_for_partitions(admin: Admin, name: str) -> int:
    """The number of partitions of a topic, once all of them have a leader."""
    ends_at = time.monotonic() + _CREATION_SECONDS
    while True:
        try:
            (topic,) = admin.topics([name])
            if all(partition.leader >= 0 for partition in topic.partitions):
                return len(topic.partitions)
        except NotFound:
            pass
        if time.monotonic() > ends_at:
            raise Unreachable("the topic has no leader")
        time.sleep(0.05)


def _close(reader: Reader | None) -> None:
    if reader is not None:
        reader.close()
