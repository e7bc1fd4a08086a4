"""Reads records: from explicitly assigned partitions, or as a member of a group."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import methodcaller
from typing import Self

import confluent_kafka
from confluent_kafka import KafkaError, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from core_broker.client.errors import NotFound, Unreachable, from_kafka, is_passing, map_errors
from core_broker.client.records import Header, IncomingRecord
from core_broker.client.settings import ClientSettings, Configuration

TopicPartition = tuple[str, int]
"""Topic and partition."""

Value = str | bytes | None

_TIMESTAMP_TYPES = {
    confluent_kafka.TIMESTAMP_CREATE_TIME: "CreateTime",
    confluent_kafka.TIMESTAMP_LOG_APPEND_TIME: "LogAppendTime",
}
# When a header name is not UTF-8, the library returns a result with an exception set. CPython detects that (as
# SystemError) when the method is called this way; a direct call, once specialised by the interpreter, does not.
_call_headers: Callable[[Message], dict[str, Value] | list[tuple[str, Value]] | None] = methodcaller("headers")


class Consumer:
    """A consumer; a context manager that leaves the group at its end. Only `commit` commits offsets."""

    def __init__(self, settings: ClientSettings, *, group_id: str | None = None, from_beginning: bool = True) -> None:
        self._timeout = settings.timeout_seconds
        self._is_in_group = group_id is not None
        self.ended: set[TopicPartition] = set()
        """Partitions whose end was reached since they were last read from."""
        defaults: Configuration = {
            "group.id": group_id or "caudal-reader",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest" if from_beginning else "latest",
            "enable.partition.eof": True,
            "fetch.error.backoff.ms": 100,
        }
        with map_errors():
            self._consumer = confluent_kafka.Consumer(settings.configuration(defaults))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def partitions_of(self, topic: str) -> list[int]:
        """The partitions of a topic; NotFound when it does not exist."""
        with map_errors():
            found = self._consumer.list_topics(topic, timeout=self._timeout).topics[topic]
        if found.error is not None:
            raise from_kafka(found.error)
        if not found.partitions:
            raise NotFound(f"topic {topic} does not exist")
        return sorted(found.partitions)

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these offsets, outside of any group."""
        with map_errors():
            self._consumer.assign([KafkaTopicPartition(*place, offset) for place, offset in offsets.items()])

    def subscribe(self, topics: Sequence[str]) -> None:
        """Join the group and read the partitions it assigns."""
        with map_errors():
            self._consumer.subscribe(list(topics))

    def read(self, count_max: int, *, timeout_ms: int) -> list[IncomingRecord]:
        """The next records, at most `count_max`; an empty list on time-out."""
        with map_errors():
            messages = self._consumer.consume(count_max, timeout_ms / 1000)
        for message in messages:
            place = (message.topic() or "", message.partition() or 0)
            error = message.error()
            if error is None:
                self.ended.discard(place)
            elif error.code() == KafkaError._PARTITION_EOF:
                self.ended.add(place)
            elif not (is_passing(error) or self._is_about_no_group(error)):
                raise from_kafka(error)
        return [incoming(message) for message in messages if message.error() is None]

    def _is_about_no_group(self, error: KafkaError) -> bool:
        """Whether a reader without a group is refused one: the library asks for it whether it is needed or not."""
        return not self._is_in_group and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED

    def assigned(self) -> list[TopicPartition]:
        """The partitions being read, assigned explicitly or by the group."""
        with map_errors():
            return [(item.topic, item.partition) for item in self._consumer.assignment()]

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """First offset of a partition, and the one after its last."""
        with map_errors():
            found = self._consumer.get_watermark_offsets(KafkaTopicPartition(topic, partition), timeout=self._timeout)
        if found is None:
            raise Unreachable(f"the offsets of {topic} [{partition}] could not be read in time")
        return found

    def offsets_at(self, places: Iterable[TopicPartition], timestamp_ms: int) -> dict[TopicPartition, int]:
        """For each partition the first offset with that time or a later one; -1 (the end) when there is none."""
        wanted = [KafkaTopicPartition(topic, partition, timestamp_ms) for topic, partition in places]
        with map_errors():
            found = self._consumer.offsets_for_times(wanted, timeout=self._timeout)
        return {(item.topic, item.partition): item.offset for item in found}

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets (of the next record to read) and wait for the response."""
        with map_errors():
            committed = self._consumer.commit(
                offsets=[KafkaTopicPartition(*place, offset) for place, offset in offsets.items()], asynchronous=False
            )
        for item in committed or ():
            if item.error is not None:
                raise from_kafka(item.error)


def incoming(message: Message) -> IncomingRecord:
    """A message of the library as a record."""
    kind, timestamp_ms = message.timestamp()
    return IncomingRecord(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        timestamp_ms=timestamp_ms,
        timestamp_type=_TIMESTAMP_TYPES.get(kind, ""),
        key=message.key(),
        value=message.value(),
        headers=_headers(message),
        leader_epoch=message.leader_epoch(),
    )


def _headers(message: Message) -> Sequence[Header]:
    try:
        headers = _call_headers(message)
    except SystemError:
        return ()  # A name is not UTF-8 (see _call_headers); better a record without headers than no record.
    if not headers:
        return ()
    pairs = headers.items() if isinstance(headers, dict) else headers
    return tuple((name, (value.encode() if isinstance(value, str) else value)) for name, value in pairs)
