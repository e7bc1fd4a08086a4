"""Runs a source's task exactly once: records and offsets become visible in one transaction, or not at all."""

import logging
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from typing_extensions import override

from connect.api.data import Value
from connect.api.errors import ConnectError
from connect.api.record import SourceRecord
from connect.runtime.configuration.client_overrides import producer_properties
from connect.runtime.configuration.connector_config import SourceConnectorConfig
from connect.runtime.models import FENCED
from connect.runtime.patience import connect_error, patiently
from connect.runtime.tasks.setup import TaskSetup
from connect.runtime.tasks.source_context import RequestedTransaction
from connect.runtime.tasks.source_work import SourceWork, last_offsets
from connect.settings import ConnectSettings
from connect.stores.offsets import offset_key, offset_value
from core_broker.client.errors import ClientError, Fatal
from core_broker.client.records import OutgoingRecord
from core_broker.client.settings import Configuration
from core_broker.client.transactional_producer import AbortNeeded, TransactionalProducer
from core_broker.errors import ErrorCode

log = logging.getLogger(__name__)

_DEFAULTS: Final[Configuration] = {
    "message.max.bytes": 100_000_000,
    "partitioner": "murmur2_random",  # Java's, which the offsets topic needs
    "reconnect.backoff.max.ms": 1_000,
}
_PAUSE_SECONDS: Final = 0.5
_TAKEN_OVER: Final = (-144, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
"""librdkafka's own code, and the cluster's."""
Offsets = Sequence[tuple[Mapping[str, Value], Mapping[str, Value]]]
_TRANSACTION_RECORDS_MAX: Final = 100_000
"""A larger transaction is committed early, because its records stay in memory until they are committed."""


def transactional_id(group_id: str, connector: str, task: int) -> str:
    """The transactional id of a task: its last user fences the earlier ones."""
    return f"{group_id}-{connector}-{task}"


def is_exactly_once(config: SourceConnectorConfig, settings: ConnectSettings) -> bool:
    """Whether a source writes in transactions, because its configuration or the worker's asks for it."""
    match settings.exactly_once_source_support:
        case "enabled":
            return True
        case "requested":
            return config.exactly_once_support == "required"
        case _:
            return False


class ExactlyOnceSource(SourceWork):
    """Collects polled records, and commits them with their offsets at each `transaction.boundary`."""

    def __init__(self, setup: TaskSetup) -> None:
        self._requested = RequestedTransaction()
        is_requested = setup.config.given.get("transaction.boundary", "").strip() == "connector"
        super().__init__(setup, transaction=self._requested if is_requested else None)
        self._uncommitted: list[SourceRecord] = []
        """Polled records that are not committed yet, including those that transforms will drop."""
        settings = setup.services.settings
        self._boundary = self.config.transaction_boundary
        interval_ms = self.config.transaction_boundary_interval_ms or settings.offset_flush_interval_ms
        self._interval = interval_ms / 1000
        self._next_commit = time.monotonic() + self._interval
        self._producer = self._make_producer()

    def _make_producer(self) -> TransactionalProducer:
        settings, plan = self.setup.services.settings, self.setup.plan
        return TransactionalProducer(
            self.setup.kafka(producer_properties(settings, self.config.given), role="producer"),
            transactional_id=transactional_id(settings.group_id, plan.id.connector, plan.id.task),
            defaults=_DEFAULTS,
        )

    @override
    def open(self) -> None:
        """Take over the transactional id: that ends open transactions, after which the offsets are final."""
        try:
            self._producer.init()
        except ClientError as error:
            raise connect_error("The task could not start transactions", error) from error
        self.offsets.refresh()

    @override
    def turn(self) -> None:
        records = self.poll()
        if self._boundary == "connector":
            for record in records:
                self._uncommitted.append(record)
                self._end(commits=self._requested.end_after(record))
            self._end(commits=self._requested.end_of_poll())
        else:
            self._uncommitted += records
        if self._is_due(records):
            self._commit()
        else:
            self._commit_idle()

    def _is_due(self, records: Sequence[SourceRecord]) -> bool:
        if len(self._uncommitted) >= _TRANSACTION_RECORDS_MAX and self._boundary != "connector":
            return True
        match self._boundary:
            case "poll":
                return bool(records)
            case "interval":
                return bool(self._uncommitted) and time.monotonic() >= self._next_commit
            case _:
                return False

    def _end(self, *, commits: bool | None) -> None:
        if commits:
            self._commit()
        elif commits is False:
            # Aborted records are not sent at all, but their offsets are committed: the source has moved on.
            self._write((), self._uncommitted)
            self._uncommitted = []

    @override
    def rest(self) -> None:
        if self._uncommitted and self._boundary != "connector":
            self._commit()
        else:
            self._commit_idle()
        self.stopping.wait(0.1)

    @override
    def finish(self) -> None:
        if self._uncommitted and self._boundary != "connector":
            self._commit()

    @override
    def close(self) -> None:
        self._producer.close()
        super().close()

    def _commit_idle(self) -> None:
        """Call `commit` regularly, also without new records: the task may have to repeat work that failed."""
        if not self._uncommitted and time.monotonic() >= self._next_commit:
            self._next_commit = time.monotonic() + self._interval
            self.task.commit()

    def _commit(self) -> None:
        self._next_commit = time.monotonic() + self._interval
        if not self._uncommitted:
            return
        sent, origins = self.prepare(self._uncommitted)
        self.settle_letters()
        offsets = self._write(sent, self._uncommitted)
        self.counters.source_record_write += len(origins)
        if self.wants_offsets:
            self.task.delivered(origins, offsets)
        if self.wants_records:
            for record in self._uncommitted:
                self.task.commit_record(record)
        self._uncommitted = []
        self.task.commit()

    def _write(self, sent: Sequence[OutgoingRecord], records: Sequence[SourceRecord]) -> Sequence[int]:
        """Write one transaction, repeated until it is known to be committed; returns the offsets of its records."""
        changes = last_offsets(records)
        before = self._stored_offsets(changes)
        written: Sequence[int] = [-1] * len(sent)
        connector, topic = self.setup.plan.id.connector, self.offsets.topic
        offset_records = [
            OutgoingRecord(topic=topic, key=offset_key(connector, partition), value=offset_value(offset))
            for partition, offset in changes
        ]
        while True:
            self.stopping.check()
            try:
                written = self._attempt(sent, offset_records)
                break
            except ClientError as error:
                self.counters.offset_commit_failures += 1
                self._recover(error)
            # It may have been committed without an answer: then its offsets are in the topic.
            if before != changes and self._stored_offsets(changes) == changes:
                break
        self.counters.offset_commit_completion += 1
        return written

    def _attempt(self, records: Sequence[OutgoingRecord], offsets: Sequence[OutgoingRecord]) -> Sequence[int]:
        producer = self._producer
        written = [-1] * len(records) if self.wants_offsets else []
        producer.begin()
        for index, record in enumerate(records):
            producer.send(record, written_at=partial(written.__setitem__, index) if self.wants_offsets else None)
        for record in offsets:
            producer.send(record)
        producer.commit()
        return written

    def _recover(self, error: ClientError) -> None:
        """Make sure that the transaction has ended, one way or the other; raises when a retry makes no sense."""
        if isinstance(error, Fatal) and error.code in _TAKEN_OVER:
            raise ConnectError(f"{FENCED}: {error}") from error
        if isinstance(error, AbortNeeded) and error.is_refusal:
            raise ConnectError(f"The transaction failed: {error}") from error
        extra = {"task": str(self.setup.plan.id), "reason": str(error)}
        log.warning("a transaction failed, retrying", extra=extra)
        self.stopping.wait_or_raise(_PAUSE_SECONDS)
        self.stopping.check()  # a lost task must not take over the id again

        def start_again() -> None:
            self._producer.close()
            self._producer = self._make_producer()
            self.open()

        patiently(start_again, self.stopping, what="starting transactions")

    def _stored_offsets(self, changes: Offsets) -> Offsets:
        """The offsets of the same source partitions in the topic."""
        connector = self.setup.plan.id.connector
        return [(partition, self.offsets.get(connector, partition) or {}) for partition, _ in changes]
