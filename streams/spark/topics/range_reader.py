"""Reads ranges of offsets into columns, with as few calls per record as possible: Spark reads millions.

Records fetched beyond a range are kept: if the next range begins where the last one ended, nothing is fetched twice.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, NamedTuple

import confluent_kafka
from confluent_kafka import KafkaError, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from core_broker.client.consumer import TopicPartition, incoming
from core_broker.client.errors import NotFound, Unreachable, from_kafka, map_errors
from core_broker.client.reader import OffsetOutOfRange, is_harmless
from core_broker.client.records import Header
from core_broker.client.settings import ClientSettings
from streams.formats.collector import collector_paused

_DEFAULTS: Final = {
    # Records fetched ahead wait in memory: about this much, plus one response. More would be wasted whenever the next
    # range begins elsewhere.
    "queued.max.messages.kbytes": "2048",
    "fetch.message.max.bytes": "1048576",
    # By default the library pauses for a whole second whenever its queue is full.
    "fetch.queue.backoff.ms": "2",
    "fetch.error.backoff.ms": "100",
    # A range that ends with transaction markers is known to be complete only after the broker has waited this long.
    "fetch.wait.max.ms": "100",
    "topic.metadata.propagation.max.ms": "500",
    "reconnect.backoff.max.ms": "1000",
    "group.id": "caudal-reader",
}
_NEEDED: Final = {
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
}
_ROWS_FIRST: Final = 500
"""How many records to fetch while their size is still unknown."""
_POLL_SECONDS: Final = 0.5
_WAITS_BEFORE_LOOK: Final = 2
_LOOK_SECONDS: Final = 10.0
_TYPES: Final = {confluent_kafka.TIMESTAMP_CREATE_TIME: 0, confluent_kafka.TIMESTAMP_LOG_APPEND_TIME: 1}
_NO_TYPE: Final = -1
_UNKNOWN: Final = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)

_key, _value, _offset = Message.key, Message.value, Message.offset
_timestamp, _headers, _error = Message.timestamp, Message.headers, Message.error


class RecordColumns(NamedTuple):
    """Records of one partition in the order of their offsets: one list for each field."""

    keys: list[bytes | None]
    values: list[bytes | None]
    offsets: list[int]
    timestamps_ms: Sequence[int]
    timestamp_types: Sequence[int]
    """The protocol's numbers: 0 create time, 1 append time, -1 no timestamp."""
    headers: list[Sequence[Header] | None] | None
    """None when no record has any."""


