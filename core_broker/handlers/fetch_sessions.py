"""Fetch sessions (KIP-227): a reader lists its partitions once; later responses contain only those that changed."""

import random
from collections import OrderedDict
from typing import Final

import msgspec

from core_broker.cluster.partition import Partition
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.messages.fetch import FetchPartition, FetchRequest
from core_broker.service.clock import Clock

SESSIONLESS: Final = 0
EPOCH_FIRST: Final = 0
EPOCH_FINAL: Final = -1
_EPOCH_MAX: Final = 2**31 - 1
_EVICTION_SECONDS: Final = 120.0
"""A session used within this time is not evicted (min.incremental.fetch.session.eviction.ms in Kafka)."""

PartitionKey = tuple[str, bytes, int]
"""Topic name (empty if requested by id), topic id (zero if requested by name), partition."""


class FetchEntry(msgspec.Struct):
    """One partition of a fetch, and what was last sent to its reader."""

    topic: str
    topic_id: bytes
    partition: int
    fetch_offset: int = 0
    max_bytes: int = 0
    leader_epoch: int = -1
    last_fetched_epoch: int = -1
    log_start: int = -1
    """Where the log of a follower begins."""
    sent_high_watermark: int = -2
    sent_start_offset: int = -2
    sent_error: bool = False
    followed: Partition | None = None
    """The partition of a follower that had all of it: nothing need be read before one of them moves."""

    def update(self, wanted: FetchPartition) -> None:
        """Set the position from a request."""
        self.fetch_offset = wanted.fetch_offset
        self.max_bytes = wanted.partition_max_bytes
        if self.leader_epoch != wanted.current_leader_epoch:
            # What was sent in another epoch may have been ignored.
            self.sent_high_watermark = -2
            self.leader_epoch = wanted.current_leader_epoch
        self.last_fetched_epoch = wanted.last_fetched_epoch
        self.log_start = wanted.log_start_offset
        self.followed = None


class FetchSession:
    """The partitions of one session, in the order in which they are served."""

    __slots__ = ("entries", "epoch", "is_follower", "last_used", "session_id", "uses_topic_ids")

    def __init__(
        self,
        session_id: int,
        entries: OrderedDict[PartitionKey, FetchEntry],
        *,
        uses_topic_ids: bool,
        is_follower: bool,
    ) -> None:
        self.session_id = session_id
        self.epoch = 1
        self.entries = entries
        self.uses_topic_ids = uses_topic_ids
        self.is_follower = is_follower
        self.last_used = 0.0

    def update(self, request: FetchRequest) -> None:
        """Add, change and remove partitions according to an incremental request."""
        for topic in request.topics:
            for wanted in topic.partitions:
                key = (topic.topic, topic.topic_id, wanted.partition)
                entry = self.entries.get(key)
                if entry is None:
                    entry = self.entries[key] = FetchEntry(topic.topic, topic.topic_id, wanted.partition)
                entry.update(wanted)
        for forgotten in request.forgotten_topics_data:
            for partition in forgotten.partitions:
                self.entries.pop((forgotten.topic, forgotten.topic_id, partition), None)

    def move_to_end(self, entry: FetchEntry) -> None:
        """Move a partition that got data behind the others, so that a busy one does not starve them."""
        key = (entry.topic, entry.topic_id, entry.partition)
        if key in self.entries:
            self.entries.move_to_end(key)

    def next_epoch(self) -> None:
        """Count a request; the epoch wraps to one, because zero means a new session."""
        self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1


class FetchSessions:
    """A bounded number of sessions; the least recently used is evicted once it has been idle for a while.

    A follower need not wait for that: it replaces the session of a consumer.
    """

    def __init__(self, clock: Clock, *, slots_max: int) -> None:
        self._clock = clock
        self._slots_max = slots_max
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def resolve(
        self, request: FetchRequest, version: int, *, is_follower: bool = False
    ) -> tuple[FetchSession | None, list[FetchEntry], bool]:
        """The session of a request if it has one, the partitions to read, and whether to send changes only."""
        if request.session_epoch == EPOCH_FINAL:
            if request.session_id != SESSIONLESS:
                self._sessions.pop(request.session_id, None)
            return None, list(_entries_of(request).values()), False
        if request.session_epoch == EPOCH_FIRST:
            self._sessions.pop(request.session_id, None)
            entries = _entries_of(request)
            session = self._create(entries, uses_topic_ids=version >= 13, is_follower=is_follower)
            return session, list(entries.values()), False
        session = self._existing(request, version)
        session.update(request)
        session.next_epoch()
        return session, list(session.entries.values()), True

    def remove(self, session: FetchSession) -> None:
        """End a session."""
        self._sessions.pop(session.session_id, None)

    def _existing(self, request: FetchRequest, version: int) -> FetchSession:
        session = self._sessions.get(request.session_id)
        if session is None:
            raise BrokerError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            raise BrokerError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != (version >= 13):
            raise BrokerError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.last_used = self._clock.monotonic()
        self._sessions.move_to_end(session.session_id)
        return session

    def _create(
        self, entries: OrderedDict[PartitionKey, FetchEntry], *, uses_topic_ids: bool, is_follower: bool
    ) -> FetchSession | None:
        """A new session, or None if it would be empty or there is no room for it."""
        if not entries or not self._make_room(is_follower=is_follower):
            return None
        session_id = random.randrange(1, 2**31)
        while session_id in self._sessions:
            session_id = random.randrange(1, 2**31)
        session = FetchSession(session_id, entries, uses_topic_ids=uses_topic_ids, is_follower=is_follower)
        session.last_used = self._clock.monotonic()
        self._sessions[session_id] = session
        return session

    def _make_room(self, *, is_follower: bool) -> bool:
        if len(self._sessions) < self._slots_max:
            return True
        idle_since = self._clock.monotonic() - _EVICTION_SECONDS
        for session in self._sessions.values():  # the least recently used first
            if session.last_used <= idle_since or (is_follower and not session.is_follower):
                del self._sessions[session.session_id]
                return True
        return False


def _entries_of(request: FetchRequest) -> OrderedDict[PartitionKey, FetchEntry]:
    entries: OrderedDict[PartitionKey, FetchEntry] = OrderedDict()
    for topic in request.topics:
        for wanted in topic.partitions:
            entry = FetchEntry(topic.topic, topic.topic_id, wanted.partition)
            entry.update(wanted)
            entries[topic.topic, topic.topic_id, wanted.partition] = entry
    return entries


__all__ = ["EPOCH_FINAL", "EPOCH_FIRST", "SESSIONLESS", "FetchEntry", "FetchSession", "FetchSessions"]
