"""The context of a sink's task; it keeps the task's requests until they are carried out."""

from collections.abc import Callable, Collection, Mapping

from typing_extensions import override

from connect.api.record import SinkRecord
from connect.api.sink import SinkContext, TopicPartition
from connect.runtime.models import TaskId
from connect.runtime.stopping import Stopping
from core_broker.client.group_consumer import GroupConsumer


class TaskSinkContext(SinkContext):
    """The context of one task."""

    def __init__(
        self,
        task: TaskId,
        *,
        stopping: Stopping,
        consumer: Callable[[], GroupConsumer],
        report: Callable[[SinkRecord, Exception], None],
    ) -> None:
        self._task = task
        self._stopping = stopping
        self._consumer = consumer
        self._report = report
        self.rewinds: dict[TopicPartition, int] = {}
        """Where the sink wants to continue reading."""
        self.retry_after_ms: int | None = None
        """How long the sink wants to wait."""
        self.wants_commit = False

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
    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(self._consumer().assigned)

    @override
    def rewind(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.rewinds.update(offsets)

    @override
    def pause(self, places: Collection[TopicPartition]) -> None:
        self._consumer().hold(places)

    @override
    def resume(self, places: Collection[TopicPartition]) -> None:
        self._consumer().release(places)

    @override
    def retry_after(self, milliseconds: int) -> None:
        self.retry_after_ms = milliseconds

    @override
    def request_commit(self) -> None:
        self.wants_commit = True

    @override
    def report(self, record: SinkRecord, error: Exception) -> None:
        self._report(record, error)

    @override
    def wait(self, seconds: float) -> bool:
        return self._stopping.wait(seconds)

    def take_rewinds(self) -> dict[TopicPartition, int]:
        """Where to continue reading; clears the request."""
        rewinds, self.rewinds = self.rewinds, {}
        return rewinds
