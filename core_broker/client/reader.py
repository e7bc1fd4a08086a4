"""Reads partitions from given offsets, outside of any group, and never skips records silently."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Final

from confluent_kafka import KafkaError, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition
from typing_extensions import override

from core_broker.client.consumer import Consumer, TopicPartition, incoming
from core_broker.client.errors import Rejected, from_kafka, is_passing, map_errors
from core_broker.client.records import IncomingRecord
from core_broker.client.settings import ClientSettings

_DEFAULTS: Final = {
    # Records fetched ahead wait in memory: about this much, plus one response.
    "queued.max.messages.kbytes": "1024",
    "fetch.max.bytes": "2097152",
    # By default the library pauses for a whole second whenever its queue is full.
    "fetch.queue.backoff.ms": "2",
    "topic.metadata.propagation.max.ms": "500",
}
_NEEDED: Final = {"auto.offset.reset": "error", "enable.partition.eof": "true"}


class OffsetOutOfRange(Rejected):
    """The partition does not contain this offset: it was deleted, or never written."""

    def __init__(self, place: TopicPartition, offset: int) -> None:
        super().__init__(f"offset {offset} is not in partition {place[1]} of topic {place[0]}", code=1)
        self.place = place
        self.offset = offset


class Reader(Consumer):
    """Reads partitions from given offsets and tracks its positions. For one thread at a time.

    It never joins a group and never resets its position: an offset outside the partition raises OffsetOutOfRange.
    """

    def __init__(self, settings: ClientSettings, *, isolation_level: str | None = None) -> None:
        isolation = {"isolation.level": isolation_level} if isolation_level else {}
        properties = {**_DEFAULTS, **settings.properties, **isolation, **_NEEDED}
        super().__init__(replace(settings, properties=properties))
        self.positions: dict[TopicPartition, int] = {}
        """The next offset of each partition being read."""
        self._unread: list[Message] = []
        self._last_bounds: dict[TopicPartition, tuple[int, int]] = {}

    def start(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these offsets instead of the previous ones."""
        self._unread.clear()
        self.ended.clear()
        self.positions = dict(positions)
        self.assign(positions)

    def add(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions in addition."""
        self.positions.update(positions)
        with map_errors():
            self._consumer.incremental_assign(
                [KafkaTopicPartition(*place, offset) for place, offset in positions.items()]
            )

    @override
    def read(
        self, count_max: int, *, timeout_ms: int, bytes_max: int = 1 << 62, at_least_one: bool = True
    ) -> list[IncomingRecord]:
        """The records already fetched, or else the next to arrive; an empty list on time-out.

        Returns as many records as fit into `bytes_max` of keys and values, or `at_least_one` however large; the rest is
        returned by the next call.
        """
        messages = self._unread or self._fetch(count_max, timeout_ms)
        records: list[IncomingRecord] = []
        size = taken = 0
        for message in islice(messages, count_max):
            if message.error() is not None:
                if records and not _is_end(message):
                    break  # The next call raises the error; the records before it are returned first.
                self._note(message)
            else:
                record = incoming(message)
                size += len(record.key or b"") + len(record.value or b"")
                if size > bytes_max and (records or not at_least_one):
                    break
                records.append(record)
                place = (record.topic, record.partition)
                self.positions[place] = record.offset + 1
                if self.ended:
                    self.ended.discard(place)
            taken += 1
        self._unread = messages[taken:]
        return records

    def is_at_end(self, place: TopicPartition) -> bool:
        """Whether everything up to the last known end of the partition has been read; never blocks."""
        return not self._unread and (place in self.ended or self.positions[place] >= self.known_bounds(place)[1])

    @override
    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """First offset of a partition, and the one after the last that may be read; queries the cluster."""
        found = self._last_bounds[topic, partition] = super().bounds(topic, partition)
        return found

    def known_bounds(self, place: TopicPartition) -> tuple[int, int]:
        """First offset of a partition and the one after its last, as last known; never blocks."""
        with map_errors():
            low, high = self._consumer.get_watermark_offsets(KafkaTopicPartition(*place), cached=True)
        before = self._last_bounds.get(place, (0, 0))
        return low if low >= 0 else before[0], high if high >= 0 else before[1]

    def peek(self, *, timeout_ms: int) -> None:
        """Wait for the next message and keep it for `read`; raises an error about the positions at once."""
        if not self._unread:
            self._unread = self._fetch(1, timeout_ms)
        if self._unread and self._unread[0].error() is not None and not _is_end(self._unread[0]):
            self._note(self._unread.pop(0))

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _fetch(self, count_max: int, timeout_ms: int) -> list[Message]:
        # `consume` with a time-out waits until it has `count_max` messages. So take what is there without waiting, and
        # only if there is nothing let `poll` wait for the first one.
        with map_errors():
            messages = self._consumer.consume(count_max, 0)
            if messages or timeout_ms <= 0:
                return messages
            first = self._consumer.poll(timeout_ms / 1000)
            return [first, *self._consumer.consume(count_max - 1, 0)] if first is not None else []

    def _note(self, message: Message) -> None:
        """Note the end of a partition, or raise an error that the caller must handle."""
        error = message.error()
        assert error is not None
        place = (message.topic() or "", message.partition() or 0)
        if _is_end(message):
            self.ended.add(place)
            self.positions[place] = max(self.positions.get(place, 0), message.offset() or 0)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise OffsetOutOfRange(place, message.offset() or 0)
        elif not is_harmless(error):
            raise from_kafka(error)


def is_harmless(error: KafkaError) -> bool:
    """Whether a reader outside of groups may ignore an error."""
    return is_passing(error) or error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED


def _is_end(message: Message) -> bool:
    error = message.error()
    return error is not None and error.code() == KafkaError._PARTITION_EOF
