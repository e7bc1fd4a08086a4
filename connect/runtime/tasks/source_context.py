"""The context of a source's task."""

from collections.abc import Callable, Mapping

from typing_extensions import override

from connect.api.data import Value
from connect.api.record import SourceRecord
from connect.api.source import SourceContext, SourceOffset, SourcePartition, Transaction
from connect.runtime.models import TaskId
from connect.runtime.stopping import Stopping
from connect.stores.offsets import OffsetStore

Report = Callable[[bytes | str, Exception, Mapping[str, Value], Mapping[str, Value]], None]


class RequestedTransaction(Transaction):
    """Where a source ends its transactions."""

    def __init__(self) -> None:
        self._ends: dict[int, bool] = {}
        self._records: list[SourceRecord] = []
        self.at_end_of_poll: bool | None = None
        """Whether the transaction ends with the poll, by commit (True) or abort (False), or continues (None)."""

    @override
    def commit(self, after: SourceRecord | None = None) -> None:
        self._note(after, commits=True)

    @override
    def abort(self, after: SourceRecord | None = None) -> None:
        self._note(after, commits=False)

    def _note(self, after: SourceRecord | None, *, commits: bool) -> None:
        if after is None:
            self.at_end_of_poll = commits
        else:
            self._ends[id(after)] = commits
            self._records.append(after)  # a record that is referenced keeps its id

    def end_after(self, record: SourceRecord) -> bool | None:
        """Whether the transaction ends after a record, by commit (True) or abort (False)."""
        return self._ends.pop(id(record), None)

    def end_of_poll(self) -> bool | None:
        """Whether it ends with the poll; clears all requests."""
        ends, self.at_end_of_poll = self.at_end_of_poll, None
        self._ends.clear()
        self._records.clear()
        return ends


class TaskSourceContext(SourceContext):
    """The context of one task."""

    def __init__(
        self,
        task: TaskId,
        *,
        stopping: Stopping,
        offsets: OffsetStore,
        report: Report,
        transaction: RequestedTransaction | None = None,
    ) -> None:
        self._task = task
        self._stopping = stopping
        self._offsets = offsets
        self._report = report
        self._transaction = transaction

    @property
    @override
    def connector(self) -> str:
        return self._task.connector

    @property
    @override
    def task(self) -> int:
        return self._task.task

    @property
    @override
    def transaction(self) -> Transaction | None:
        return self._transaction

    @override
    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        return self._offsets.get(self._task.connector, partition)

    @override
    def wait(self, seconds: float) -> bool:
        return self._stopping.wait(seconds)

    @override
    def report(self, data: bytes | str, error: Exception, *, partition: SourcePartition, offset: SourceOffset) -> None:
        self._report(data, error, partition, offset)
