"""A group member under full control of its caller: where partitions start, when to pause, what to commit."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import confluent_kafka
from confluent_kafka import OFFSET_INVALID, KafkaError, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from core_broker.client.consumer import TopicPartition, incoming
from core_broker.client.errors import ClientError, Fatal, NotFound, Rejected, from_kafka, is_passing, map_errors
from core_broker.client.records import IncomingRecord
from core_broker.client.settings import ClientSettings, Configuration

log = logging.getLogger(__name__)

Starts = Callable[[Sequence[TopicPartition]], Mapping[TopicPartition, int]]
"""Start offsets of newly assigned partitions; those left out start at the committed offset or by the reset policy."""
Revoked = Callable[[Sequence[TopicPartition]], None]

BEGINNING, END = -2, -1
"""The protocol's special timestamps for the first offset of a partition and the one after its last."""

_BATCH = 1000
_SEEK_PAUSE_SECONDS = 0.01
_LEAVING_SECONDS = 2.0
_LEAVING_PAUSE_SECONDS = 0.01
_EVENTS = (KafkaError._PARTITION_EOF, KafkaError._MAX_POLL_EXCEEDED)
_UNKNOWN = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
_ASSIGNMENT_LOST = (
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError._ASSIGNMENT_LOST,
)


class AssignmentLost(ClientError):
    """The group has assigned the partitions to other members, or is rebalancing: the call had no effect."""


class NoCommittedOffset(ClientError):
    """A partition has no committed offset, and the consumer is configured not to choose one (auto.offset.reset)."""


@dataclass(frozen=True, slots=True)
class Commit:
    """The offset of the next record to read, and the metadata committed with it."""

    offset: int
    metadata: str = ""


