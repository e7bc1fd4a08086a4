"""The state of a partition's idempotent and transactional producers.

For each producer id the partition keeps the epoch and the last five batches, so it can answer a retried batch with its
original offset, reject a gap, and fence an older epoch. It also knows the open transactions, hence the last stable
offset. Nothing here does I/O except `snapshot` and `restore`, whose file format is in `producer_snapshot`.

The leader's append, a follower's append and the replay after a restart all use `update` and `complete_transaction`, so
the state is the same everywhere. Only `check` and `check_marker` reject anything.
"""

from collections import deque
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path

import msgspec

from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.producer_snapshot import (
    NO_EPOCH,
    NO_OFFSET,
    NO_SEQUENCE,
    SnapshotEntry,
    newest_valid_snapshot,
    write_snapshot,
)
from core_broker.protocol.records import BatchHeader
from core_broker.service.clock import Clock

RETAINED_BATCHES = 5
"""How many batches can be recognised as duplicates; the reason why clients allow at most five in flight."""

MAX_SEQUENCE = 2**31 - 1
_SEQUENCE_COUNT = 2**31
_TRANSACTIONAL_BIT = 0x10
_TRANSACTION_V2 = 2


class Origin(IntEnum):
    """The source of a batch, which determines the checks."""

    CLIENT = 0
    """A producer: sequence and epoch are checked."""
    COORDINATOR = 1
    """A coordinator of this broker: only the epoch is checked."""
    REPLICATION = 2
    """The leader of this partition, which has checked it already."""


class DuplicateBatch(msgspec.Struct, frozen=True, gc=False):
    """A batch that was written before: a retry gets the result of the first attempt."""

    first_offset: int
    last_offset: int
    timestamp: int


class EndMarker(msgspec.Struct, frozen=True, gc=False):
    """The content of a transaction marker: how the transaction ended, and the epoch of its coordinator."""

    commit: bool
    coordinator_epoch: int


class CompletedTransaction(msgspec.Struct, frozen=True, gc=False):
    """A transaction with records here that has just ended; `last_offset` is that of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class ActiveProducer(msgspec.Struct, frozen=True, gc=False):
    """One producer, for DescribeProducers."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int


class VerificationGuard:
    """Held by a produce request while the coordinator verifies that the partition belongs to the transaction."""

    __slots__ = ("since_ms",)

    def __init__(self, since_ms: int) -> None:
        self.since_ms = since_ms


_Span = tuple[int, int, int, int, int]
"""A recent batch: first sequence, last sequence, first offset, last offset, timestamp."""


