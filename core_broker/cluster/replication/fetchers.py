"""Replica fetchers: copy the partitions that other brokers lead into the logs of this one.

One task for each leading broker sends it Fetch requests for all partitions that this broker follows there, with an
incremental session (KIP-227): only partitions whose position has changed are sent, and the response has only those with
news. What to do with an answer is decided in `follower.py`; here it is carried out. Throttled partitions are left out
while the quota of this broker is used up (KIP-73).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from math import inf
from typing import Final

from core_broker.cluster.features import fetch_version, list_offsets_version, metadata_version
from core_broker.cluster.metadata import MetadataImage
from core_broker.cluster.partition import Partition
from core_broker.cluster.partitions import Partitions
from core_broker.cluster.replicas.follower import (
    Append,
    FindRange,
    FollowerFetch,
    Ignore,
    LeaderAnswer,
    Truncate,
    Wait,
    decide,
)
from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.leader_epochs import EpochEnd
from core_broker.log.store import LogStore
from core_broker.peers.peers import Address, PeerError, Peers
from core_broker.protocol.fields import Message
from core_broker.protocol.messages import list_offsets
from core_broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from core_broker.service.clock import Clock
from core_broker.settings import BrokerSettings

log = logging.getLogger(__name__)

_PURPOSE: Final = "replica"
_SESSION_EPOCH_MAX: Final = 2**31 - 1
_IDLE_SECONDS: Final = 60.0
_NOTHING: Final = FollowerFetch(-2, -1, -1)
"""A fetch that no answer fits: what arrives before the first one is sent was asked in an earlier epoch."""
_LATEST: Final = -1
_EARLIEST: Final = -2

Key = tuple[bytes, int]
"""Topic id and partition."""


class ReplicaFetchers:
    """The fetchers of this broker, one for each broker that leads a partition which this one follows."""

    def __init__(
        self,
        partitions: Partitions,
        *,
        local_id: int,
        broker_epoch: Callable[[], int],
        image: Callable[[], MetadataImage],
        peers: Peers,
        logs: LogStore,
        settings: BrokerSettings,
        clock: Clock,
    ) -> None:
        """`broker_epoch` is that of this broker's registration, which changes when it registers again."""
        self.local_id = local_id
        self.broker_epoch = broker_epoch
        self.peers = peers
        self.logs = logs
        self.settings = settings
        self.clock = clock
        self.quota = partitions.throttles.follower
        self._image = image
        self._listener_name = settings.inter_broker_listener
        self._sources: dict[int, Source] = {}
        self._followed: dict[Key, Source] = {}
        self._tasks: asyncio.TaskGroup | None = None
        partitions.on_following.append(self.follow)
        partitions.on_leadership.append(self.forget)
        partitions.on_removed.append(self.forget)
        for partition in partitions:
            if not partition.is_leader:
                self.follow(partition)

    async def run(self) -> None:
        """Fetch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            for source in self._sources.values():
                tasks.create_task(source.run())
            try:
                await asyncio.Event().wait()
            finally:
                self._tasks = None  # the metadata is followed for longer than this, and may name new leaders

    def follow(self, partition: Partition) -> None:
        """Fetch a partition from its leader, from the end of our log; stop if it has no leader."""
        self.forget(partition)
        leader_id = partition.leader_id
        if leader_id < 0:
            return
        source = self._sources.get(leader_id)
        if source is None:
            source = self._sources[leader_id] = Source(leader_id, self)
            if self._tasks is not None:
                self._tasks.create_task(source.run())
        self._followed[partition.topic_id, partition.index] = source
        source.add(partition)

    def forget(self, partition: Partition) -> None:
        """Stop fetching a partition."""
        key = (partition.topic_id, partition.index)
        source = self._followed.pop(key, None)
        if source is not None:
            source.remove(key)

    @property
    def metadata_version(self) -> int:
        """The finalised level, which may change while we fetch."""
        return metadata_version(self._image().features)

    def address_of(self, broker_id: int) -> Address:
        """Where to reach another broker; raises PeerError if that is unknown."""
        broker = self._image().brokers.get(broker_id)
        endpoint = None if broker is None else broker.endpoint(self._listener_name)
        if endpoint is None or not endpoint.host:
            raise PeerError(f"broker {broker_id} has no address for listener {self._listener_name}")
        return Address(endpoint.host, endpoint.port)


class _Followed:
    """A partition, and what we last asked its leader."""

    __slots__ = ("fetch", "is_caught_up", "partition", "retry_at", "wanted")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.fetch = _NOTHING
        self.wanted = FetchPartition(partition.index)
        self.retry_at = 0.0
        """When to fetch again after a delay; 0 if it is being fetched."""
        self.is_caught_up = False
        """Whether the last answer gave us everything that is committed."""

    def prepare(self, bytes_max: int) -> FetchPartition:
        """The fetch that continues the log."""
        partition, wanted = self.partition, self.wanted
        fetch = self.fetch = partition.next_fetch()
        wanted.current_leader_epoch = fetch.leader_epoch
        wanted.fetch_offset = fetch.offset
        wanted.last_fetched_epoch = fetch.last_epoch
        wanted.log_start_offset = partition.log.start_offset
        wanted.partition_max_bytes = bytes_max
        return wanted


class Source:
    """The partitions that one broker leads and this one follows, and the fetch session for them."""

    def __init__(self, broker_id: int, fetchers: ReplicaFetchers) -> None:
        self._broker_id = broker_id
        self._fetchers = fetchers
        self._partitions: dict[Key, _Followed] = {}
        self._changed: dict[Key, _Followed] = {}
        """Partitions whose position the leader does not know."""
        self._delayed: dict[Key, _Followed] = {}
        """Partitions that are not fetched for a while, after an error or while the quota is used up."""
        self._known: set[Key] = set()
        """Partitions in the leader's session."""
        self._session_id = 0
        self._session_epoch = 0
        self._has_work = asyncio.Event()
        self._is_unreachable = False

    def add(self, partition: Partition) -> None:
        """Fetch a partition from now on."""
        key = (partition.topic_id, partition.index)
        self._partitions[key] = self._changed[key] = _Followed(partition)
        self._has_work.set()

    def remove(self, key: Key) -> None:
        """Stop fetching a partition."""
        for table in (self._partitions, self._changed, self._delayed):
            table.pop(key, None)

    async def run(self) -> None:
        """Fetch until cancelled; errors are logged, and the fetch is repeated."""
        while True:
            try:
                await self.fetch_once()
                self._is_unreachable = False
                continue
            except PeerError as error:
                if not self._is_unreachable:
                    self._is_unreachable = True
                    extra = {"broker": self._broker_id, "reason": str(error)}
                    log.warning("leader cannot be reached, retrying", extra=extra)
            except Exception:
                log.exception("fetch from a leader failed and will be retried", extra={"broker": self._broker_id})
            self._session_epoch = 0
            await asyncio.sleep(self._fetchers.settings.replica_fetch_backoff_ms / 1000)

    async def fetch_once(self) -> None:
        """Send one fetch and apply its response, or wait until there is something to fetch; raises PeerError."""
        self._resume_delayed()
        if self._fetchers.quota.is_limited:
            self._delay_throttled()
        if len(self._partitions) == len(self._delayed):
            self._has_work.clear()
            try:
                async with asyncio.timeout(self._seconds_until_next(_IDLE_SECONDS)):
                    await self._has_work.wait()
            except TimeoutError:
                pass
            return
        response = await self._call(self._request(), fetch_version(self._fetchers.metadata_version))
        if not isinstance(response, FetchResponse):
            raise PeerError(f"broker {self._broker_id} answered Fetch with {type(response).__name__}")
        if self._accept_session(response):
            await self._apply(response)

    async def _call(self, request: Message, version: int) -> Message:
        fetchers = self._fetchers
        return await fetchers.peers.call(
            fetchers.address_of(self._broker_id),
            request,
            timeout_seconds=fetchers.settings.replica_socket_timeout_ms / 1000,
            purpose=_PURPOSE,
            version=version,
        )

    # -- the session --

    def _request(self) -> FetchRequest:
        settings = self._fetchers.settings
        forgotten: Iterable[Key] = ()
        if self._session_epoch == 0:
            self._changed = {key: found for key, found in self._partitions.items() if key not in self._delayed}
            self._known = set(self._changed)
        else:
            forgotten = [key for key in self._known if key not in self._partitions or key in self._delayed]
            self._known.difference_update(forgotten)
            self._known.update(self._changed)
        topics: dict[bytes, FetchTopic] = {}
        for (topic_id, _), followed in self._changed.items():
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = FetchTopic(topic_id=topic_id)
            topic.partitions.append(followed.prepare(settings.replica_fetch_max_bytes))
        self._changed = {}
        return FetchRequest(
            replica_id=self._fetchers.local_id,
            replica_state=ReplicaState(self._fetchers.local_id, self._fetchers.broker_epoch()),
            max_wait_ms=int(self._seconds_until_next(settings.replica_fetch_wait_max_ms / 1000) * 1000),
            min_bytes=settings.replica_fetch_min_bytes,
            max_bytes=settings.replica_fetch_response_max_bytes,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=list(topics.values()),
            forgotten_topics_data=[ForgottenTopic(topic_id=topic_id, partitions=[n]) for topic_id, n in forgotten],
        )

    def _accept_session(self, response: FetchResponse) -> bool:
        """Note how the session goes on; False if the response has nothing but an error."""
        if response.error_code:
            extra = {"broker": self._broker_id, "error": ErrorCode(response.error_code).name}
            log.info("fetch session begins again", extra=extra)
            if response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._session_id = 0
            self._session_epoch = 0
            return False
        if response.session_id == 0:  # the leader keeps no session: send everything again next time
            self._session_id = self._session_epoch = 0
        else:
            self._session_id = response.session_id
            self._session_epoch = 1 if self._session_epoch == _SESSION_EPOCH_MAX else self._session_epoch + 1
        return True

    def _delay(self, key: Key, followed: _Followed, seconds_max: float = inf) -> None:
        pause = min(seconds_max, self._fetchers.settings.replica_fetch_backoff_ms / 1000)
        followed.retry_at = self._fetchers.clock.monotonic() + pause
        self._delayed[key] = followed
        self._changed.pop(key, None)

    def _delay_throttled(self) -> None:
        """While the quota is used up, fetch no throttled partition, except where this replica is in sync."""
        fetchers = self._fetchers
        seconds = fetchers.quota.seconds_until_room(fetchers.clock.monotonic())
        if seconds == 0:
            return
        for key, followed in self._partitions.items():
            partition = followed.partition
            is_in_sync = followed.is_caught_up or fetchers.local_id in partition.isr
            if partition.follower_quota is not None and not is_in_sync and key not in self._delayed:
                self._delay(key, followed, seconds)

    def _resume_delayed(self) -> None:
        if self._delayed:
            now = self._fetchers.clock.monotonic()
            for key in [key for key, followed in self._delayed.items() if followed.retry_at <= now]:
                self._changed[key] = self._delayed.pop(key)

    def _seconds_until_next(self, seconds_max: float) -> float:
        """How long until a delayed partition may be fetched again, at most `seconds_max`."""
        if not self._delayed:
            return seconds_max
        first = min(followed.retry_at for followed in self._delayed.values())
        return min(seconds_max, max(0.001, first - self._fetchers.clock.monotonic()))

    # -- answers --

    async def _apply(self, response: FetchResponse) -> None:
        lost: dict[Key, _Followed] = {}
        for topic in response.responses:
            for data in topic.partitions:
                key = (topic.topic_id, data.partition_index)
                followed = self._partitions.get(key)
                if followed is None:
                    continue
                try:
                    if self._apply_one(key, followed, data):
                        lost[key] = followed
                except (BrokerError, OSError) as error:
                    self._on_error(key, followed, error)
        if lost:
            await self._find_ranges(lost)

    def _apply_one(self, key: Key, followed: _Followed, data: PartitionData) -> bool:
        """Apply the answer for one partition; returns whether its offset is not in the leader's log."""
        partition = followed.partition
        step = decide(
            followed.fetch,
            _answer(data),
            leader_epoch=partition.leader_epoch,
            epochs=partition.log.epochs,
            end_offset=partition.log.end_offset,
        )
        match step:
            case Append(records, high_watermark, log_start):
                partition.replicate(records, high_watermark=high_watermark, log_start=log_start)
                followed.is_caught_up = high_watermark <= partition.log.end_offset
                if records and partition.follower_quota is not None:
                    partition.follower_quota.record(len(records), self._fetchers.clock.monotonic())
                if records or followed.wanted.log_start_offset != partition.log.start_offset:
                    self._changed[key] = followed
            case Truncate(offset):
                self._truncate(partition, offset)
                self._changed[key] = followed
            case FindRange():
                return True
            case Wait(reason):
                extra = _names(partition) | {"broker": self._broker_id, "error": reason.name}
                log.debug("partition is fetched again later", extra=extra)
                self._delay(key, followed)
            case Ignore():
                self._changed[key] = followed
        return False

    def _truncate(self, partition: Partition, offset: int) -> None:
        if offset < partition.high_watermark:
            extra = _names(partition) | {"offset": offset, "high_watermark": partition.high_watermark}
            log.warning("log truncated below the high watermark", extra=extra)
        partition.truncate(offset)
        self._fetchers.logs.note_truncation(partition.topic, partition.index, partition.log.end_offset)

    def _on_error(self, key: Key, followed: _Followed, error: BrokerError | OSError) -> None:
        partition = followed.partition
        extra = _names(partition) | {"broker": self._broker_id, "reason": str(error)}
        if isinstance(error, OSError) or error.code is ErrorCode.KAFKA_STORAGE_ERROR:
            log.error("replication of a partition stopped", extra=extra)
            self.remove(key)
        else:  # for instance damaged on the way
            log.warning("records of the leader were not appended, retrying", extra=extra)
            self._delay(key, followed)

    async def _find_ranges(self, lost: dict[Key, _Followed]) -> None:
        """For partitions whose offset the leader does not have: continue where its log begins or ends."""
        ends = await self._list_offsets(lost, _LATEST)
        starts = await self._list_offsets(lost, _EARLIEST)
        for key, followed in lost.items():
            partition = followed.partition
            if self._partitions.get(key) is not followed or partition.next_fetch() != followed.fetch:
                continue  # the metadata has changed meanwhile
            start, end, own_end = starts.get(key, -1), ends.get(key, -1), partition.log.end_offset
            try:
                if 0 <= end < own_end:
                    self._truncate(partition, end)
                elif start > own_end:
                    partition.restart_at(start)
                    self._fetchers.logs.note_truncation(partition.topic, partition.index, start)
                else:  # an error, or the leader has the offset by now
                    self._delay(key, followed)
                    continue
            except (BrokerError, OSError) as error:
                self._on_error(key, followed, error)
                continue
            self._changed[key] = followed

    async def _list_offsets(self, wanted: dict[Key, _Followed], timestamp: int) -> dict[Key, int]:
        """The first or last offset of each partition as the leader has it; those with an error are missing."""
        ids = {followed.partition.topic: topic_id for (topic_id, _), followed in wanted.items()}
        topics = {name: list_offsets.ListOffsetsTopic(name) for name in ids}
        for followed in wanted.values():
            partition = followed.partition
            item = list_offsets.ListOffsetsPartition(partition.index, partition.leader_epoch, timestamp)
            topics[partition.topic].partitions.append(item)
        request = list_offsets.ListOffsetsRequest(self._fetchers.local_id, 0, list(topics.values()))
        response = await self._call(request, list_offsets_version(self._fetchers.metadata_version))
        if not isinstance(response, list_offsets.ListOffsetsResponse):
            raise PeerError(f"broker {self._broker_id} answered ListOffsets with {type(response).__name__}")
        return {
            (ids[topic.name], found.partition_index): found.offset
            for topic in response.topics
            for found in topic.partitions
            if not found.error_code and topic.name in ids
        }


def _answer(data: PartitionData) -> LeaderAnswer:
    diverging = data.diverging_epoch
    return LeaderAnswer(
        error=ErrorCode(data.error_code),
        records=b"" if data.records is None else memoryview(data.records),
        high_watermark=data.high_watermark,
        log_start=data.log_start_offset,
        diverging=EpochEnd(diverging.epoch, diverging.end_offset) if diverging.end_offset >= 0 else None,
    )


def _names(partition: Partition) -> dict[str, object]:
    return {"topic": partition.topic, "partition": partition.index}
