"""What all tasks of sources do alike: poll, convert, create topics; what becomes of the records differs."""

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
"""A source that has nothing to give and does not wait by itself is not asked more often than this."""


class SourceWork(Work):
    """The common half."""

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
        """Whether the source wants to know of every single record."""
        self.wants_offsets = type(self.task).delivered is not SourceTask.delivered
        """Whether the source wants to know where its records went."""
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
        """Make the producer ready, before the source looks at its offsets."""

    def poll(self) -> Sequence[SourceRecord]:
        """What the source gives next; nothing when it cannot now."""
        began = time.monotonic()
        try:
            records = self.task.poll()
        except OUTAGES as error:
            self._failed_polls += 1
            if self._failed_polls == 1:
                extra = {"task": str(self.setup.plan.id), "error": str(error)}
                log.warning("the other side gives nothing: it is asked again until it does", extra=extra)
            self.stopping.wait(_RETRIES.delay(self._failed_polls - 1))
            return ()
        self._failed_polls = 0
        if not records and time.monotonic() - began < _IDLE_SECONDS:
            self.stopping.wait(_IDLE_SECONDS)
        self.counters.source_record_poll += len(records or ())
        return records or ()

    def prepare(self, records: Sequence[SourceRecord]) -> tuple[list[OutgoingRecord], list[SourceRecord]]:
        """Records as they are sent, and where each comes from; their topics are there."""
        sent, origins = self.pipeline.outgoing(records)
        topics = {record.topic for record in sent}
        if new := topics - self._seen_topics:
            self._prepare_topics(new)
        return sent, origins

    def _prepare_topics(self, topics: set[str]) -> None:
        creation = self._topics
        if creation is not None:
            patiently(lambda: creation.ensure(topics), self.stopping, what="creating topics")
        self._seen_topics |= topics
        if self.setup.services.settings.topic_tracking_enable:
            for topic in topics:
                self.setup.services.statuses.put_topic(topic, self.setup.plan.id)

    def not_written(self, origin: SourceRecord, error: Exception) -> None:
        """Kafka does not take a record: raises unless that is tolerated."""
        self.counters.total_record_failures += 1
        self.counters.total_record_errors += 1
        self.pipeline.reject(origin, Failure(stage=Stage.KAFKA_PRODUCE, class_name=PRODUCER, error=error))

    def _report_unreadable(
        self, data: bytes | str, error: Exception, partition: Mapping[str, Value], offset: Mapping[str, Value]
    ) -> None:
        """The source has read what cannot become a record."""
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
        """Wait until dead letters are safe: offsets behind them may be written then."""
        if self.setup.dead_letters is not None:
            self.setup.dead_letters.settle(self.counters)

    @override
    def close(self) -> None:
        try:
            self.task.stop()
        finally:
            self.setup.close()


def last_offsets(records: Sequence[SourceRecord]) -> list[tuple[Mapping[str, Value], Mapping[str, Value]]]:
    """How far each part of the other side is read with these records."""
    last: dict[tuple[tuple[str, Value], ...], SourceRecord] = {}
    previous: object = None
    key: tuple[tuple[str, Value], ...] = ()
    for record in records:
        if record.source_partition is not previous:
            previous = record.source_partition
            key = tuple(sorted(record.source_partition.items()))
        last[key] = record
    return [(record.source_partition, record.source_offset) for record in last.values()]