class _Producer:
    """The state of one producer id; changed in place by each batch, so it is a plain slotted object."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "next_sequence",
        "transaction_first_offset",
        "wrote_since_sweep",
    )

    def __init__(self) -> None:
        self.epoch = NO_EPOCH
        self.next_sequence = 0
        self.batches: list[_Span] = []
        self.last_timestamp = -1
        self.coordinator_epoch = -1
        self.transaction_first_offset = NO_OFFSET
        self.wrote_since_sweep = True

    def begin_epoch(self, epoch: int) -> None:
        """Drop the batches of another epoch: sequences restart at zero."""
        self.batches.clear()
        self.epoch = epoch
        self.next_sequence = 0

    @property
    def last_sequence(self) -> int:
        return self.batches[-1][1] if self.batches else NO_SEQUENCE


class ProducerStates:
    """All producers of one partition."""

    __slots__ = (
        "_clock",
        "_open",
        "_producers",
        "_unreplicated",
        "_verifying",
        "expiration_ms",
        "tracks_replication",
    )

    def __init__(self, clock: Clock, expiration_ms: int, *, tracks_replication: bool = True) -> None:
        self._clock = clock
        self.expiration_ms = expiration_ms
        """producer.id.expiration.ms, which may change while the broker runs."""
        self.tracks_replication = tracks_replication
        """Whether to remember transactions that ended above the high watermark, which a single replica never needs."""
        self._producers: dict[int, _Producer] = {}
        # Transactions begin at rising offsets, so insertion order is offset order and the first one is the oldest.
        self._open: dict[int, int] = {}
        self._unreplicated: deque[CompletedTransaction] = deque()
        self._verifying: dict[int, VerificationGuard] = {}

    def __len__(self) -> int:
        return len(self._producers)

    # -- checks: called before a batch is written, change nothing --------------------------------------------------

    def check(self, header: BatchHeader, *, origin: Origin, needs_known_start: bool = False) -> DuplicateBatch | None:
        """Reject a data batch that does not continue from the state, or recognise one written before.

        `needs_known_start` is set for transaction V2 clients (KIP-890): a new producer must begin with sequence 0.
        """
        producer = self._producers.get(header.producer_id)
        if producer is None:
            if needs_known_start and header.base_sequence != 0 and origin is Origin.CLIENT:
                raise _out_of_order(header, "0, since the producer is new to this partition")
            return None
        if header.base_sequence == producer.next_sequence and header.producer_epoch == producer.epoch:
            _check_in_transaction(header, producer)
            return None
        return self._check_unusual(header, producer, origin)

    def _check_unusual(self, header: BatchHeader, producer: _Producer, origin: Origin) -> DuplicateBatch | None:
        """Anything but the expected next batch: a retry, a new epoch, a gap, a zombie, or a batch without sequences."""
        if origin is Origin.CLIENT and (duplicate := _find_duplicate(header, producer)) is not None:
            return duplicate
        if origin is not Origin.REPLICATION and header.producer_epoch < producer.epoch:
            raise _stale_epoch(header, producer, "less than")
        if origin is Origin.CLIENT:
            _check_sequence(header, producer)
        _check_in_transaction(header, producer)
        return None

    def check_marker(
        self, header: BatchHeader, marker: EndMarker, *, origin: Origin, transaction_version: int = 0
    ) -> None:
        """Reject a marker of an older producer epoch, or of a coordinator that has been replaced.

        With transaction V2 the coordinator bumps the epoch before it writes markers (KIP-890), so the epoch of a marker
        must be greater than that of the records: an equal one is a late marker of an earlier transaction.
        """
        producer = self._producers.get(header.producer_id)
        if producer is None or origin is Origin.REPLICATION:
            return
        if header.producer_epoch < producer.epoch:
            raise _stale_epoch(header, producer, "less than")
        if transaction_version >= _TRANSACTION_V2 and header.producer_epoch == producer.epoch:
            raise _stale_epoch(header, producer, "not greater than")
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise BrokerError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"the marker of producer {header.producer_id} has coordinator epoch {marker.coordinator_epoch}, "
                f"but this partition has one of epoch {producer.coordinator_epoch} already",
            )

    # -- changes: called after a batch was written, and at replay; reject nothing ----------------------------------

    def update(self, header: BatchHeader, base_offset: int) -> None:
        """Record a data batch that was written at `base_offset`."""
        producer_id = header.producer_id
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = _Producer()
        if header.producer_epoch != producer.epoch:
            producer.begin_epoch(header.producer_epoch)
        first_sequence = last_sequence = header.base_sequence
        last_offset = base_offset + header.last_offset_delta
        if first_sequence >= 0:
            last_sequence = (first_sequence + header.last_offset_delta) % _SEQUENCE_COUNT
        producer.next_sequence = (last_sequence + 1) % _SEQUENCE_COUNT
        timestamp = producer.last_timestamp = header.max_timestamp
        batches = producer.batches
        batches.append((first_sequence, last_sequence, base_offset, last_offset, timestamp))
        if len(batches) > RETAINED_BATCHES:
            del batches[0]
        producer.wrote_since_sweep = True
        if header.attributes & _TRANSACTIONAL_BIT and producer.transaction_first_offset < 0:
            producer.transaction_first_offset = base_offset
            self._open[producer_id] = base_offset
            self._verifying.pop(producer_id, None)

    def complete_transaction(self, header: BatchHeader, marker: EndMarker, offset: int) -> CompletedTransaction | None:
        """Apply a marker written at `offset`; None if the transaction had no records in this partition."""
        producer_id = header.producer_id
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = _Producer()
        if header.producer_epoch != producer.epoch:
            producer.begin_epoch(header.producer_epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        producer.wrote_since_sweep = True
        self._verifying.pop(producer_id, None)
        first_offset = producer.transaction_first_offset
        if first_offset < 0:
            return None
        producer.transaction_first_offset = NO_OFFSET
        self._open.pop(producer_id, None)
        completed = CompletedTransaction(producer_id, first_offset, offset, not marker.commit)
        if self.tracks_replication:
            self._unreplicated.append(completed)
        return completed

    # -- the last stable offset --------------------------------------------------------------------------------------

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset of the oldest open transaction."""
        return next(iter(self._open.values())) if self._open else None

    def first_unstable_offset_below(self, high_watermark: int) -> int | None:
        """As `first_unstable_offset`, but a transaction whose marker is not yet replicated still counts as open.

        For partitions with followers; requires `tracks_replication`. Transactions that ended below the high watermark
        are dropped here, so the high watermark must not go back.
        """
        waiting = self._unreplicated
        if waiting:
            still = deque(ended for ended in waiting if ended.last_offset >= high_watermark)
            self._unreplicated = waiting = still
        oldest = min((ended.first_offset for ended in waiting), default=None)
        opened = self.first_unstable_offset
        if oldest is None or opened is None:
            return opened if oldest is None else oldest
        return min(oldest, opened)

    def track_replication(self, is_replicated: bool) -> None:
        """Begin or stop to remember transactions that ended above the high watermark."""
        self.tracks_replication = is_replicated
        if not is_replicated:
            self._unreplicated.clear()

    def last_stable_offset_if_completed(self, completed: CompletedTransaction) -> int:
        """The last stable offset once `completed` has ended; stored with an abort in the .txnindex."""
        for producer_id, first_offset in self._open.items():
            if producer_id != completed.producer_id:
                return first_offset
        return completed.last_offset + 1

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int | None = None) -> bool:
        """Whether the producer (with this epoch, if given) has an open transaction with records here."""
        producer = self._producers.get(producer_id)
        if producer is None or producer.transaction_first_offset < 0:
            return False
        return producer_epoch is None or producer.epoch == producer_epoch

    # -- verification of new transactions (KIP-890 part 1) ---------------------------------------------------------

    def begin_verification(self, producer_id: int) -> VerificationGuard:
        """A guard to hold during verification; a marker written in the meantime invalidates it."""
        guard = self._verifying.get(producer_id)
        if guard is None:
            guard = self._verifying[producer_id] = VerificationGuard(self._clock.now_ms())
        return guard

    def is_verified(self, producer_id: int, guard: VerificationGuard) -> bool:
        """Whether a verification done under `guard` is still valid."""
        return self._verifying.get(producer_id) is guard or self.has_ongoing_transaction(producer_id)

    # -- description, expiry, snapshots ----------------------------------------------------------------------------

    def active_producers(self) -> Iterator[ActiveProducer]:
        """Every known producer, for DescribeProducers."""
        for producer_id, producer in self._producers.items():
            yield ActiveProducer(
                producer_id,
                producer.epoch,
                producer.last_sequence,
                producer.last_timestamp,
                producer.coordinator_epoch,
                producer.transaction_first_offset,
            )

    def last_data_offsets(self) -> dict[int, int]:
        """Producer id → offset of its last record: compaction keeps these batches for their sequence numbers."""
        return {
            producer_id: producer.batches[-1][3]
            for producer_id, producer in self._producers.items()
            if producer.batches
        }

    def remove_expired(self, now_ms: int) -> int:
        """Remove producers idle for longer than producer.id.expiration.ms; returns how many.

        As in Kafka, idle time is measured by the timestamps of the batches; but a producer that wrote since the last
        sweep is kept even if its timestamps are old, or its retries would no longer be recognised.
        """
        limit = now_ms - self.expiration_ms
        expired = []
        for producer_id, producer in self._producers.items():
            if producer.wrote_since_sweep:
                producer.wrote_since_sweep = False
            elif producer.last_timestamp <= limit and producer.transaction_first_offset < 0:
                expired.append(producer_id)
        for producer_id in expired:
            del self._producers[producer_id]
        self._verifying = {key: guard for key, guard in self._verifying.items() if guard.since_ms > limit}
        return len(expired)

    def clear(self) -> None:
        """Remove all state, as for a log that is truncated completely."""
        self._producers.clear()
        self._open.clear()
        self._unreplicated.clear()
        self._verifying.clear()

    def snapshot(self, directory: Path, offset: int, *, sync: bool = False) -> Path:
        """Write the state as of `offset` (the next offset of the log) to `<offset>.snapshot`."""
        return write_snapshot(directory, offset, list(self._snapshot_entries()), sync=sync)

    def _snapshot_entries(self) -> Iterator[SnapshotEntry]:
        for producer_id, producer in self._producers.items():
            _, last, first_offset, last_offset, _ = producer.batches[-1] if producer.batches else _NO_BATCH
            yield SnapshotEntry(
                producer_id=producer_id,
                epoch=producer.epoch,
                last_sequence=last,
                last_offset=last_offset,
                offset_delta=last_offset - first_offset,
                timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                transaction_first_offset=producer.transaction_first_offset,
            )

    @classmethod
    def restore(
        cls, directory: Path, end_offset: int, *, clock: Clock, expiration_ms: int, tracks_replication: bool = True
    ) -> "tuple[ProducerStates, int]":
        """The state of the newest valid snapshot at or below `end_offset`, and its offset (0 if there is none).

        The caller replays the batches from that offset. Snapshots above `end_offset` and corrupt ones are deleted.
        """
        states = cls(clock, expiration_ms, tracks_replication=tracks_replication)
        offset, entries = newest_valid_snapshot(directory, end_offset)
        limit = clock.now_ms() - expiration_ms
        for entry in sorted(entries, key=lambda entry: entry.transaction_first_offset):
            if entry.timestamp > limit or entry.transaction_first_offset >= 0:
                producer = states._producers[entry.producer_id] = _Producer()
                producer.epoch = entry.epoch
                producer.coordinator_epoch = entry.coordinator_epoch
                producer.last_timestamp = entry.timestamp
                producer.wrote_since_sweep = False
                if entry.last_offset >= 0:
                    last = entry.last_sequence
                    first = NO_SEQUENCE if last < 0 else (last - entry.offset_delta) % _SEQUENCE_COUNT
                    first_offset = entry.last_offset - entry.offset_delta
                    producer.batches.append((first, last, first_offset, entry.last_offset, entry.timestamp))
                    producer.next_sequence = (last + 1) % _SEQUENCE_COUNT
                if entry.transaction_first_offset >= 0:
                    producer.transaction_first_offset = entry.transaction_first_offset
                    states._open[entry.producer_id] = entry.transaction_first_offset
        return states, offset


