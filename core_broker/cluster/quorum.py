"""The metadata log `__cluster_metadata-0` and its quorum, which has one voter: this node.

A change is a batch of records. It is appended and synced to disk, which commits it, and only then becomes visible: the
image is replaced and the listeners are called. Nothing else changes the image, so a restart, which replays the same
records, ends in the same state. Proposals that arrive during a sync share the next one.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from core_broker.cluster import snapshots
from core_broker.cluster.metadata import MetadataDraft, MetadataImage
from core_broker.cluster.metadata_records import decode_record, encode_record
from core_broker.cluster.quorum_state import QuorumStateError, read_quorum_state, write_quorum_state
from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.partition_log import PartitionLog
from core_broker.log.producer_state import Origin
from core_broker.protocol.fields import Message
from core_broker.protocol.primitives import DecodeError
from core_broker.protocol.records import CorruptBatch, Record, build_batch, read_records
from core_broker.protocol.stored.control import LeaderChangeMessage, Voter
from core_broker.protocol.stored.quorum_state import QuorumStateData
from core_broker.service.clock import Clock
from core_broker.service.settings import INT_MAX, LONG_MAX
from core_broker.settings import BrokerSettings, TopicSettings

log = logging.getLogger(__name__)

METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_DIRECTORY: Final = f"{METADATA_TOPIC}-0"

_COMMIT_TIMEOUT_SECONDS: Final = 30.0
_REPLAYED_BYTES_MAX: Final = 256 * 1024
"""A start that replays more than this writes a snapshot, so that the next start is fast."""
_SECOND_COPY_SECONDS_PER_TOPIC: Final = 0.02
"""A large state takes longer to write, so it is written less often."""

MetadataListener = Callable[[MetadataImage, Sequence[Message]], None]


class MetadataLostError(BrokerError):
    """The metadata cannot be restored. The broker must not start: it would remove every partition as a stray."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)


