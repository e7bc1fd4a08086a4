"""Fetch, key 1, versions 4-18.

Supported: long polling (`min_bytes`, `max_wait_ms`), fetch sessions (KIP-227), `read_committed` with the list of
aborted transactions, limits for the response and for each partition (the first batch is always complete, KIP-74),
leader epochs (KIP-320), detection of diverging logs (KIP-595). Followers read up to the end of the log, and their
fetches say how far they are; those outside the ISR get no data of a throttled partition while the quota is used up
(KIP-73). Consumers read up to the high watermark, also from followers, and the leader sends them to one in their rack
if replica.selector.class asks for that (KIP-392). A consumer over its quota gets an empty response, and the records
later (KIP-219). With the error that another broker leads, the response names it (KIP-951).
Ignored: replica directories, and the follower's high watermark (both concern the metadata log only).

Versions: 5 log start offset; 7 sessions; 9 leader epoch; 11 rack; 12 flexible, last fetched epoch; 13 topic ids
(KIP-516); 15 replica state as a tag; 16 node endpoints (KIP-951); 17 directory id; 18 follower's high watermark.
"""

import asyncio
from typing import Final

from core_broker.cluster.partition import Partition, Reader
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import Predicate, Purpose, may_use_cluster, may_use_topics
from core_broker.handlers.context import RequestContext
from core_broker.handlers.current_leader import LEADER_CHANGED, encode_endpoints, find_leader
from core_broker.handlers.fetch_response import Chunk, FetchResponse, ReadResult
from core_broker.handlers.fetch_sessions import FetchEntry, FetchSession
from core_broker.handlers.usage import RequestUsage
from core_broker.log.segment_chain import LogSlice
from core_broker.metrics import TopicTraffic
from core_broker.protocol.fields import decode
from core_broker.protocol.messages.fetch import FetchRequest

_READ_COMMITTED: Final = 1
_RACK_SINCE: Final = 11
_TOPIC_IDS_SINCE: Final = 13
_REPLICA_STATE_SINCE: Final = 15
_CURRENT_LEADER_SINCE: Final = 16
_NO_EPOCH: Final = -1


def handle(frame: memoryview, body: int, context: RequestContext) -> list[Chunk] | asyncio.Future[list[Chunk]]:
    """Answer at once if there is enough data or nothing to wait for; otherwise return a future."""
    request = decode(FetchRequest, context.api_version, frame, body)
    replica = request.replica_id if context.api_version < _REPLICA_STATE_SINCE else request.replica_state.replica_id
    may_read = None if context.authorizer is None else _permission(context, is_replica=replica >= 0)
    try:
        session, entries, is_incremental = context.services.fetch_sessions.resolve(
            request, context.api_version, is_follower=replica >= 0 and may_read is None
        )
    except BrokerError as error:
        return FetchResponse(context.api_version, context.correlation_id).build([], 0, error.code)
    fetch = _Fetch(request, context, session=session, entries=entries, is_incremental=is_incremental, replica=replica)
    fetch.may_read = may_read
    fetch.read()
    if fetch.is_satisfied or request.max_wait_ms <= 0:
        return fetch.answer()
    return fetch.wait()


def _permission(context: RequestContext, *, is_replica: bool) -> Predicate | None:
    """Which topics the client may read; None if it may read all of them."""
    if not is_replica:
        return may_use_topics(context)
    return None if may_use_cluster(context, Purpose.REPLICATE) else _nothing


def _nothing(_topic: str) -> bool:
    return False