_NO_BATCH: _Span = (NO_SEQUENCE, NO_SEQUENCE, NO_OFFSET, NO_OFFSET, -1)


def _find_duplicate(header: BatchHeader, producer: _Producer) -> DuplicateBatch | None:
    if header.producer_epoch != producer.epoch:
        return None
    first_sequence, last_sequence = header.base_sequence, header.last_sequence
    for first, last, first_offset, last_offset, timestamp in producer.batches:
        if first == first_sequence and last == last_sequence:
            return DuplicateBatch(first_offset, last_offset, timestamp)
    return None


def _check_sequence(header: BatchHeader, producer: _Producer) -> None:
    """A new epoch begins at 0; within an epoch each batch begins where the last one ended."""
    if header.producer_epoch != producer.epoch:
        if header.base_sequence != 0:
            raise _out_of_order(header, f"0, the first of a new epoch (the previous epoch was {producer.epoch})")
    elif header.base_sequence != producer.next_sequence:
        raise _out_of_order(header, str(producer.next_sequence))


def _check_in_transaction(header: BatchHeader, producer: _Producer) -> None:
    if producer.transaction_first_offset >= 0 and not header.attributes & _TRANSACTIONAL_BIT:
        raise BrokerError(
            ErrorCode.INVALID_TXN_STATE,
            f"producer {header.producer_id} has had an open transaction here since offset "
            f"{producer.transaction_first_offset}; batches outside of it are not allowed",
        )


def _out_of_order(header: BatchHeader, expected: str) -> BrokerError:
    return BrokerError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"the batch of producer {header.producer_id} (epoch {header.producer_epoch}) begins with sequence "
        f"{header.base_sequence}; expected {expected}",
    )


def _stale_epoch(header: BatchHeader, producer: _Producer, comparison: str) -> BrokerError:
    return BrokerError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"epoch {header.producer_epoch} of producer {header.producer_id} is {comparison} "
        f"the last seen epoch {producer.epoch}",
    )