class _Proposal:
    """Records in the log that are not yet known to be on disk, and the future of their commit."""

    __slots__ = ("committed", "first_offset", "last_offset", "records")

    def __init__(
        self, first_offset: int, last_offset: int, records: Sequence[Message], committed: asyncio.Future[int]
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.records = records
        self.committed = committed


class MetadataQuorum:
    """The metadata of the cluster: `image` is the committed state, `append` the only way to change it.

    There is no other replica, so a snapshot follows each change after `second_copy_seconds`: then either the log or the
    newest snapshot may be damaged without loss.
    """

    def __init__(
        self,
        log_dir: Path,
        *,
        cluster_id: str,
        settings: BrokerSettings,
        clock: Clock,
        second_copy_seconds: float = 5.0,
    ) -> None:
        self.directory = log_dir / METADATA_DIRECTORY
        self.node_id = settings.node_id
        self.image = MetadataImage(cluster_id=cluster_id)
        self.leader_epoch = 0
        self._settings = settings
        self._clock = clock
        self._second_copy_seconds = second_copy_seconds
        self._listeners: list[MetadataListener] = []
        self._pending: deque[_Proposal] = deque()
        self._idle_waiters: list[asyncio.Future[None]] = []
        self._is_flushing = False
        self._snapshot_task: asyncio.Future[snapshots.SnapshotId] | None = None
        self._snapshot_timer: asyncio.TimerHandle | None = None
        self._bytes_since_snapshot = 0
        self._failure: str | None = None

    # -- state --

    @property
    def cluster_id(self) -> str:
        """Id of the cluster."""
        return self.image.cluster_id

    @property
    def leader_id(self) -> int:
        """The leader of the quorum."""
        return self.node_id

    @property
    def end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._log.end_offset

    @property
    def high_watermark(self) -> int:
        """The first offset that is not committed."""
        return self._pending[0].first_offset if self._pending else self.end_offset

    @property
    def committed_offset(self) -> int:
        """Offset of the last record contained in the image."""
        return self.image.offset

    def subscribe(self, listener: MetadataListener) -> None:
        """Call `listener(image, records)` after each committed batch; records replayed at start are only in `image`."""
        self._listeners.append(listener)

    # -- start and stop --

    def start(self) -> None:
        """Replay the snapshot and the log, and begin a new leader epoch. Raises MetadataLostError."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.image = snapshots.load_newest(self.directory, self.cluster_id)
        self._log = self._open()
        self._bytes_since_snapshot = self._replay()
        self._lead()
        if self._bytes_since_snapshot > _REPLAYED_BYTES_MAX:
            self._snapshot_now()
        log.info(
            "metadata replayed",
            extra={"offset": self.image.offset, "leader_epoch": self.leader_epoch, "topics": len(self.image.topics)},
        )

    async def close(self) -> None:
        """Wait for pending changes, write a snapshot and close the log."""
        await self.wait_until_idle()
        if self._snapshot_timer is not None:
            self._snapshot_timer.cancel()
        if self._snapshot_task is not None:
            await asyncio.wait([self._snapshot_task], timeout=_COMMIT_TIMEOUT_SECONDS)
        if self._failure is None and self._bytes_since_snapshot:
            self._snapshot_now()
        self._log.close()

    def _open(self) -> PartitionLog:
        settings = TopicSettings(
            segment_bytes=self._settings.metadata_log_segment_bytes,
            segment_ms=self._settings.metadata_log_segment_ms,
            retention_ms=-1,
            retention_bytes=-1,
            max_message_bytes=INT_MAX,
            message_timestamp_after_max_ms=LONG_MAX,
            file_delete_delay_ms=0,
        )
        opened = PartitionLog.open(
            self.directory, topic=METADATA_TOPIC, partition=0, settings=settings, clock=self._clock
        )
        expected = self.image.offset + 1
        if opened.start_offset > expected:
            raise MetadataLostError(
                f"{self.directory} begins at offset {opened.start_offset}, but the newest intact snapshot ends at "
                f"{expected}: restore a .checkpoint file from a backup"
            )
        if opened.end_offset < expected:
            log.error(
                "metadata log ends before its snapshot; continuing from the snapshot",
                extra={"end_offset": opened.end_offset, "snapshot_offset": expected},
            )
            opened.truncate_fully_and_start_at(expected)
        return opened

    def _replay(self) -> int:
        """Replay the log from the image's offset to its end; returns the number of bytes."""
        partition_log = self._log
        draft = MetadataDraft(self.image)
        offset, epoch, size = self.image.offset, self.image.epoch, 0
        for header, batch in partition_log.read_batches(offset + 1, partition_log.end_offset):
            offset, epoch = header.last_offset, header.leader_epoch
            size += header.size
            if header.is_control:
                continue
            try:
                messages = [decode_record(record.value or b"") for record in read_records(batch, header)]
            except (CorruptBatch, DecodeError) as error:
                raise MetadataLostError(
                    f"{self.directory}: records {header.base_offset} to {header.last_offset} cannot be read: {error}"
                ) from error
            draft.replay(message for message in messages if message is not None)
        self.image = draft.finish(offset=offset, epoch=epoch)
        return size

    def _lead(self) -> None:
        """Begin the next epoch: the vote is synced to disk before the first batch of the epoch."""
        try:
            state = read_quorum_state(self.directory)
        except QuorumStateError as error:
            # The only voter can derive the last epoch from its own log.
            log.error("quorum-state file is damaged; taking the epoch from the log", extra={"reason": str(error)})
            state = None
        self.leader_epoch = max(self.image.epoch, state.leader_epoch if state else 0) + 1
        write_quorum_state(
            self.directory, QuorumStateData(leader_id=self.node_id, leader_epoch=self.leader_epoch, voted_id=-1)
        )
        voters = [Voter(voter_id=self.node_id)]
        message = LeaderChangeMessage(leader_id=self.node_id, voters=voters, granting_voters=voters)
        record = snapshots.control_record(snapshots.CONTROL_LEADER_CHANGE, message, version=0, timestamp_ms=self._now())
        partition_log = self._log
        result = partition_log.append(
            build_batch([record], is_control=True), leader_epoch=self.leader_epoch, origin=Origin.COORDINATOR
        )
        partition_log.flush()
        self.image = MetadataDraft(self.image).finish(offset=result.last_offset, epoch=self.leader_epoch)

    # -- changes --

    async def append(self, records: Sequence[Message]) -> int:
        """Commit records as one atomic batch; returns the offset of the first once the image contains them.

        If the caller is cancelled meanwhile, the records are committed all the same.
        """
        if self._failure is not None:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, self._failure)
        now = self._now()
        batch = build_batch([Record(timestamp=now, value=encode_record(record)) for record in records])
        result = self._log.append(batch, leader_epoch=self.leader_epoch, origin=Origin.COORDINATOR)
        self._bytes_since_snapshot += len(batch)
        committed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        proposal = _Proposal(result.first_offset, result.last_offset, records, committed)
        self._pending.append(proposal)
        self._flush_soon()
        try:
            async with asyncio.timeout(_COMMIT_TIMEOUT_SECONDS):
                return await proposal.committed
        except TimeoutError:
            raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, "the metadata log was not synced to disk in time") from None

    async def wait_until_idle(self) -> None:
        """Wait until everything appended so far is in the image."""
        if not self._pending:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle_waiters.append(waiter)
        try:
            async with asyncio.timeout(_COMMIT_TIMEOUT_SECONDS):
                await waiter
        except TimeoutError:
            raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, "the metadata log was not synced to disk in time") from None

    def _flush_soon(self) -> None:
        if self._is_flushing:
            return
        self._is_flushing = True
        partition_log = self._log
        end_offset = partition_log.end_offset
        flush = asyncio.get_running_loop().run_in_executor(None, partition_log.flush)
        flush.add_done_callback(partial(self._on_flushed, end_offset))

    def _on_flushed(self, end_offset: int, flush: asyncio.Future[None]) -> None:
        """Commit everything below `end_offset`: with one voter, what is on its disk is committed."""
        self._is_flushing = False
        if flush.cancelled():
            return
        if (error := flush.exception()) is not None:
            # After a failed sync the state of the disk is unknown: reject every change until a restart re-reads it.
            self._failure = f"the metadata log cannot be written: {error}; fix the disk and restart the broker"
            log.critical("metadata log failed", extra={"reason": str(error)})
            while self._pending:
                proposal = self._pending.popleft()
                if not proposal.committed.done():
                    proposal.committed.set_exception(BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, self._failure))
            self._release_idle_waiters()
            return
        while self._pending and self._pending[0].last_offset < end_offset:
            self._commit(self._pending.popleft())
        if self._pending:
            self._flush_soon()
            return
        self._release_idle_waiters()
        if self._bytes_since_snapshot >= self._settings.metadata_log_max_record_bytes_between_snapshots:
            self._begin_snapshot()
        elif self._bytes_since_snapshot and self._snapshot_timer is None:
            delay = self._second_copy_seconds + _SECOND_COPY_SECONDS_PER_TOPIC * len(self.image.topics)
            self._snapshot_timer = asyncio.get_running_loop().call_later(delay, self._begin_snapshot)

    def _commit(self, proposal: _Proposal) -> None:
        draft = MetadataDraft(self.image)
        draft.replay(proposal.records)
        self.image = draft.finish(offset=proposal.last_offset, epoch=self.leader_epoch)
        failure: Exception | None = None
        for listener in self._listeners:
            try:
                listener(self.image, proposal.records)
            except Exception as error:  # noqa: BLE001 - the other listeners must still be called
                failure = error
        if not proposal.committed.done():
            if failure is None:
                proposal.committed.set_result(proposal.first_offset)
            else:
                proposal.committed.set_exception(failure)
        elif failure is not None:
            log.error("metadata listener failed", exc_info=failure)

    def _release_idle_waiters(self) -> None:
        waiters, self._idle_waiters = self._idle_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    # -- snapshots --

    def _snapshot_now(self) -> None:
        """Write a snapshot at start or stop: the next start has less to replay, and a second copy of the state."""
        self._trim_log(snapshots.write_snapshot(self.directory, self.image, timestamp_ms=self._now()))
        self._bytes_since_snapshot = 0

    def _begin_snapshot(self) -> None:
        """Write a snapshot in a thread; images are immutable, so changes need not wait for it."""
        if self._snapshot_timer is not None:
            self._snapshot_timer.cancel()
            self._snapshot_timer = None
        if self._snapshot_task is not None or not self._bytes_since_snapshot:
            return
        self._bytes_since_snapshot = 0
        write = partial(snapshots.write_snapshot, self.directory, self.image, timestamp_ms=self._now())
        self._snapshot_task = asyncio.get_running_loop().run_in_executor(None, write)
        self._snapshot_task.add_done_callback(self._on_snapshot_done)

    def _on_snapshot_done(self, task: asyncio.Future[snapshots.SnapshotId]) -> None:
        self._snapshot_task = None
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            log.error("metadata snapshot could not be written", extra={"reason": str(error)})
            return
        self._trim_log(task.result())

    def _trim_log(self, snapshot: snapshots.SnapshotId) -> None:
        """Delete what no start needs any more: the log below the older of the two snapshots that are kept."""
        oldest = snapshots.delete_old_snapshots(self.directory)
        partition_log = self._log
        partition_log.roll()
        if oldest > partition_log.start_offset:
            partition_log.delete_records_before(oldest)
            partition_log.delete_old_segments(high_watermark=self.high_watermark)
            partition_log.remove_deleted_files(at_once=True)
        log.info("metadata snapshot written", extra={"snapshot": snapshot.file_name, "log_start_offset": oldest})

    def _now(self) -> int:
        return self._clock.now_ms()
