"""The base classes of sinks: take records, make them durable, and only then let their offsets be committed."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, Protocol

from connect.api.config import Config
from connect.api.connector import Connector
from connect.api.record import SinkRecord

TopicPartition = tuple[str, int]
"""A topic and one of its partitions."""


class SinkContext(Protocol):
    """The worker, as a sink's task sees it."""

    @property
    def connector(self) -> str:
        """The connector's name."""

    @property
    def task(self) -> int:
        """The number of this task, from 0."""

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are assigned to this task now."""

    def rewind(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Continue reading at these offsets after this call; for sinks that keep offsets with their data."""

    def pause(self, places: Collection[TopicPartition]) -> None:
        """Stop reading these partitions."""

    def resume(self, places: Collection[TopicPartition]) -> None:
        """Read these partitions again."""

    def retry_after(self, milliseconds: int) -> None:
        """How long to wait before the same records are put again, if this `put` raises RetriableError."""

    def request_commit(self) -> None:
        """Commit offsets soon instead of waiting for the interval."""

    def report(self, record: SinkRecord, error: Exception) -> None:
        """This record is bad, the others are not: write a dead letter, or raise if errors are not tolerated."""

    def wait(self, seconds: float) -> bool:
        """Sleep, but only until the task is asked to stop; True when it is."""


class SinkTask(ABC):
    """Writes. All methods are called from one thread."""

    def __init__(self, config: Config, context: SinkContext) -> None:
        self.config = config
        self.context = context

    def start(self) -> None:
        """Connect."""

    def open(self, places: Collection[TopicPartition]) -> None:
        """These partitions are assigned to this task; `context.rewind` may set where to start."""

    @abstractmethod
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Take records; they may be buffered until `flush`. Called with none now and then, for pending work.

        RetriableError: the other system does not answer; the same records are put again. ConfigError: no record can
        ever be written; the task fails. Any other error is about these records: they are put again in smaller batches
        until the bad one is found, so a call that fails should have written nothing, or only what may be written twice.
        """

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Make all records durable that were put: these offsets are committed next."""

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Which of these offsets (the next one of each partition) may be committed; by default all, after `flush`."""
        self.flush(offsets)
        return offsets

    def close(self, places: Collection[TopicPartition]) -> None:
        """These partitions are no longer assigned to this task; their offsets were committed where possible."""

    def stop(self) -> None:
        """Release everything; the last call, also when `start` failed."""


class SinkConnector(Connector):
    """Moves data from Kafka to another system."""

    task_class: ClassVar[type[SinkTask]]
    tasks_limit: ClassVar[int | None] = None

    def alter_offsets(self, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """A user changes offsets: raise ConnectError if they are invalid; True if the connector has done everything
        that is needed."""
        return False
