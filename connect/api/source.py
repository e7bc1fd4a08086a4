"""How sources are written: read from the other side, say how far, go on from there."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from connect.api.config import Config
from connect.api.connector import Connector
from connect.api.data import Value
from connect.api.record import SourceRecord

SourceOffset = Mapping[str, Value]
SourcePartition = Mapping[str, Value]


class Transaction(Protocol):
    """Lets a source decide what belongs together (`transaction.boundary=connector`)."""

    def commit(self, after: SourceRecord | None = None) -> None:
        """What was read up to this record, or with this poll, becomes visible together."""

    def abort(self, after: SourceRecord | None = None) -> None:
        """What was read up to this record, or with this poll, never becomes visible."""


class SourceContext(Protocol):
    """What a source's task may ask of the worker."""

    @property
    def connector(self) -> str:
        """The connector's name."""

    @property
    def task(self) -> int:
        """The number of this task, from 0."""

    @property
    def transaction(self) -> Transaction | None:
        """Set when the source decides what belongs together."""

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """How far a part of the other side has been read; None when it is new."""

    def wait(self, seconds: float) -> bool:
        """Sleep, or less when the task is told to stop; True when it is."""

    def report(self, data: bytes | str, error: Exception, *, partition: SourcePartition, offset: SourceOffset) -> None:
        """Something was read that cannot become a record: a dead letter where they are allowed, else this raises."""


class SourceTask(ABC):
    """Reads. All methods are called from one thread."""

    def __init__(self, config: Config, context: SourceContext) -> None:
        self.config = config
        self.context = context

    def start(self) -> None:
        """Connect, and find where to go on (`context.offset`)."""

    @abstractmethod
    def poll(self) -> Sequence[SourceRecord]:
        """The next records; waits at most about a second (`context.wait`) and returns nothing when there are none.

        RetriableError: called again after a pause. Any other error ends the task.
        """

    def commit_record(self, record: SourceRecord) -> None:
        """A record is safe in Kafka, or was dropped on purpose; the order is that of acknowledgement."""

    def delivered(self, records: Sequence[SourceRecord], offsets: Sequence[int]) -> None:
        """Records are safe in Kafka, visible, and at these offsets of their partitions; -1 where that is not known.

        In the order of `poll`, without what was dropped; before `commit`.
        """

    def commit(self) -> None:
        """The offsets of all records that were told by `commit_record` are safe, too.

        Called again every `offset.flush.interval.ms`, also when nothing is new: what could not be done can be now.
        """

    def stop(self) -> None:
        """Leave nothing open; called once, after the last poll, also when `start` failed."""


class SourceConnector(Connector):
    """Brings data into Kafka."""

    task_class: ClassVar[type[SourceTask]]
    is_exactly_once: ClassVar[bool] = False
    """Whether its offsets name exactly what was read, so that transactions make every record appear once."""
    defines_transactions: ClassVar[bool] = False
    """Whether its tasks use `context.transaction`."""

    def alter_offsets(self, offsets: Sequence[tuple[SourcePartition, SourceOffset | None]]) -> bool:
        """Somebody changes offsets by hand: raise ConnectError when they make no sense; True when nothing is left to do
        by other means."""
        return False
