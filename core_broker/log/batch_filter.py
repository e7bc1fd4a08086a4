"""What compaction keeps of a batch: decided batch by batch, without any I/O.

Rules (KIP-534 for the delete horizon): a record stays if it is the newest of its key or lies above what was read into
the map; a tombstone that is the newest of its key is stamped with a delete horizon the first time it is seen and goes
once that time has passed; a transaction marker does the same, but only once no record of its transaction is left;
records of aborted transactions go at once. Offsets never change, and an emptied batch stays where it carries the last
sequence of a living producer or the last offset of the round.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from core_broker.log.key_offsets import KeyOffsets
from core_broker.log.producer_state import ActiveProducer
from core_broker.log.transaction_index import AbortedTransaction
from core_broker.protocol.records import (
    CODEC_MASK,
    CONTROL_ABORT,
    CONTROL_COMMIT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_BYTES,
    LENGTH_BYTES,
    NO_TIMESTAMP,
    BatchHeader,
    Record,
    build_batch,
    control_type,
    write_crc,
)


class TransactionsPassed:
    """Which transactions a walk through the log is inside of, so that aborted records and spent markers are known.

    Feed it every batch in offset order, and the aborted transactions of the range before their first offset comes by.
    """

    def __init__(self) -> None:
        self._coming: deque[AbortedTransaction] = deque()
        self._aborting: dict[int, AbortedTransaction] = {}
        self._seen_data: set[int] = set()
        self.still_aborted: list[AbortedTransaction] = []
        """Aborted transactions whose records were met: their index entries must be kept."""

    def add_aborted(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Announce aborted transactions; each segment may announce those that span several again."""
        known = {*self._coming, *aborted}.difference(self._aborting.values())
        self._coming = deque(sorted(known, key=lambda entry: (entry.first_offset, entry.last_offset)))

    def passes_data(self, header: BatchHeader) -> bool:
        """Walk past a data batch; True when its records were aborted."""
        self._enter_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        producer_id = header.producer_id
        self._seen_data.add(producer_id)
        aborted = self._aborting.get(producer_id)
        if aborted is not None and aborted.last_offset < header.base_offset:
            # Its marker could not be read: what comes after it is another transaction.
            del self._aborting[producer_id]
            return False
        return aborted is not None

    def passes_marker(self, header: BatchHeader, kind: int) -> bool:
        """Walk past a control batch; True when nothing of its transaction is left, so that it may go too."""
        self._enter_up_to(header.last_offset)
        if kind not in (CONTROL_ABORT, CONTROL_COMMIT):
            return False
        has_data = header.producer_id in self._seen_data
        self._seen_data.discard(header.producer_id)
        if kind == CONTROL_ABORT:
            aborted = self._aborting.pop(header.producer_id, None)
            if aborted is not None and has_data:
                self.still_aborted.append(aborted)
        return not has_data

    def take_still_aborted(self) -> list[AbortedTransaction]:
        """The entries gathered since the last call, for the index of the segment just written."""
        taken, self.still_aborted = self.still_aborted, []
        return taken

    def _enter_up_to(self, offset: int) -> None:
        coming = self._coming
        while coming and coming[0].first_offset <= offset:
            aborted = coming.popleft()
            self._aborting[aborted.producer_id] = aborted


class Verdict(Enum):
    """What becomes of a batch."""

    KEEP = "as it is"
    REWRITE = "with fewer records, or a new delete horizon"
    DROP = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningRound:
    """What holds for a whole cleaning round."""

    keys: KeyOffsets
    last_offset: int
    """Of the last batch of the round: it stays even without records, so that the log's end is not forgotten."""
    now_ms: int
    delete_retention_ms: int
    producers: Mapping[int, ActiveProducer]
    last_data_offsets: Mapping[int, int]

    def holds_last_of_producer(self, header: BatchHeader) -> bool:
        """Whether the batch is what a restart learns the producer's last sequence, or else its epoch, from."""
        producer = self.producers.get(header.producer_id)
        if producer is None:
            return False
        last_offset = self.last_data_offsets.get(header.producer_id)
        if last_offset is not None:
            return header.last_offset == last_offset
        return header.is_control and header.producer_epoch == producer.producer_epoch

    def keeps_empty(self, header: BatchHeader) -> bool:
        """Whether the batch must stay even without records."""
        is_last = header.last_offset == self.last_offset
        return is_last or (header.producer_id >= 0 and self.holds_last_of_producer(header))

    @property
    def horizon_ms(self) -> int:
        """When what is marked for deletion in this round may go."""
        return self.now_ms + self.delete_retention_ms

    def horizon_passed(self, header: BatchHeader) -> bool:
        """Whether the batch's delete horizon is set and over."""
        return header.has_delete_horizon and header.base_timestamp <= self.now_ms


