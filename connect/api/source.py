"""The base classes of sources: read from another system, report the position, continue from there."""

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
    """Lets a source define its transactions (`transaction.boundary=connector`)."""

    def commit(self, after: SourceRecord | None = None) -> None:
        """Commit the records up to this one, or up to the end of this poll."""

    def abort(self, after: SourceRecord | None = None) -> None:
        """Abort the records up to this one, or up to the end of this poll: they never become visible."""


class SourceContext(Protocol):
    """The worker, as a source's task sees it."""

    @property
    def connector(self) -> str:
        """The connector's name."""

    @property
    def task(self) -> int:
        """The number of this task, from 0."""

    @property
    def transaction(self) -> Transaction | None:
        """Set when the source defines its transactions."""

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """The committed offset of a source partition; None when it is new."""

    def wait(self, seconds: float) -> bool:
        """Sleep, but only until the task is asked to stop; True when it is."""

    def report(self, data: bytes | str, error: Exception, *, partition: SourcePartition, offset: SourceOffset) -> None:
        """This data cannot become a record: write a dead letter, or raise if errors are not tolerated."""


class SourceTask(ABC):
    """Reads. All methods are called from one thread."""

    def __init__(self, config: Config, context: SourceContext) -> None:
        self.config = config
        self.context = context

    def start(self) -> None:
        """Connect, and find where to continue (`context.offset`)."""

    @abstractmethod
    def poll(self) -> Sequence[SourceRecord]:
        """The next records; waits at most about a second (`context.wait`) and returns none when there are none.

        RetriableError: called again after a pause. Any other error ends the task.
        """

    def commit_record(self, record: SourceRecord) -> None:
        """A record was acknowledged by Kafka, or dropped deliberately; called in the order of acknowledgement."""

    def delivered(self, records: Sequence[SourceRecord], offsets: Sequence[int]) -> None:
        """Records are in Kafka, visible, at these offsets of their partitions; -1 where the offset is unknown.

        In the order of `poll`, without dropped records; called before `commit`.
        """

    def commit(self) -> None:
        """The offsets of all records that `commit_record` got are committed, too.

        Called every `offset.flush.interval.ms`, also without new records, so that failed work can be done again.
        """

    def stop(self) -> None:
        """Release everything; the last call, also when `start` failed."""


class SourceConnector(Connector):
    """Moves data from another system to Kafka."""

    task_class: ClassVar[type[SourceTask]]
    is_exactly_once: ClassVar[bool] = False
    """Whether its offsets identify exactly what was read, so that transactions deliver every record once."""
    defines_transactions: ClassVar[bool] = False
    """Whether its tasks use `context.transaction`."""

    def alter_offsets(self, offsets: Sequence[tuple[SourcePartition, SourceOffset | None]]) -> bool:
        """A user changes offsets: raise ConnectError if they are invalid; True if the connector has done everything
        that is needed."""
        return False