class GroupConsumer:
    """A consumer, in a group or with explicitly assigned partitions. One thread at a time may call it.

    The functions passed to `subscribe` are called from inside `read` and `close` when the group rebalances.
    """

    def __init__(
        self, settings: ClientSettings, *, group_id: str, defaults: Configuration, properties: Configuration
    ) -> None:
        """The properties in the settings override `defaults`; `properties` override both."""
        self._timeout = settings.timeout_seconds
        self.assigned: tuple[TopicPartition, ...] = ()
        """The partitions being read."""
        self.has_joined = False
        """Whether the group has assigned partitions to this member, possibly none."""
        self.unknown_topics: set[str] = set()
        """Subscribed topics that do not exist."""
        self._error: ClientError | None = None
        self._is_paused = False
        self._is_member = False
        configuration = {**settings.configuration(defaults), **properties}
        configuration |= {"group.id": group_id, "enable.auto.commit": False, "enable.auto.offset.store": False}
        with map_errors():
            self._consumer = confluent_kafka.Consumer(configuration)

    # --- reading ---

    def subscribe(self, topics: Sequence[str], *, starts: Starts, revoked: Revoked) -> None:
        """Join the group and read the partitions it assigns."""

        def on_assign(consumer: Any, assigned: Sequence[KafkaTopicPartition]) -> None:
            if not self._is_member:
                self.has_joined = True  # until the revocation, which comes next
                consumer.assign([])
                return
            places = [(item.topic, item.partition) for item in assigned]
            offsets = starts(places)
            consumer.assign([KafkaTopicPartition(*place, offsets.get(place, OFFSET_INVALID)) for place in places])
            self.assigned, self.has_joined = tuple(sorted(places)), True
            self.unknown_topics -= {topic for topic, _ in places}
            if self._is_paused and assigned:
                consumer.pause(list(assigned))

        def on_revoke(_: Any, lost: Sequence[KafkaTopicPartition]) -> None:
            places = [(item.topic, item.partition) for item in lost]
            self.assigned = tuple(place for place in self.assigned if place not in places)
            self.has_joined = False
            revoked(places)

        self.unknown_topics.clear()
        self._is_member = True
        with map_errors():
            self._consumer.subscribe(list(topics), on_assign=on_assign, on_revoke=on_revoke, on_lost=on_revoke)

    def unsubscribe(self) -> None:
        """Leave the group, or drop the explicitly assigned partitions."""
        was_member, self._is_member = self._is_member, False
        with map_errors():
            self._consumer.unsubscribe()
            if was_member:
                self._drain_rebalance_events()
            self._consumer.unassign()
        self.assigned, self.has_joined = (), False
        self.unknown_topics.clear()
        self._error, self._is_paused = None, False

    def _drain_rebalance_events(self) -> None:
        """Process pending assignments and revocations: librdkafka deadlocks, and blocks the whole process, when a
        consumer is closed or assigned to while one is pending."""
        deadline = time.monotonic() + _LEAVING_SECONDS
        while (self._consumer.poll(_LEAVING_PAUSE_SECONDS) or self.has_joined) and time.monotonic() < deadline:
            pass

    def assign(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Read these partitions outside of the group; None starts at the committed offset or by the reset policy."""
        chosen = {place: OFFSET_INVALID if offset is None else offset for place, offset in offsets.items()}
        with map_errors():
            self._consumer.assign([KafkaTopicPartition(*place, offset) for place, offset in chosen.items()])
        self.assigned, self.has_joined = tuple(sorted(offsets)), True
        self._is_paused = False

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Continue at other offsets; records already fetched are dropped."""
        deadline = time.monotonic() + self._timeout
        for place, offset in offsets.items():
            while not self._try_seek(KafkaTopicPartition(*place, offset), is_last_try=time.monotonic() > deadline):
                time.sleep(_SEEK_PAUSE_SECONDS)

    def _try_seek(self, where: KafkaTopicPartition, *, is_last_try: bool) -> bool:
        """Whether it worked: the library cannot seek in a partition that was assigned a moment ago."""
        try:
            with map_errors():
                self._consumer.seek(where)
        except ClientError as error:
            if error.code != KafkaError._STATE or is_last_try:
                raise
            return False
        return True

    def read(self, count_max: int, *, timeout_ms: int) -> list[IncomingRecord]:
        """The next records, at most `count_max`: waits for the first, and adds those already fetched.

        Records read before an error are returned; the next call raises the error.
        """
        if self._error:
            error, self._error = self._error, None
            raise error
        with map_errors():
            first = self._consumer.poll(timeout_ms / 1000)
        if first is None:
            return []
        records = self._collect_records([first])
        while len(records) < count_max:
            wanted = min(_BATCH, count_max - len(records))
            with map_errors():
                messages = self._consumer.consume(wanted, 0)
            records += self._collect_records(messages)
            if len(messages) < wanted:
                break
        if self._error and not records:
            error, self._error = self._error, None
            raise error
        return records

    def _collect_records(self, messages: Iterable[Message]) -> list[IncomingRecord]:
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
                self._error = NoCommittedOffset(f"{place} has no committed offset", code=error.code())
            elif error.code() not in _EVENTS and not is_passing(error):
                # What passes and yet lasts shows as reads that return nothing.
                self._error = from_kafka(error)
        return records

    def pause(self) -> None:
        """Fetch nothing until `resume`; `read` must still be called to stay in the group."""
        if not self._is_paused:
            self._is_paused = True
            with map_errors():
                self._consumer.pause([KafkaTopicPartition(*place) for place in self.assigned])

    def resume(self) -> None:
        """Fetch again."""
        if self._is_paused:
            self._is_paused = False
            with map_errors():
                self._consumer.resume([KafkaTopicPartition(*place) for place in self.assigned])

    def hold(self, places: Iterable[TopicPartition]) -> None:
        """Stop fetching these partitions."""
        with map_errors():
            self._consumer.pause([KafkaTopicPartition(*place) for place in places])

    def release(self, places: Iterable[TopicPartition]) -> None:
        """Fetch these partitions again."""
        with map_errors():
            self._consumer.resume([KafkaTopicPartition(*place) for place in places])

    # --- queries ---

    def topics(self) -> list[str]:
        """The names of all topics."""
        with map_errors():
            return list(self._consumer.list_topics(timeout=self._timeout).topics)

    def check(self, places: Iterable[TopicPartition]) -> None:
        """Raise NotFound unless all these partitions exist."""
        numbers: dict[str, list[int]] = {}
        for topic, partition in places:
            numbers.setdefault(topic, []).append(partition)
        for topic, partitions in numbers.items():
            with map_errors():
                found = self._consumer.list_topics(topic, timeout=self._timeout).topics[topic]
            if found.error is not None or not found.partitions:
                raise NotFound(f"Topic {topic} not found.", code=KafkaError._UNKNOWN_TOPIC)
            missing = [number for number in partitions if number not in found.partitions]
            if missing:
                message = f"Partition {missing[0]} of topic {topic} not found."
                raise NotFound(message, code=KafkaError._UNKNOWN_PARTITION)

    def offsets_at(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """For each partition the first offset with that time (ms) or a later one, or its end if there is none.

        BEGINNING and END may be given instead of a time.
        """
        found = self._offsets_for(times)
        late = [place for place, offset in found.items() if offset < 0]
        return {**found, **(self._offsets_for(dict.fromkeys(late, END)) if late else {})}

    def _offsets_for(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        wanted = [KafkaTopicPartition(*place, timestamp_ms) for place, timestamp_ms in times.items()]
        with map_errors():
            found = self._consumer.offsets_for_times(wanted, timeout=self._timeout)
        return {(item.topic, item.partition): item.offset for item in _without_errors(found)}

    def lag(self, positions: Mapping[TopicPartition, int]) -> int | None:
        """The largest lag of these partitions by the cached end offsets, None when none is cached; never blocks."""
        behind = []
        for place, position in positions.items():
            with map_errors():
                _, end = self._consumer.get_watermark_offsets(KafkaTopicPartition(*place), cached=True)
            if end >= 0:
                behind.append(max(0, end - position))
        return max(behind, default=None)

    def committed(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, Commit]:
        """The committed offsets of the group; partitions without one are left out."""
        with map_errors():
            found = self._consumer.committed([KafkaTopicPartition(*place) for place in places], timeout=self._timeout)
        return {
            (item.topic, item.partition): Commit(item.offset, item.metadata or "")
            for item in _without_errors(found)
            if item.offset >= 0
        }

    # --- commits ---

    def commit(self, commits: Mapping[TopicPartition, Commit]) -> None:
        """Commit, and wait for the response."""
        try:
            with map_errors():
                committed = self._consumer.commit(offsets=_commits(commits), asynchronous=False)
            _without_errors(committed or ())
        except Rejected as error:
            if error.code in _ASSIGNMENT_LOST:
                raise AssignmentLost(str(error), code=error.code) from error
            raise

    def commit_later(self, commits: Mapping[TopicPartition, Commit]) -> None:
        """Commit without waiting; in the order of the calls."""
        with map_errors():
            self._consumer.commit(offsets=_commits(commits), asynchronous=True)

    def close(self) -> None:
        """Leave the group."""
        try:
            self.unsubscribe()
        except Fatal as error:  # Another member has its instance id, or it failed before: there is nothing to leave.
            log.info("a consumer is closed that is no member any more", extra={"error": str(error)})
            self._drain_rebalance_events()
        finally:
            with map_errors():
                self._consumer.close()


def _commits(commits: Mapping[TopicPartition, Commit]) -> list[KafkaTopicPartition]:
    return [KafkaTopicPartition(*place, item.offset, item.metadata) for place, item in commits.items()]


def _without_errors(found: Iterable[KafkaTopicPartition]) -> list[KafkaTopicPartition]:
    items = list(found)
    for item in items:
        if item.error is not None:
            raise from_kafka(item.error)
    return items