class RangeReader:
    """Reads one range after another, of any partition. For one thread at a time."""

    def __init__(self, settings: ClientSettings, *, isolation_level: str) -> None:
        properties = {**_DEFAULTS, **settings.properties, **_NEEDED, "isolation.level": isolation_level}
        self._configuration = replace(settings, properties=properties).configuration()
        with map_errors():
            self._consumer = confluent_kafka.Consumer(self._configuration)
        self._is_new = True
        self._place: TopicPartition | None = None
        self._read_until = 0
        """Everything before this offset was returned; what follows, including `_unread`, is at or after it."""
        self._seen_until = 0
        """Everything before this offset has been fetched."""
        self._unread: list[Message] = []
        self._row_bytes = 0.0

    def read(
        self, place: TopicPartition, start: int, end: int, *, rows_max: int, bytes_max: int, timeout_ms: int
    ) -> Iterator[RecordColumns]:
        """The records of a partition from `start` until before `end`, in chunks of about the given size.

        Raises OffsetOutOfRange when the first records no longer exist, NotFound when the partition does not, and
        Unreachable when nothing arrives for `timeout_ms`. The end may be a gap without records.
        """
        if end <= start:
            return
        self._begin(place, start)
        while self._read_until < end:
            with collector_paused():
                messages = self._gather(end, rows_max=rows_max, bytes_max=bytes_max, timeout_ms=timeout_ms)
                columns = _columns(messages) if messages else None
                messages.clear()
            if columns:
                yield columns

    def close(self) -> None:
        """Close the consumer."""
        self._unread.clear()
        self._place = None
        with map_errors():
            self._consumer.close()

    def _begin(self, place: TopicPartition, start: int) -> None:
        if self._place == place and self._read_until == start:
            return
        self._unread.clear()
        self._place, self._read_until, self._seen_until = None, start, start
        with map_errors():
            if not self._is_new:
                # A consumer that is reassigned first waits a fraction of a second for the response to its last fetch;
                # a new consumer takes a few milliseconds.
                self._consumer.close()
                self._consumer = confluent_kafka.Consumer(self._configuration)
            self._is_new = False
            self._consumer.assign([KafkaTopicPartition(*place, start)])
        self._place = place

    def _gather(self, end: int, *, rows_max: int, bytes_max: int, timeout_ms: int) -> list[Message]:
        """As many messages of the range as allowed; fewer, or none, only at its end."""
        found: list[Message] = []
        deadline = time.monotonic() + timeout_ms / 1000
        size = waits = 0
        while len(found) < rows_max and size < bytes_max and self._read_until < end:
            fresh = self._next(
                min(rows_max - len(found), end - self._read_until, self._rows_fitting(bytes_max - size)), end
            )
            if fresh:
                found += fresh
                fresh_bytes = sum(map(len, fresh))
                size += fresh_bytes
                self._row_bytes = fresh_bytes / len(fresh)
                deadline = time.monotonic() + timeout_ms / 1000
            elif self._read_until < end:
                waits += 1
                if waits == _WAITS_BEFORE_LOOK:
                    self._check_partition_exists()
                if time.monotonic() > deadline:
                    raise self._no_progress(end, timeout_ms)
        return found

    def _next(self, count: int, end: int) -> list[Message]:
        """Messages of the range that are already fetched, or the next to arrive; none at its end or on time-out."""
        messages = self._unread or self._fetch(count)
        self._unread = []
        if any(map(_error, messages)):
            messages = self._without_errors(messages)
        if messages:
            last = _offset(messages[-1]) or 0
            self._seen_until = max(self._seen_until, last + 1)
            if last >= end:
                cut = next(index for index, message in enumerate(messages) if (_offset(message) or 0) >= end)
                self._unread, messages = messages[cut:] + self._unread, messages[:cut]
        self._read_until = min(self._seen_until, end)
        return messages

    def _fetch(self, count: int) -> list[Message]:
        if self._seen_until > self._read_until:
            return []  # Only the end of the partition was seen since, and it lies within the range.
        # `consume` with a time-out waits until it has `count` messages. So take what is there without waiting, and
        # only if there is nothing let `poll` wait for the first one.
        with map_errors():
            messages = self._consumer.consume(count, 0)
            if messages:
                return messages
            first = self._consumer.poll(_POLL_SECONDS)
            if first is None:
                return []
            return [first, *self._consumer.consume(count - 1, 0)] if count > 1 else [first]

    def _without_errors(self, messages: list[Message]) -> list[Message]:
        """Only the records; records before an error are returned first, and the next call raises the error."""
        records: list[Message] = []
        for index, message in enumerate(messages):
            error = _error(message)
            if error is None:
                records.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._seen_until = max(self._seen_until, _offset(message) or 0)
            elif not is_harmless(error):
                if records:
                    self._unread = messages[index:]
                    return records
                self._raise(error)
        return records

    def _raise(self, error: KafkaError) -> None:
        place, self._place = self._place, None  # The position is unknown now: the next range assigns anew.
        assert place is not None, "only an assigned partition has messages"
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise OffsetOutOfRange(place, self._read_until)
        if error.code() in _UNKNOWN:
            raise NotFound(f"partition {place[1]} of topic {place[0]} does not exist", code=error.code())
        raise from_kafka(error)

    def _check_partition_exists(self) -> None:
        """Raise NotFound when there is no such partition: the library would wait for it to be created."""
        assert self._place is not None, "a range is being read"
        topic, partition = self._place
        with map_errors():
            found = self._consumer.list_topics(topic, timeout=_LOOK_SECONDS).topics[topic]
        if partition not in found.partitions and (found.error is None or found.error.code() in _UNKNOWN):
            self._raise(KafkaError(KafkaError._UNKNOWN_PARTITION))

    def _no_progress(self, end: int, timeout_ms: int) -> Unreachable:
        assert self._place is not None, "a range is being read"
        (topic, partition), at, self._place = self._place, self._read_until, None
        return Unreachable(
            f"no record of partition {partition} of topic {topic} arrived within {timeout_ms} ms;"
            f" expected offsets {at} to {end - 1}"
        )

    def _rows_fitting(self, size: int) -> int:
        return max(1, int(size / self._row_bytes)) if self._row_bytes else _ROWS_FIRST


def _columns(messages: list[Message]) -> RecordColumns:
    stamps = list(chain.from_iterable(map(_timestamp, messages)))
    return RecordColumns(
        list(map(_key, messages)),
        list(map(_value, messages)),
        list(map(_offset, messages)),  # type: ignore[arg-type]  # only errors have no offset
        stamps[1::2],
        _types_of(stamps[0::2]),
        _headers_of(messages),
    )


def _types_of(kinds: list[int]) -> list[int]:
    first = _TYPES.get(kinds[0], _NO_TYPE)
    if kinds.count(kinds[0]) == len(kinds):
        return [first] * len(kinds)
    return [_TYPES.get(kind, _NO_TYPE) for kind in kinds]


def _headers_of(messages: list[Message]) -> list[Sequence[Header] | None] | None:
    try:
        if not any(map(_headers, messages)):
            return None
    except SystemError:
        pass  # A header name is not UTF-8: only that record is returned without headers.
    return [incoming(message).headers or None for message in messages]
