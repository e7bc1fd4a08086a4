"""Writes failed records to the dead-letter topic."""

import logging
from collections.abc import Callable

from typing_extensions import override

from connect.api.errors import ConnectError
from connect.runtime.batch_producer import Batch, BatchProducer
from connect.runtime.configuration.connector_config import ConnectorConfig
from connect.runtime.counters import TaskCounters
from connect.runtime.failures.error_policy import Failure
from connect.runtime.failures.failed_record import DeadLetterFormat, DeadLetterWriter, FailedRecord
from connect.runtime.models import TaskId
from connect.runtime.patience import connect_error
from connect.runtime.stopping import Stopped, Stopping
from core_broker.client.admin import Admin
from core_broker.client.errors import AlreadyExists, ClientError
from core_broker.client.settings import ClientSettings

log = logging.getLogger(__name__)

_UNSETTLED_MAX = 10_000
_DEFAULTS = {"message.timeout.ms": 0, "message.max.bytes": 100_000_000}
"""Never give up, since the cluster comes back; the cluster decides how large a record may be."""
_SETTLE_SECONDS = 1.0
_NO_RETENTION = {"retention.ms": "-1"}
"""A dead letter has the timestamp of its record, which may be old: retention by time would delete it at once."""


class DeadLetters(DeadLetterWriter):
    """Writes the dead letters of one task; commit offsets only after `settle`."""

    def __init__(
        self,
        config: ConnectorConfig,
        *,
        task: TaskId,
        producer: ClientSettings,
        admin: ClientSettings,
        stopping: Stopping,
        conceal: Callable[[str], str] = str,
    ) -> None:
        """`conceal` removes secrets from a text."""
        self._stopping = stopping
        self._format = DeadLetterFormat(config, task=task, conceal=conceal)
        self.topic = self._format.topic
        self._config = config
        self._admin_settings = admin
        self._producer_settings = producer
        self._producer: BatchProducer | None = None
        self._unsettled: list[Batch] = []

    def ensure_topic(self) -> None:
        """Create the topic unless it exists; ConnectError when that is refused. Call it before the first record."""
        admin = Admin(self._admin_settings)
        try:
            if self.topic not in admin.topic_names():
                admin.create_replicated_topic(
                    self.topic,
                    partitions=self._config.errors_deadletterqueue_topic_partitions,
                    replicas_wanted=self._config.errors_deadletterqueue_topic_replication_factor,
                    configs=_NO_RETENTION,
                )
        except AlreadyExists:
            pass
        except ClientError as error:
            raise connect_error(f"Could not initialize dead letter queue with topic={self.topic}", error) from error

    @override
    def write(self, record: FailedRecord, failure: Failure, counters: TaskCounters) -> None:
        """Send a dead letter; `settle` waits for its acknowledgement."""
        if self._producer is None:
            self._producer = BatchProducer(self._producer_settings, defaults=_DEFAULTS)
        letter = self._format.format(record, failure)
        counters.deadletterqueue_produce_requests += 1
        self._unsettled.append(self._producer.send([letter], give_up=lambda: self._stopping.is_asked))
        if len(self._unsettled) >= _UNSETTLED_MAX:
            self.settle(counters)

    def settle(self, counters: TaskCounters) -> None:
        """Wait until all dead letters are acknowledged; ConnectError when one failed: its record must not be lost."""
        if self._producer is None or not self._unsettled:
            return
        while not self._producer.finish(self._unsettled, _SETTLE_SECONDS):
            if self._stopping.is_asked:
                raise Stopped
        failures = [error for batch in self._unsettled for _, error in batch.failures]
        self._unsettled.clear()
        if failures:
            counters.deadletterqueue_produce_failures += len(failures)
            raise ConnectError(f"Could not write dead letters to topic {self.topic}: {failures[0]}")

    def close(self) -> None:
        """Close the producer."""
        if self._producer is not None:
            self._producer.close()
