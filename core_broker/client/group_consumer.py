"""Reads as one member of a group whose every step the caller decides: where partitions begin, and what is committed."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import confluent_kafka
from confluent_kafka import OFFSET_INVALID, KafkaError, Message, TopicPartition

from core_broker.client.consumer import Place, incoming
from core_broker.client.errors import ClientError, NotFound, Rejected, from_kafka, mapped
from core_broker.client.records import IncomingRecord
from core_broker.client.settings import ClientSettings, Configuration

Starts = Callable[[Sequence[Place]], Mapping[Place, int]]
"""Where partitions begin that the group has given; those left out begin as the library finds right."""
Revoked = Callable[[Sequence[Place]], None]

BEGINNING, END = -2, -1
"""What the protocol calls the first offset of a partition, and the one after its last."""

_BATCH = 1000
_SEEK_PAUSE_SECONDS = 0.01
_LEAVING_SECONDS = 2.0
_LEAVING_PAUSE_SECONDS = 0.01
# Trouble that the library repairs by itself; what lasts shows as a read that brings nothing.
_PASSING = (
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT,
    KafkaError._PARTITION_EOF,
    KafkaError._MAX_POLL_EXCEEDED,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)
_UNKNOWN = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
_MOVED = (
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError._ASSIGNMENT_LOST,
)


class Moved(ClientError):
    """The group has given the partitions to others, or is about to: what was asked of them is void."""


class NowhereToBegin(ClientError):
    """A partition has no committed offset, and the consumer was told not to choose one."""


@dataclass(frozen=True, slots=True)
class Commit:
    """The offset of the next record to read, and a note beside it."""

    offset: int
    metadata: str = ""


class GroupConsumer:
    """A consumer, in a group or with partitions of its own choice. One thread at a time may call it.

    The functions given to `subscribe` are called from inside `read` and `close`, as the group decides.
    """

    def __init__(
        self, settings: ClientSettings, *, group_id: str, defaults: Configuration, properties: Configuration
    ) -> None:
        """`defaults` give way to the properties in the settings, `properties` do not."""
        self._timeout = settings.timeout_seconds
        self.assigned: tuple[Place, ...] = ()
        """The partitions that are read."""
        self.has_joined = False
        """Whether the group has said which partitions are this member's, and be it none."""
        self.unknown_topics: set[str] = set()
        """Topics that were subscribed to, and are not there."""
        self._error: ClientError | None = None
        self._is_paused = False
        self._is_member = False
        configuration = {**settings.configuration(defaults), **properties}
        configuration |= {"group.id": group_id, "enable.auto.commit": False, "enable.auto.offset.store": False}
        with mapped():
            self._consumer = confluent_kafka.Consumer(configuration)

    # --- what is read ---

    def subscribe(self, topics: Sequence[str], *, starts: Starts, revoked: Revoked) -> None:
        """Join the group and read what it gives."""

        def begin(consumer: Any, given: Sequence[TopicPartition]) -> None:
            if not self._is_member:
                self.has_joined = True  # until it is taken back, which comes next
                consumer.assign([])
                return
            places = [(item.topic, item.partition) for item in given]
            offsets = starts(places)
            consumer.assign([TopicPartition(*place, offsets.get(place, OFFSET_INVALID)) for place in places])
            self.assigned, self.has_joined = tuple(sorted(places)), True
            self.unknown_topics -= {topic for topic, _ in places}
            if self._is_paused and given:
                consumer.pause(list(given))

        def end(_: Any, taken: Sequence[TopicPartition]) -> None:
            places = [(item.topic, item.partition) for item in taken]
            self.assigned = tuple(place for place in self.assigned if place not in places)
            self.has_joined = False
            revoked(places)

        self.unknown_topics.clear()
        self._is_member = True
        with mapped():
            self._consumer.subscribe(list(topics), on_assign=begin, on_revoke=end, on_lost=end)

    def unsubscribe(self) -> None:
        """Leave the group, or the partitions of one's own choice."""
        was_member, self._is_member = self._is_member, False
        with mapped():
            self._consumer.unsubscribe()
            if was_member:
                self._hear_the_group_out()
            self._consumer.unassign()
        self.assigned, self.has_joined = (), False
        self.unknown_topics.clear()
        self._error, self._is_paused = None, False

    def _hear_the_group_out(self) -> None:
        """Let the library tell what the group has given and taken back: a consumer that is closed, or assigned to,
        while that waits to be told stands still for ever, and the whole process with it."""
        deadline = time.monotonic() + _LEAVING_SECONDS
        while (self._consumer.poll(_LEAVING_PAUSE_SECONDS) or self.has_joined) and time.monotonic() < deadline:
            pass

    def assign(self, offsets: Mapping[Place, int | None]) -> None:
        """Read these partitions, whatever the group does, from these offsets; None: as the library finds right."""
        chosen = {place: OFFSET_INVALID if offset is None else offset for place, offset in offsets.items()}
        with mapped():
            self._consumer.assign([TopicPartition(*place, offset) for place, offset in chosen.items()])
        self.assigned, self.has_joined = tuple(sorted(offsets)), True
        self._is_paused = False

    def seek(self, offsets: Mapping[Place, int]) -> None:
        """Read on elsewhere; what was fetched before is dropped."""
        deadline = time.monotonic() + self._timeout
        for place, offset in offsets.items():
            while not self._sought(TopicPartition(*place, offset), is_last_try=time.monotonic() > deadline):
                time.sleep(_SEEK_PAUSE_SECONDS)

    def _sought(self, where: TopicPartition, *, is_last_try: bool) -> bool:
        """Whether it worked: a partition that was assigned just now cannot be sought yet."""
        try:
            with mapped():
                self._consumer.seek(where)
        except ClientError as error:
            if error.code != KafkaError._STATE or is_last_try:
                raise
            return False
        return True

    def read(self, count_max: int, *, timeout_ms: int) -> list[IncomingRecord]:
        """The next records, at most `count_max`: waits for the first, and takes what has been fetched beside it.

        What was read before trouble came is given; the trouble is raised by the next call.
        """
        if self._error:
            error, self._error = self._error, None
            raise error
        with mapped():
            first = self._consumer.poll(timeout_ms / 1000)
        if first is None:
            return []
        records = self._sorted_out([first])
        while len(records) < count_max:
            wanted = min(_BATCH, count_max - len(records))
            with mapped():
                messages = self._consumer.consume(wanted, 0)
            records += self._sorted_out(messages)
            if len(messages) < wanted:
                break
        if self._error and not records:
            error, self._error = self._error, None
            raise error
        return records

    def _sorted_out(self, messages: Iterable[Message]) -> list[IncomingRecord]:
        """The records among messages; errors are noted."""
        records = []
        for message in messages:
            error = message.error()
            if error is None:
                records.append(incoming(message))
            elif error.code() in _UNKNOWN:
                self.unknown_topics.add(message.topic() or "")
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                place = f"{message.topic()}-{message.partition()}"
                self._error = NowhereToBegin(f"{place} has no committed offset", code=error.code())
            elif error.code() not in _PASSING:
                self._error = from_kafka(error)
        return records

    def pause(self) -> None:
        """Fetch nothing until `resume`; calls of `read` still let the group go on."""
        if not self._is_paused:
            self._is_paused = True
            with mapped():
                self._consumer.pause([TopicPartition(*place) for place in self.assigned])

    def resume(self) -> None:
        """Fetch again."""
        if self._is_paused:
            self._is_paused = False
            with mapped():
                self._consumer.resume([TopicPartition(*place) for place in self.assigned])

    def hold(self, places: Iterable[Place]) -> None:
        """Fetch nothing more of these partitions."""
        with mapped():
            self._consumer.pause([TopicPartition(*place) for place in places])

    def release(self, places: Iterable[Place]) -> None:
        """Fetch them again."""
        with mapped():
            self._consumer.resume([TopicPartition(*place) for place in places])

    # --- what is asked ---

    def topics(self) -> list[str]:
        """The names of all topics."""
        with mapped():
            return list(self._consumer.list_topics(timeout=self._timeout).topics)

    def check(self, places: Iterable[Place]) -> None:
        """Raise NotFound unless all these partitions exist."""
        numbers: dict[str, list[int]] = {}
        for topic, partition in places:
            numbers.setdefault(topic, []).append(partition)
        for topic, partitions in numbers.items():
            with mapped():
                found = self._consumer.list_topics(topic, timeout=self._timeout).topics[topic]
            if found.error is not None or not found.partitions:
                raise NotFound(f"Topic {topic} not found.", code=KafkaError._UNKNOWN_TOPIC)
            missing = [number for number in partitions if number not in found.partitions]
            if missing:
                told = f"Partition {missing[0]} of topic {topic} not found."
                raise NotFound(told, code=KafkaError._UNKNOWN_PARTITION)

    def offsets_at(self, times: Mapping[Place, int]) -> dict[Place, int]:
        """For each partition the first offset with that time (ms) or a later one, or BEGINNING or END.

        Where no record is that late, it is the end.
        """
        found = self._offsets_for(times)
        late = [place for place, offset in found.items() if offset < 0]
        return {**found, **(self._offsets_for(dict.fromkeys(late, END)) if late else {})}

    def _offsets_for(self, times: Mapping[Place, int]) -> dict[Place, int]:
        wanted = [TopicPartition(*place, timestamp_ms) for place, timestamp_ms in times.items()]
        with mapped():
            found = self._consumer.offsets_for_times(wanted, timeout=self._timeout)
        return {(item.topic, item.partition): item.offset for item in _without_errors(found)}

    def lag(self, positions: Mapping[Place, int]) -> int | None:
        """How far the partition that is furthest behind is from its end, as last heard of; never blocks.

        None when nothing was heard yet.
        """
        behind = []
        for place, position in positions.items():
            with mapped():
                _, end = self._consumer.get_watermark_offsets(TopicPartition(*place), cached=True)
            if end >= 0:
                behind.append(max(0, end - position))
        return max(behind, default=None)

    def committed(self, places: Iterable[Place]) -> dict[Place, Commit]:
        """What the group has committed; partitions without a commit are left out."""
        with mapped():
            found = self._consumer.committed([TopicPartition(*place) for place in places], timeout=self._timeout)
        return {
            (item.topic, item.partition): Commit(item.offset, item.metadata or "")
            for item in _without_errors(found)
            if item.offset >= 0
        }

    # --- commits ---

    def commit(self, commits: Mapping[Place, Commit]) -> None:
        """Commit, and wait for the answer."""
        try:
            with mapped():
                committed = self._consumer.commit(offsets=_commits(commits), asynchronous=False)
            _without_errors(committed or ())
        except Rejected as error:
            if error.code in _MOVED:
                raise Moved(str(error), code=error.code) from error
            raise

    def commit_later(self, commits: Mapping[Place, Commit]) -> None:
        """Commit without waiting; in the order of the calls."""
        with mapped():
            self._consumer.commit(offsets=_commits(commits), asynchronous=True)

    def close(self) -> None:
        """Leave the group."""
        try:
            self.unsubscribe()
        finally:
            with mapped():
                self._consumer.close()


def _commits(commits: Mapping[Place, Commit]) -> list[TopicPartition]:
    return [TopicPartition(*place, item.offset, item.metadata) for place, item in commits.items()]


def _without_errors(found: Iterable[TopicPartition]) -> list[TopicPartition]:
    items = list(found)
    for item in items:
        if item.error is not None:
            raise from_kafka(item.error)
    return items
