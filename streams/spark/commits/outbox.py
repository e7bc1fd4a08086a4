"""Sends staged records and commits the group's offsets in one transaction, so that neither happens twice."""

import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from core_broker.client.admin import Admin
from core_broker.client.consumer import TopicPartition
from core_broker.client.errors import ClientError, Fatal, NotFound
from core_broker.client.settings import ClientSettings
from core_broker.client.transactional_producer import AbortNeeded, TransactionalProducer
from streams.spark.commits.manifest import Manifest, Replaced, flatten
from streams.spark.commits.staged_records import read_records

log = logging.getLogger(__name__)

_ATTEMPTS: Final = 5
_LARGEST: Final = {"message.max.bytes": 100_000_000}
"""The cluster decides how large a record may be, not the client."""


class Outbox:
    """The outbox of one run of a query; for one thread at a time."""

    def __init__(
        self, query: str, *, group: str, transactional_id: str, admin: ClientSettings, producer: ClientSettings
    ) -> None:
        self._query = query
        self._group = group
        self._transactional_id = transactional_id
        self._admin = Admin(admin)
        self._producer_settings = producer
        self._producer: TransactionalProducer | None = None

    def send(self, manifest: Manifest) -> None:
        """Send the records of a batch unless that was done before, and commit its offsets to the group."""
        ends = flatten(manifest.ends)
        if manifest.records:
            self._send_records(manifest, ends)
        elif ends:
            try:
                self._admin.set_group_offsets(self._group, ends)
            except ClientError as error:
                # Without records to send, the group's offsets only inform people and tools: the manifest counts.
                extra = {"group": self._group, "reason": str(error)}
                log.warning("the group's offsets were not committed", extra=extra)

    def committed(self) -> dict[TopicPartition, int]:
        """The offsets that the group has committed."""
        return dict(self._admin.group_offsets(self._group))

    def reset_offsets(self, partitions: Iterable[TopicPartition]) -> None:
        """Set the group's offsets to 0: what it has committed belongs to topics that are gone."""
        self._admin.set_group_offsets(self._group, dict.fromkeys(partitions, 0))

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """The ids of topics; empty where the cluster has none, or the topic is gone."""
        ids = dict.fromkeys(topics, "")
        for topic in ids:
            with suppress(NotFound):
                (description,) = self._admin.topics([topic])
                ids[topic] = description.topic_id if description.topic_id.strip("A=") else ""
        return ids

    def close(self) -> None:
        """Close the producer."""
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    def _send_records(self, manifest: Manifest, ends: dict[TopicPartition, int]) -> None:
        for attempt in range(_ATTEMPTS):
            producer = self._initialized_producer()
            # Asked only now, as no transaction of another run can be open once the transactional id is ours.
            committed = self.committed()
            if all(committed.get(partition, -1) >= end for partition, end in ends.items()):
                return
            try:
                producer.begin()
                for file in manifest.records:
                    for record in read_records(file.path):
                        producer.send(record)
                producer.send_offsets(self._group, ends)
                producer.commit()
                return
            except AbortNeeded as error:
                if error.is_refusal or attempt == _ATTEMPTS - 1:
                    raise
                producer.abort()
            except Fatal as error:
                raise Replaced(self._query) from error
            except ClientError:
                self.close()
                raise

    def _initialized_producer(self) -> TransactionalProducer:
        if self._producer is None:
            producer = TransactionalProducer(
                self._producer_settings, transactional_id=self._transactional_id, defaults=_LARGEST
            )
            producer.init()
            self._producer = producer
        return self._producer
