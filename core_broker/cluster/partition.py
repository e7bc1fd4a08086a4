"""One partition on this broker: its log and high watermark, as leader or follower, and the requests waiting for either.

With one replica everything appended is committed at once, and nothing here costs more than the append itself. With
several, a `LeaderReplica` keeps account of the followers while this broker leads, and `replicate`, `truncate` and
`restart_at` take over the leader's log while it follows.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from core_broker.cluster.metadata import PartitionImage
from core_broker.cluster.replicas.follower import FollowerFetch, next_fetch
from core_broker.cluster.replicas.leader import RECOVERING, IsrProposal, LeaderReplica
from core_broker.cluster.replicas.membership import NO_EPOCH, Membership
from core_broker.cluster.replicas.throttle import ReplicationQuota, ReplicationThrottles
from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.partition_log import AppendResult, PartitionLog
from core_broker.log.producer_state import Origin, ProducerStates
from core_broker.metrics import TopicTraffic
from core_broker.service.clock import Clock
from core_broker.settings import TopicSettings


class Reader(Protocol):
    """A fetch that is waiting for data."""

    def data_arrived(self, size_bytes: int) -> None:
        """More bytes can be read, or (with size 0) something else about the partition has changed."""


class OffsetWaiters:
    """Requests that wait until an offset is reached."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    async def wait(self, offset: int, *, timeout_ms: int) -> None:
        """Return once `offset` is reached; REQUEST_TIMED_OUT when that takes too long."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (offset, future)
        self._waiting.append(entry)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await future
        except TimeoutError:
            raise BrokerError(ErrorCode.REQUEST_TIMED_OUT) from None
        finally:
            self._waiting.remove(entry)

    def reach(self, offset: int) -> None:
        """Release the requests that wait for `offset` or less."""
        for wanted, future in self._waiting:
            if wanted <= offset and not future.done():
                future.set_result(None)

    def fail(self, code: ErrorCode) -> None:
        """Fail all requests."""
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(BrokerError(code))


class Partition:
    """A partition hosted by this broker. All changes run on the event loop, without awaiting in between."""

    __slots__ = (
        "_commits",
        "_deletions",
        "_lag_seconds",
        "_leading_since",
        "_local_id",
        "_membership",
        "_on_proposal",
        "_throttles",
        "clock",
        "epoch_start",
        "follower_quota",
        "high_watermark",
        "index",
        "is_replicated",
        "is_under_min_isr",
        "isr",
        "leader_epoch",
        "leader_high_watermark",
        "leader_id",
        "leader_quota",
        "log",
        "partition_epoch",
        "readers",
        "replica_readers",
        "replicas",
        "replication",
        "topic",
        "topic_id",
        "traffic",
    )

    def __init__(
        self,
        log: PartitionLog,
        image: PartitionImage,
        *,
        topic_id: bytes,
        local_id: int,
        clock: Clock,
        traffic: TopicTraffic,
        high_watermark: int = 0,
        membership: Membership | None = None,
        lag_seconds: float = 30.0,
        throttles: ReplicationThrottles | None = None,
        on_proposal: "Callable[[Partition], None] | None" = None,
    ) -> None:
        """`high_watermark` is the checkpointed one; `on_proposal` is called when the ISR should change."""
        self.topic = log.topic
        self.index = log.partition
        self.topic_id = topic_id
        self.log = log
        self.clock = clock
        self.traffic = traffic
        self.high_watermark = max(log.start_offset, min(high_watermark, log.end_offset))
        self.readers: set[Reader] = set()
        """Waiting fetches of consumers, which read up to the high watermark."""
        self.replica_readers: set[Reader] = set()
        """Waiting fetches of followers, which read up to the end of the log."""
        self.replication: LeaderReplica | None = None
        """What the leader knows about its followers; None if this broker does not lead. With one replica it is None,
        except after an unclean election, until the controller knows that the leader has recovered."""
        self.leader_quota: ReplicationQuota | None = None
        """The throttle for what this broker sends as leader; None if its replica is not listed."""
        self.follower_quota: ReplicationQuota | None = None
        """The same for what it fetches as follower."""
        self.leader_id = -1
        self.leader_epoch = -1
        self.leader_high_watermark = -1
        """As a follower: the leader's, as of its last answer; -1 before the first."""
        self.partition_epoch = -1
        self.epoch_start = -1
        """The end of the log when this broker became leader in the current epoch."""
        self.is_replicated = True
        self._local_id = local_id
        self._membership = Membership() if membership is None else membership
        self._lag_seconds = lag_seconds
        self._throttles = throttles
        self._on_proposal = on_proposal
        self._leading_since = -1
        self._commits = OffsetWaiters()
        self._deletions = OffsetWaiters()
        self._choose_quotas(log.settings)
        self.update(image)

    # -- metadata ------------------------------------------------------------------------------------------------------

    def update(self, image: PartitionImage) -> None:
        """Apply the metadata log, the only source of leader, epoch, replicas and ISR."""
        is_new_epoch = image.leader_epoch != self.leader_epoch
        if not is_new_epoch and image.partition_epoch < self.partition_epoch:
            return  # the controller's answer to our own proposal was quicker
        was_leader = self.is_leader
        self.replicas = image.replicas
        self.isr = image.isr
        self.leader_id = image.leader_id
        self.leader_epoch = image.leader_epoch
        self.partition_epoch = image.partition_epoch
        self.is_under_min_isr = len(self.isr) < self.min_in_sync_replicas
        if self.is_replicated != (len(self.replicas) > 1):
            self.is_replicated = not self.is_replicated
            self.log.producers.track_replication(self.is_replicated)
        if self.is_leader:
            self._lead(image, is_new_epoch=is_new_epoch, was_leader=was_leader)
        elif was_leader:
            self._stop_leading()
        if is_new_epoch:
            self._wake_all()

    def _lead(self, image: PartitionImage, *, is_new_epoch: bool, was_leader: bool) -> None:
        if not was_leader:
            self._leading_since = self.leader_epoch
        if is_new_epoch or not was_leader:
            self.log.epochs.assign(self.leader_epoch, self.log.end_offset, save=False)
            self.epoch_start = self.log.epochs.start_offset_of(self.leader_epoch)
            self.replication = None
        is_recovering = image.leader_recovery_state == RECOVERING
        if not self.is_replicated and not is_recovering:
            self.replication = None
        elif self.replication is None:
            self.replication = LeaderReplica(
                self._local_id,
                image,
                epoch_start=self.epoch_start,
                high_watermark=self.high_watermark,
                lag_seconds=self._lag_seconds,
                membership=self._membership,
                now=self.clock.monotonic(),
            )
        else:
            self.replication.update(image, self.clock.monotonic())
        self.reconsider()
        if is_recovering:  # a leader without followers gets no fetch that would lead to a proposal
            self.check_isr()

    def _stop_leading(self) -> None:
        """Fail the requests that wait: whether their records survive is for the next leader to say."""
        self.replication = None
        self._commits.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._deletions.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._wake_all()

    def retire(self) -> None:
        """The partition was removed from this broker: stop appends and fail the requests that wait."""
        self.leader_id = -1
        self._stop_leading()

    def configure(self, settings: TopicSettings) -> None:
        """Apply new topic settings; a lower min.insync.replicas commits the records that waited for it."""
        self.log.configure(settings)
        self._choose_quotas(settings)
        self.is_under_min_isr = len(self.isr) < self.min_in_sync_replicas
        self.reconsider()

    def _choose_quotas(self, settings: TopicSettings) -> None:
        if self._throttles is not None:
            self.leader_quota = self._throttles.of_leader(settings, self.index, self._local_id)
            self.follower_quota = self._throttles.of_follower(settings, self.index, self._local_id)

    def reconsider(self) -> None:
        """Raise the high and low watermark as far as possible, after something about the replicas has changed."""
        if self._advance_high_watermark():
            self._wake_readers()
        if self._deletions:
            self._deletions.reach(self.low_watermark)

    # -- state ---------------------------------------------------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        """Whether this broker may append, and serve consumers."""
        return self.leader_id == self._local_id

    @property
    def last_stable_offset(self) -> int:
        """The end for read-committed consumers: the start of the oldest open transaction, or the high watermark."""
        producers = self.log.producers
        if self.is_replicated:
            unstable = producers.first_unstable_offset_below(self.high_watermark)
        else:
            unstable = producers.first_unstable_offset
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    @property
    def low_watermark(self) -> int:
        """The lowest log start of the live replicas."""
        start = self.log.start_offset
        return start if self.replication is None else self.replication.low_watermark(start)

    @property
    def min_in_sync_replicas(self) -> int:
        """How many in-sync replicas an `acks=all` write needs; never more than there are replicas."""
        return min(self.log.settings.min_insync_replicas, len(self.replicas))

    @property
    def must_flush(self) -> bool:
        """Whether `flush.messages` requires a sync to disk before the producer gets its response."""
        log = self.log
        return log.end_offset - log.recovery_point >= log.settings.flush_messages

    @property
    def producers(self) -> ProducerStates:
        """The idempotent and transactional producers of the log."""
        return self.log.producers

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch of the log up to `epoch`, and where it ends; -1 and -1 if unknown (KIP-279)."""
        return self.log.epochs.end_offset_for(epoch, self.log.end_offset)

    def epoch_for_offset(self, offset: int) -> int:
        """The leader epoch in which the record at `offset` was written."""
        return self.log.epochs.epoch_for_offset(offset)

    def check_leader_epoch(self, epoch: int) -> None:
        """Reject a client whose leader epoch is older or newer than ours (KIP-320)."""
        if epoch in (-1, self.leader_epoch):
            return
        if epoch < self.leader_epoch:
            raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH)
        raise BrokerError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    # -- as leader -----------------------------------------------------------------------------------------------------

    def append(
        self,
        buffer: memoryview | bytearray,
        *,
        acks_all: bool,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> AppendResult:
        """Append batches, assign their offsets and wake readers. See `is_committed` for `acks=all`.

        `transaction_version` matters to markers only: from 2 on they must have a newer epoch than the records.
        """
        if self.leader_id != self._local_id:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if acks_all and self.is_under_min_isr:
            counts = f"{len(self.isr)} in-sync replicas; {self.min_in_sync_replicas} are required"
            raise BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS, f"{self.topic}-{self.index} has {counts}")
        result = self.log.append(
            buffer, leader_epoch=self.leader_epoch, origin=origin, transaction_version=transaction_version
        )
        if result.duplicate:
            return result
        traffic = self.traffic
        traffic.messages_in += result.last_offset - result.first_offset + 1
        traffic.bytes_in += len(buffer)
        if self.replication is None:
            self.high_watermark = result.last_offset + 1
            if self.readers:
                for reader in tuple(self.readers):
                    reader.data_arrived(len(buffer))
            return result
        for reader in tuple(self.replica_readers):
            reader.data_arrived(len(buffer))
        if self._advance_high_watermark():
            self._wake_readers()
        return result

    def is_committed(self, offset: int) -> bool:
        """Whether every in-sync replica has the record at `offset`."""
        return offset < self.high_watermark

    async def wait_committed(self, offset: int, *, timeout_ms: int, leader_epoch: int | None = None) -> None:
        """Return once `offset` is committed; REQUEST_TIMED_OUT when that takes too long.

        NOT_LEADER_OR_FOLLOWER when this broker loses the leadership, or has lost it since `leader_epoch`, the epoch of
        the append: then another record may have that offset.
        """
        if not self.is_leader or (leader_epoch is not None and leader_epoch < self._leading_since):
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if not self.is_committed(offset):
            await self._commits.wait(offset, timeout_ms=timeout_ms)

    def check_min_isr_after_append(self) -> None:
        """Warn a producer whose records are committed, but on fewer replicas than it asked for."""
        if self.is_under_min_isr:
            raise BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

    def follower_fetched(self, follower: int, offset: int, *, log_start: int, broker_epoch: int) -> None:
        """A follower has everything below `offset`; the caller has checked that its log agrees with ours.

        NOT_LEADER_OR_FOLLOWER for a fetch of an earlier incarnation of the broker (KIP-903).
        """
        replication = self.replication
        if replication is None or NO_EPOCH != broker_epoch < self._membership.epoch_of(follower):
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        now = self.clock.monotonic()
        replication.on_fetch(
            follower,
            offset,
            log_start=log_start,
            broker_epoch=broker_epoch,
            end_offset=self.log.end_offset,
            now=now,
        )
        self.reconsider()
        if follower not in replication.isr:
            self.check_isr()

    def follower_is_idle(self, follower: int, broker_epoch: int) -> bool:
        """Note another fetch of an in-sync follower that has everything; False if `follower_fetched` has to decide."""
        replication = self.replication
        return replication is not None and replication.on_idle_fetch(
            follower, broker_epoch=broker_epoch, end_offset=self.log.end_offset, now=self.clock.monotonic()
        )

    def check_isr(self) -> None:
        """Propose a change of the ISR if replicas have caught up or fallen behind."""
        replication = self.replication
        if replication is None or replication.propose(self.log.end_offset, self.clock.monotonic()) is None:
            return
        if self._on_proposal is not None:
            self._on_proposal(self)

    def isr_answered(self, proposal: IsrProposal, error: ErrorCode, image: PartitionImage | None) -> None:
        """The controller's answer to a proposal: the partition as it is now, or an error."""
        replication = self.replication
        if replication is None:
            return
        replication.on_answer(proposal, error, image)
        self.isr, self.partition_epoch = replication.isr, replication.partition_epoch
        self.is_under_min_isr = len(self.isr) < self.min_in_sync_replicas
        self.reconsider()
        if not error:
            self.check_isr()

    def delete_records_before(self, offset: int) -> int:
        """Move the log's start up, as DeleteRecords asks; returns the new start."""
        target = self.high_watermark if offset == -1 else offset
        if not 0 <= target <= self.high_watermark:
            raise BrokerError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {target} of {self.topic}-{self.index} is not between 0 and {self.high_watermark}",
            )
        self.log.delete_records_before(target)
        return self.log.start_offset

    async def wait_deleted(self, offset: int, *, timeout_ms: int) -> int:
        """Return the low watermark once all live replicas have deleted what is before `offset`."""
        if self.low_watermark < offset:
            await self._deletions.wait(offset, timeout_ms=timeout_ms)
        return self.low_watermark

    def _advance_high_watermark(self) -> bool:
        """As leader, raise the high watermark to what is committed; whether it rose."""
        end = self.log.end_offset
        if self.replication is not None:
            required = self.log.settings.min_insync_replicas
            if not self.replication.advance(end, min_in_sync=required, now=self.clock.monotonic()):
                return False
            self.high_watermark = self.replication.high_watermark
        elif self.is_leader and end > self.high_watermark:
            self.high_watermark = end
        else:
            return False
        if self._commits:
            self._commits.reach(self.high_watermark - 1)
        return True

    # -- as follower ---------------------------------------------------------------------------------------------------

    def next_fetch(self) -> FollowerFetch:
        """The fetch that continues the log."""
        return next_fetch(self.leader_epoch, self.log.epochs, self.log.end_offset)

    def replicate(self, records: memoryview | bytes, *, high_watermark: int, log_start: int) -> None:
        """Append the leader's batches, and take over its high watermark and log start; raises BrokerError.

        The high watermark never goes back for a leader that does not know yet how much was committed before.
        """
        log = self.log
        self.leader_high_watermark = high_watermark
        if records:
            log.append_as_follower(records, leader_epoch=self.leader_epoch, may_begin_earlier=True)
            self.traffic.replication_bytes_in += len(records)
        committed = min(high_watermark, log.end_offset)
        has_advanced = committed > self.high_watermark
        if has_advanced:
            self.high_watermark = committed
        if log_start > log.start_offset:
            log.delete_records_before(min(log_start, self.high_watermark))
        if has_advanced and self.readers:
            self._wake_readers()

    def truncate(self, offset: int) -> None:
        """Remove what another leader never had, even if it was committed once (after an unclean election)."""
        self.log.truncate_to(offset)
        self.high_watermark = min(self.high_watermark, self.log.end_offset)

    def restart_at(self, offset: int) -> None:
        """Remove everything; the leader no longer has any of it."""
        self.log.truncate_fully_and_start_at(offset)
        self.high_watermark = offset

    # -- readers -------------------------------------------------------------------------------------------------------

    def _wake_readers(self) -> None:
        for reader in tuple(self.readers):
            reader.data_arrived(0)

    def _wake_all(self) -> None:
        self._wake_readers()
        for reader in tuple(self.replica_readers):
            reader.data_arrived(0)
