"""How sinks are written: take records, make them durable, and only then let their offsets be committed."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, Protocol

from connect.api.config import Config
from connect.api.connector import Connector
from connect.api.record import SinkRecord

TopicPartition = tuple[str, int]
"""A topic and one of its partitions."""


class SinkContext(Protocol):
    """What a sink's task may ask of the worker."""

    @property
    def connector(self) -> str:
        """The connector's name."""

    @property
    def task(self) -> int:
        """The number of this task, from 0."""

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this task reads now."""

    def rewind(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read on from these offsets after this call; for sinks that keep offsets beside their data."""

    def pause(self, places: Collection[TopicPartition]) -> None:
        """Read nothing more of these partitions."""

    def resume(self, places: Collection[TopicPartition]) -> None:
        """Read them again."""

    def retry_after(self, milliseconds: int) -> None:
        """How long to wait before the same records are given again, when this `put` raises RetriableError."""

    def request_commit(self) -> None:
        """Commit offsets soon, not when it is time."""

    def report(self, record: SinkRecord, error: Exception) -> None:
        """This record is bad, the others are not: a dead letter where they are allowed, else this raises."""

    def wait(self, seconds: float) -> bool:
        """Sleep, or less when the task is told to stop; True when it is."""


class SinkTask(ABC):
    """Writes. All methods are called from one thread."""

    def __init__(self, config: Config, context: SinkContext) -> None:
        self.config = config
        self.context = context

    def start(self) -> None:
        """Connect."""

    def open(self, places: Collection[TopicPartition]) -> None:
        """These partitions are this task's from now on; where to begin may be told with `context.rewind`."""

    @abstractmethod
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Take records; they may be kept until `flush`. Called with none now and then, for work that is due.

        RetriableError: the other side does not answer; the same records come again. ConfigError: no record can ever be
        written; the task fails. Any other error is about these records: they are given again in smaller parts until
        the bad one is found, so that a call that fails should leave nothing behind, or what can be written twice.
        """

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Make everything durable that was put: these offsets are committed next."""

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Which offsets may be committed, of those given (the next one of each partition); all, after `flush`."""
        self.flush(offsets)
        return offsets

    def close(self, places: Collection[TopicPartition]) -> None:
        """These partitions are no longer this task's; their offsets have been committed where that was possible."""

    def stop(self) -> None:
        """Leave nothing open; called once, after the last call, also when `start` failed."""


class SinkConnector(Connector):
    """Takes data out of Kafka."""

    task_class: ClassVar[type[SinkTask]]
    tasks_limit: ClassVar[int | None] = None

    def alter_offsets(self, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Somebody changes offsets by hand: raise ConnectError when they make no sense; True when nothing is left to do
        by other means."""
        return False
