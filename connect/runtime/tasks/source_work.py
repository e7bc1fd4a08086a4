"""The common part of source tasks: poll, convert, create topics; they differ in how records are written."""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Final

from typing_extensions import override

from connect.api.backoff import Backoff
from connect.api.data import Value
from connect.api.record import SourceRecord
from connect.api.source import SourceTask
from connect.runtime.configuration.client_overrides import admin_properties
from connect.runtime.configuration.connector_config import SourceConnectorConfig
from connect.runtime.failures.error_policy import Decision, Failure, Stage
from connect.runtime.failures.source_letters import unreadable_source_data
from connect.runtime.patience import patiently
from connect.runtime.tasks.setup import OUTAGES, TaskSetup, Work
from connect.runtime.tasks.source_context import RequestedTransaction, TaskSourceContext
from connect.runtime.tasks.source_pipeline import SourcePipeline
from connect.runtime.tasks.topic_creation import TopicCreation, groups_of
from core_broker.client.admin import Admin
from core_broker.client.records import OutgoingRecord

log = logging.getLogger(__name__)

SOURCE_TASK: Final = "org.apache.kafka.connect.source.SourceTask"
PRODUCER: Final = "org.apache.kafka.clients.producer.KafkaProducer"
_RETRIES: Final = Backoff(0.1, 5.0)
_IDLE_SECONDS: Final = 0.02
"""The shortest interval between polls of a source that has no records and does not wait by itself."""


class SourceWork(Work):
    """Everything but the delivery."""

    def __init__(self, setup: TaskSetup, *, transaction: RequestedTransaction | None = None) -> None:
        assert isinstance(setup.config, SourceConnectorConfig)
        self.setup = setup
        self.config = setup.config
        self.counters = setup.counters
        self.stopping = setup.stopping
        self.offsets = setup.services.offsets_in(setup.config.offsets_storage_topic)
        self.pipeline = SourcePipeline(
            setup.conversion, setup.policy, counters=setup.counters, dead_letters=setup.dead_letters
        )
        context = TaskSourceContext(
            setup.plan.id,
            stopping=setup.stopping,
            offsets=self.offsets,
            report=self._report_unreadable,
            transaction=transaction,
        )
        self.task: SourceTask = setup.connector.task_class(setup.task_config, context)  # type: ignore[attr-defined]
        self.wants_records = type(self.task).commit_record is not SourceTask.commit_record
        """Whether the source implements `commit_record`."""
        self.wants_offsets = type(self.task).delivered is not SourceTask.delivered
        """Whether the source implements `delivered`."""
        self._topics: TopicCreation | None = None
        self._seen_topics: set[str] = set()
        self._failed_polls = 0

    @override
    def start(self) -> None:
        if self.setup.dead_letters is not None:
            self.setup.dead_letters.ensure_topic()
        settings = self.setup.services.settings
        if settings.topic_creation_enable and (groups := groups_of(self.config)):
            admin = self.setup.kafka(admin_properties(settings, self.config.given), role="adminclient")
            self._topics = TopicCreation(groups, Admin(admin))
        self.offsets.refresh()
        self.open()
        self.task.start()

    def open(self) -> None:
        """Prepare the producer, before the source reads its offsets."""

    def poll(self) -> Sequence[SourceRecord]:
        """The next records of the source; none when it cannot read now."""
        began = time.monotonic()
        try:
            records = self.task.poll()
        except OUTAGES as error:
            self._failed_polls += 1
            if self._failed_polls == 1:
                extra = {"task": str(self.setup.plan.id), "error": self.setup.conceal(str(error))}
                log.warning("the source cannot read now, retrying until it can", extra=extra)
            self.stopping.wait(_RETRIES.delay(self._failed_polls - 1))
            return ()
        self._failed_polls = 0
        if not records and time.monotonic() - began < _IDLE_SECONDS:
            self.stopping.wait(_IDLE_SECONDS)
        self.counters.source_record_poll += len(records or ())
        return records or ()

    def prepare(self, records: Sequence[SourceRecord]) -> tuple[list[OutgoingRecord], list[SourceRecord]]:
        """The records to send, and the source's record of each; creates their topics."""
        sent, origins = self.pipeline.outgoing(records)
        topics = {record.topic for record in sent}
        if new := topics - self._seen_topics:
            creation = self._topics
            if creation is not None:
                patiently(lambda: creation.ensure(new), self.stopping, what="creating topics")
            self._seen_topics |= new
            self.setup.track_topics(new)
        return sent, origins

    def reject(self, origin: SourceRecord, error: Exception) -> None:
        """Kafka rejects a record: raises unless errors are tolerated."""
        self.counters.total_record_failures += 1
        self.counters.total_record_errors += 1
        self.pipeline.reject(origin, Failure(stage=Stage.KAFKA_PRODUCE, class_name=PRODUCER, error=error))

    def _report_unreadable(
        self, data: bytes | str, error: Exception, partition: Mapping[str, Value], offset: Mapping[str, Value]
    ) -> None:
        """The source has read data that cannot become a record."""
        self.counters.total_record_failures += 1
        self.counters.total_record_errors += 1
        failure = Failure(stage=Stage.TASK_POLL, class_name=SOURCE_TASK, error=error)
        decision = self.setup.policy.give_up(failure, f"{partition} {offset}")
        if self.setup.dead_letters is not None:
            record = unreadable_source_data(data, topic="", partition=partition, offset=offset)
            self.setup.dead_letters.write(record, failure, self.counters)
        if decision is Decision.STOP:
            raise failure.exceeds_tolerance()

    def settle_letters(self) -> None:
        """Wait until dead letters are acknowledged: then the offsets after them may be written."""
        if self.setup.dead_letters is not None:
            self.setup.dead_letters.settle(self.counters)

    @override
    def close(self) -> None:
        try:
            self.task.stop()
        finally:
            self.setup.close()


def last_offsets(records: Sequence[SourceRecord]) -> list[tuple[Mapping[str, Value], Mapping[str, Value]]]:
    """The last offset of each source partition in these records."""
    last: dict[tuple[tuple[str, Value], ...], SourceRecord] = {}
    previous: object = None
    key: tuple[tuple[str, Value], ...] = ()
    for record in records:
        if record.source_partition is not previous:
            previous = record.source_partition
            key = tuple(sorted(record.source_partition.items()))
        last[key] = record
    return [(record.source_partition, record.source_offset) for record in last.values()]