def filter_batch(
    header: BatchHeader, records: list[Record], cleaning: CleaningRound, transactions: TransactionsPassed
) -> tuple[Verdict, bytearray | None]:
    """Decide about one batch whose records were read; the new bytes come with REWRITE."""
    if header.is_control:
        return _filter_marker(header, records, cleaning, transactions)
    if transactions.passes_data(header):
        # Also above the part read: nothing aborted is left in a cleaned segment, so its transaction index may be lost.
        return _emptied(header, cleaning)
    if header.base_offset >= cleaning.keys.end_offset:
        return Verdict.KEEP, None
    kept = _kept_records(header, records, cleaning)
    if not kept:
        return _emptied(header, cleaning)
    needs_horizon = not header.has_delete_horizon and any(record.value is None for record in kept)
    if len(kept) == len(records) and not needs_horizon:
        return Verdict.KEEP, None
    horizon_ms = cleaning.horizon_ms if needs_horizon else None
    return Verdict.REWRITE, rebuild_batch(header, kept, delete_horizon_ms=horizon_ms)


def _filter_marker(
    header: BatchHeader, records: list[Record], cleaning: CleaningRound, transactions: TransactionsPassed
) -> tuple[Verdict, bytearray | None]:
    """A marker goes in two steps once its transaction has no records left; one that must stay stays whole.

    Kafka empties a marker it must keep; whole, it still tells a restart the epoch of its producer.
    """
    if not records:
        return (Verdict.KEEP if cleaning.keeps_empty(header) else Verdict.DROP), None
    is_spent = transactions.passes_marker(header, control_type(records[0]))
    if not is_spent or header.base_offset >= cleaning.keys.end_offset:
        return Verdict.KEEP, None
    if not header.has_delete_horizon:
        return Verdict.REWRITE, rebuild_batch(header, records, delete_horizon_ms=cleaning.horizon_ms)
    if cleaning.horizon_passed(header) and not cleaning.keeps_empty(header):
        return Verdict.DROP, None
    return Verdict.KEEP, None


def _kept_records(header: BatchHeader, records: list[Record], cleaning: CleaningRound) -> list[Record]:
    end_offset = cleaning.keys.end_offset
    newest = cleaning.keys.newest
    tombstones_go = cleaning.horizon_passed(header)
    kept = []
    for record in records:
        if record.offset < end_offset:
            # A record without a key cannot be compacted; such records are refused at the door of a compacted topic.
            if record.key is None or newest(record.key) > record.offset:
                continue
            if record.value is None and tombstones_go:
                continue
        kept.append(record)
    return kept


def _emptied(header: BatchHeader, cleaning: CleaningRound) -> tuple[Verdict, bytearray | None]:
    if not cleaning.keeps_empty(header):
        return Verdict.DROP, None
    if header.record_count == 0:
        return Verdict.KEEP, None
    return Verdict.REWRITE, empty_batch(header)


def rebuild_batch(header: BatchHeader, records: list[Record], *, delete_horizon_ms: int | None) -> bytearray:
    """The batch with these records only: same offsets, sequences, codec and kind; a horizon once set stays."""
    if delete_horizon_ms is None and header.has_delete_horizon:
        delete_horizon_ms = header.base_timestamp
    return build_batch(
        records,
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        leader_epoch=header.leader_epoch,
        codec=header.codec,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
        delete_horizon_ms=delete_horizon_ms,
        append_time_ms=header.max_timestamp if header.uses_log_append_time else None,
    )


def empty_batch(header: BatchHeader) -> bytearray:
    """The batch with no records: only offsets, sequences and producer are left."""
    batch = bytearray(HEADER_BYTES)
    attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT)
    # fmt: off
    HEADER.pack_into(batch, 0, header.base_offset, HEADER_BYTES - LENGTH_BYTES, header.leader_epoch, header.magic, 0,
                     attributes, header.last_offset_delta, NO_TIMESTAMP, header.max_timestamp, header.producer_id,
                     header.producer_epoch, header.base_sequence, 0)
    # fmt: on
    write_crc(batch)
    return batch