class _Fetch:
    """One fetch from request to response; while it waits, it is registered with its partitions as a reader."""

    __slots__ = (
        "_bytes_max",
        "_bytes_missing",
        "_context",
        "_entries",
        "_follower",
        "_future",
        "_has_news",
        "_is_first_read",
        "_is_incremental",
        "_is_scheduled",
        "_partitions",
        "_rack",
        "_request",
        "_results",
        "_session",
        "_size",
        "_timer",
        "_watched",
        "may_read",
    )

    def __init__(
        self,
        request: FetchRequest,
        context: RequestContext,
        *,
        session: FetchSession | None,
        entries: list[FetchEntry],
        is_incremental: bool,
        replica: int,
    ) -> None:
        self._request = request
        self._context = context
        self._session = session
        self._entries = entries
        self._is_incremental = is_incremental
        self._follower: int | None = replica if replica >= 0 else None
        self._rack = request.rack_id if context.services.partitions.reads_from_nearest else ""
        self._bytes_max = request.max_bytes
        if self._follower is None:
            self._bytes_max = min(request.max_bytes, context.services.settings.fetch_max_bytes)
        if context.usage is not None:
            self._keep_within_quota(context.usage)
        self._results: list[ReadResult] = []
        self._partitions: list[Partition] = []
        self._size = 0
        self._has_news = False
        """Whether something must be answered at once: an error, a divergence, a better replica."""
        self._is_first_read = True
        self._is_scheduled = False
        self.may_read: Predicate | None = None
        """Which topics the client may read; None for all. Decided once: a fetch that waits keeps what it had."""

    def _keep_within_quota(self, usage: RequestUsage) -> None:
        """Wait for no more, and read no more, than the client's quota allows in a window: it would all be thrown away.

        Followers have no such quota.
        """
        if self._follower is not None:
            usage.exempt()
            return
        self._bytes_max = min(self._bytes_max, usage.fetch_bytes_max)
        self._request.min_bytes = min(self._request.min_bytes, self._bytes_max)

    @property
    def is_satisfied(self) -> bool:
        """Whether the response can be sent now."""
        return self._size >= self._request.min_bytes or self._has_news or not self._entries

    def read(self) -> None:
        """Read every partition once."""
        self._results = []
        self._partitions = []
        self._size = 0
        self._has_news = False
        for entry in self._entries:
            if entry.followed is not None and self.may_read is None and self._is_idle(entry, entry.followed):
                self._partitions.append(entry.followed)
                continue
            result = self._read_partition(entry)
            self._results.append(result)
            if result.data is not None:
                self._size += result.data.length
            elif result.error or result.diverging is not None or result.preferred_read_replica >= 0:
                self._has_news = True
        self._is_first_read = False

    def _is_idle(self, entry: FetchEntry, partition: Partition) -> bool:
        """Whether a follower has and knows all of a partition: so it is with most partitions, most of the time."""
        log = partition.log
        return (
            entry.fetch_offset == log.end_offset
            and entry.leader_epoch == partition.leader_epoch
            and entry.sent_high_watermark == partition.high_watermark
            and entry.sent_start_offset == log.start_offset
            and not entry.sent_error
            and self._follower is not None
            and (
                not self._is_first_read
                or partition.follower_is_idle(self._follower, self._request.replica_state.replica_epoch)
            )
        )

    def _read_partition(self, entry: FetchEntry) -> ReadResult:
        topic: str | None = entry.topic
        try:
            if self._context.api_version >= _TOPIC_IDS_SINCE:
                topic = self._context.services.partitions.topic_name(entry.topic_id)
            if topic is None:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)
            if self.may_read is not None and not self.may_read(topic):
                raise BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            if self._follower is not None:
                return self._read_for_follower(self._follower, topic, entry)
            return self._read_for_consumer(topic, entry)
        except BrokerError as error:
            result = ReadResult(entry, error.code)
            if error.code in LEADER_CHANGED and topic and self._context.api_version >= _CURRENT_LEADER_SINCE:
                result.leader = find_leader(self._context, topic, entry.partition)
            return result

    def _read_for_consumer(self, topic: str, entry: FetchEntry) -> ReadResult:
        """What is committed. Consumers that know about racks may also read from a follower."""
        partition = self._context.services.partitions.get_in_epoch(
            topic, entry.partition, entry.leader_epoch, from_leader=self._context.api_version < _RACK_SINCE
        )
        self._partitions.append(partition)
        log = partition.log
        stable = partition.last_stable_offset
        result = ReadResult(
            entry, ErrorCode.NONE, partition.high_watermark, stable, log.start_offset, traffic=partition.traffic
        )
        offset = entry.fetch_offset
        if self._rack and partition.replication is not None:
            now = self._context.services.clock.monotonic()
            nearest = partition.replication.nearest_to(self._rack, offset, now)
            if nearest is not None:
                result.preferred_read_replica = nearest
                return result
        if entry.last_fetched_epoch >= 0 and _diverges(partition, entry, result):
            return result
        committed = self._request.isolation_level == _READ_COMMITTED
        upper = stable if committed else partition.high_watermark
        if committed:
            result.aborted = []
        if log.start_offset <= offset and upper <= offset <= log.end_offset:
            return result
        bytes_left = self._bytes_max - self._size
        data = log.read(offset, min(entry.max_bytes, bytes_left), upper_offset=upper, at_least_one=self._size == 0)
        result.data = data
        if data is not None and committed:
            result.aborted = log.aborted_transactions(offset, data.next_offset)
        return result

    def _read_for_follower(self, follower: int, topic: str, entry: FetchEntry) -> ReadResult:
        """What the log has, committed or not. The fetch counts as progress only if the logs agree (KAFKA-13141)."""
        partitions = self._context.services.partitions
        hosted = partitions.find(topic, entry.partition)
        if hosted is not None and follower not in hosted.replicas:
            # Not a replica, or not yet: our metadata may be older than the follower's.
            is_newer = entry.leader_epoch != _NO_EPOCH
            raise BrokerError(ErrorCode.UNKNOWN_LEADER_EPOCH if is_newer else ErrorCode.NOT_LEADER_OR_FOLLOWER)
        partition = partitions.get_in_epoch(topic, entry.partition, entry.leader_epoch)
        self._partitions.append(partition)
        log = partition.log
        result = ReadResult(entry, traffic=partition.traffic)
        if entry.last_fetched_epoch >= 0:
            _diverges(partition, entry, result)
        if result.diverging is None:
            log.check_offset(entry.fetch_offset)
            if self._is_first_read:
                partition.follower_fetched(
                    follower,
                    entry.fetch_offset,
                    log_start=entry.log_start,
                    broker_epoch=self._request.replica_state.replica_epoch,
                )
            quota = result.quota = partition.leader_quota
            if quota is None or follower in partition.isr or not quota.is_used_up(partition.clock.monotonic()):
                result.data = log.read(
                    entry.fetch_offset,
                    min(entry.max_bytes, self._bytes_max - self._size),
                    upper_offset=log.end_offset,
                    at_least_one=self._size == 0,
                )
        result.high_watermark = partition.high_watermark
        result.last_stable_offset = partition.last_stable_offset
        result.start_offset = log.start_offset
        entry.followed = partition if result.data is None and result.diverging is None else None
        return result

    def answer(self) -> list[Chunk]:
        """The response for the results of the last read."""
        session = self._session
        results = self._results
        if session is not None and self._is_incremental:
            results = [result for result in results if result.has_changed]
        chunks = self._encode(results)
        usage = self._context.usage
        if usage is not None and self._follower is None:
            throttle_ms, is_sent = usage.charge_fetch(sum(map(_size_of, chunks)))
            if not is_sent:
                return self._answer_throttled(throttle_ms)
            if throttle_ms:
                chunks = self._encode(results, throttle_ms)
        if session is not None:
            _note_sent(session, results)
        for result in results:
            traffic = result.traffic
            if traffic is None:
                self._count_failure(result)
            elif self._follower is None:
                traffic.fetch_requests += 1
                traffic.bytes_out += 0 if result.data is None else result.data.length
            elif result.data is not None:
                self._count_replicated(result, traffic, result.data.length)
        return chunks

    def _encode(self, results: list[ReadResult], throttle_ms: int = 0) -> list[Chunk]:
        response = FetchResponse(self._context.api_version, self._context.correlation_id)
        session_id = 0 if self._session is None else self._session.session_id
        if not self._has_news:
            return response.build(results, session_id, throttle_ms=throttle_ms)
        leaders = [result.leader[0] for result in results if result.leader is not None]
        endpoints = encode_endpoints(leaders, self._context)
        return response.build(results, session_id, endpoints=endpoints, throttle_ms=throttle_ms)

    def _answer_throttled(self, throttle_ms: int) -> list[Chunk]:
        """An empty response, as if nothing had been read. A session that it would have begun does not exist."""
        session_id = 0
        if self._session is not None and self._is_incremental:
            session_id = self._session.session_id
        elif self._session is not None:
            self._context.services.fetch_sessions.remove(self._session)
        response = FetchResponse(self._context.api_version, self._context.correlation_id)
        return response.build([], session_id, throttle_ms=throttle_ms)

    def _count_replicated(self, result: ReadResult, traffic: TopicTraffic, size_bytes: int) -> None:
        traffic.replication_bytes_out += size_bytes
        if result.quota is not None:
            result.quota.record(size_bytes, self._context.services.clock.monotonic())

    def _count_failure(self, result: ReadResult) -> None:
        if self._follower is None:
            services, entry = self._context.services, result.entry
            services.metrics.topic_failed_fetch(entry.topic or services.partitions.topic_name(entry.topic_id) or "")

    def wait(self) -> asyncio.Future[list[Chunk]]:
        """Wait for data in every partition, until there is enough to read or the time is up."""
        loop = asyncio.get_running_loop()
        self._future: asyncio.Future[list[Chunk]] = loop.create_future()
        self._bytes_missing = self._request.min_bytes - self._size
        self._timer = loop.call_later(self._request.max_wait_ms / 1000, self._finish)
        self._watched = self._partitions
        for partition in self._watched:
            self._readers_of(partition).add(self)
        self._future.add_done_callback(self._stop_watching)
        return self._future

    def data_arrived(self, size_bytes: int) -> None:
        """Called by a partition; reads again, once per round of the loop, if there may be enough."""
        self._bytes_missing -= size_bytes
        if not self._is_scheduled and (size_bytes == 0 or self._bytes_missing <= 0):
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._read_again)

    def _read_again(self) -> None:
        self._is_scheduled = False
        if self._future.done():
            return
        self._continue_to_measure()
        self.read()
        if self.is_satisfied:
            self._future.set_result(self.answer())
        else:  # The new data is not readable yet, for instance because a transaction is still open.
            self._bytes_missing = self._request.min_bytes - self._size
            if self._context.usage is not None:
                self._context.usage.stopwatch.pause()

    def _finish(self) -> None:
        if not self._future.done():
            self._continue_to_measure()
            self.read()
            self._future.set_result(self.answer())

    def _continue_to_measure(self) -> None:
        if self._context.usage is not None:
            self._context.usage.stopwatch.resume()

    def _stop_watching(self, _: asyncio.Future[list[Chunk]]) -> None:
        self._timer.cancel()
        for partition in self._watched:
            self._readers_of(partition).discard(self)

    def _readers_of(self, partition: Partition) -> set[Reader]:
        return partition.readers if self._follower is None else partition.replica_readers


def _note_sent(session: FetchSession, results: list[ReadResult]) -> None:
    """Remember what the reader knows now, so that its next response has only changes."""
    for result in results:
        entry = result.entry
        entry.sent_error = result.error != ErrorCode.NONE
        # A follower that has to truncate takes over nothing else from the same answer.
        entry.sent_high_watermark = -2 if result.diverging is not None else result.high_watermark
        entry.sent_start_offset = result.start_offset
        if result.data is not None:
            session.move_to_end(entry)


def _size_of(chunk: Chunk) -> int:
    return chunk.length if isinstance(chunk, LogSlice) else len(chunk)


def _diverges(partition: Partition, entry: FetchEntry, result: ReadResult) -> bool:
    """Note where a reader that followed another leader diverges from our log.

    A missing offset is the more important news (KAFKA-12996): there may be no epochs left to compare.
    """
    epoch, end_offset = partition.end_offset_for_epoch(entry.last_fetched_epoch)
    if epoch < 0 or entry.fetch_offset < partition.log.start_offset:
        raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch == entry.last_fetched_epoch and end_offset >= entry.fetch_offset:
        return False
    result.diverging = (epoch, end_offset)
    return True
