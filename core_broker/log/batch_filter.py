"""Decides what compaction keeps of a batch, without any I/O.

Rules (KIP-534 for the delete horizon): a record is kept if it is the newest of its key or above the range read into the
map; a tombstone that is the newest of its key gets a delete horizon the first time it is seen, and is removed once that
time has passed; so is a transaction marker, but only once no record of its transaction is left; records of aborted
transactions are removed at once. Offsets never change, and an empty batch is kept if it has the last sequence of an
active producer or the last offset of the round.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from core_broker.log.key_offsets import KeyOffsets
from core_broker.log.producer_state import ActiveProducer
from core_broker.log.record_scan import records_section, scan_records
from core_broker.log.transaction_index import AbortedTransaction
from core_broker.protocol.compression import compress
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
    CorruptBatch,
    Record,
    build_batch,
    control_type,
    iterate_records,
    write_crc,
)

REBUILT_RECORDS_MAX = 500_000
"""A batch with more records is kept unchanged: decoding it would take too much memory."""

_Bounds = tuple[int, int, int, int, bytes | None, bool]
"""A `RecordBounds` as a plain tuple: start, end, offset delta, timestamp delta, key, is tombstone."""


class TransactionTracker:
    """Tracks the transactions at a position of the log, to find aborted records and obsolete markers.

    Pass it every batch in offset order, and aborted transactions before the batch with their first offset.
    """

    def __init__(self) -> None:
        self._coming: deque[AbortedTransaction] = deque()
        self._aborting: dict[int, AbortedTransaction] = {}
        self._seen_data: set[int] = set()
        self.still_aborted: list[AbortedTransaction] = []
        """Aborted transactions with records: their index entries must be kept."""

    def add_aborted(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Add aborted transactions; those that span several segments may be added repeatedly."""
        known = {*self._coming, *aborted}.difference(self._aborting.values())
        self._coming = deque(sorted(known, key=lambda entry: (entry.first_offset, entry.last_offset)))

    def is_aborted_data(self, header: BatchHeader) -> bool:
        """Advance past a data batch; True if its records were aborted."""
        self._enter_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        producer_id = header.producer_id
        self._seen_data.add(producer_id)
        aborted = self._aborting.get(producer_id)
        if aborted is not None and aborted.last_offset < header.base_offset:
            # Its marker could not be read: the batch belongs to a later transaction.
            del self._aborting[producer_id]
            return False
        return aborted is not None

    def is_obsolete_marker(self, header: BatchHeader, kind: int) -> bool:
        """Advance past a control batch; True if no record of its transaction is left, so that it may be removed."""
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
        """The entries collected since the last call, for the index of the segment just written."""
        taken, self.still_aborted = self.still_aborted, []
        return taken

    def _enter_up_to(self, offset: int) -> None:
        coming = self._coming
        while coming and coming[0].first_offset <= offset:
            aborted = coming.popleft()
            self._aborting[aborted.producer_id] = aborted


class Verdict(Enum):
    """What to do with a batch."""

    KEEP = "keep it unchanged"
    REWRITE = "keep fewer records, or set the delete horizon"
    DROP = "remove it"


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningRound:
    """The parameters of a cleaning round."""

    keys: KeyOffsets
    last_offset: int
    """Of the last batch of the round, which is kept even without records, so that the end of the log is preserved."""
    now_ms: int
    delete_retention_ms: int
    producers: Mapping[int, ActiveProducer]
    last_data_offsets: Mapping[int, int]

    def holds_last_of_producer(self, header: BatchHeader) -> bool:
        """Whether a restart needs the batch for the producer's last sequence, or else its epoch."""
        producer = self.producers.get(header.producer_id)
        if producer is None:
            return False
        last_offset = self.last_data_offsets.get(header.producer_id)
        if last_offset is not None:
            return header.last_offset == last_offset
        return header.is_control and header.producer_epoch == producer.producer_epoch

    def keeps_empty(self, header: BatchHeader) -> bool:
        """Whether the batch must be kept even without records."""
        is_last = header.last_offset == self.last_offset
        return is_last or (header.producer_id >= 0 and self.holds_last_of_producer(header))

    @property
    def horizon_ms(self) -> int:
        """When records marked for deletion in this round may be removed."""
        return self.now_ms + self.delete_retention_ms

    def horizon_passed(self, header: BatchHeader) -> bool:
        """Whether the batch's delete horizon is set and has passed."""
        return header.has_delete_horizon and header.base_timestamp <= self.now_ms


def filter_batch(
    header: BatchHeader, batch: memoryview, cleaning: CleaningRound, transactions: TransactionTracker
) -> tuple[Verdict, bytearray | None]:
    """Decide about one batch; REWRITE comes with the new bytes. Raises CorruptBatch if it cannot be read."""
    if header.record_count > REBUILT_RECORDS_MAX:
        raise CorruptBatch(f"the batch has {header.record_count} records, too many to rebuild it")
    section = records_section(batch, header)
    places = list(scan_records(section, header))
    if header.is_control:
        return _filter_marker(header, batch, places, cleaning, transactions)
    if transactions.is_aborted_data(header):
        # Also above the range read: a cleaned segment has no aborted records, so its transaction index may be lost.
        return _filter_empty(header, cleaning)
    if header.base_offset >= cleaning.keys.end_offset:
        return Verdict.KEEP, None
    kept = _kept_places(header, places, cleaning)
    if not kept:
        return _filter_empty(header, cleaning)
    if not header.has_delete_horizon and any(place[5] for place in kept):
        offsets = {header.base_offset + place[2] for place in kept}
        records = [record for record in iterate_records(batch, header) if record.offset in offsets]
        return Verdict.REWRITE, stamp_horizon(header, records, cleaning.horizon_ms)
    if len(kept) == len(places):
        return Verdict.KEEP, None
    return Verdict.REWRITE, _shrunk_batch(header, section, kept)


def _filter_marker(
    header: BatchHeader,
    batch: memoryview,
    places: list[_Bounds],
    cleaning: CleaningRound,
    transactions: TransactionTracker,
) -> tuple[Verdict, bytearray | None]:
    """A marker is removed in two steps once its transaction has no records left; one that must stay is unchanged.

    Kafka empties a marker that it must keep; unchanged, it still tells a restart the epoch of its producer.
    """
    if not places:
        return (Verdict.KEEP if cleaning.keeps_empty(header) else Verdict.DROP), None
    is_obsolete = transactions.is_obsolete_marker(header, control_type(Record(key=places[0][4])))
    if not is_obsolete or header.base_offset >= cleaning.keys.end_offset:
        return Verdict.KEEP, None
    if not header.has_delete_horizon:
        return Verdict.REWRITE, stamp_horizon(header, list(iterate_records(batch, header)), cleaning.horizon_ms)
    if cleaning.horizon_passed(header) and not cleaning.keeps_empty(header):
        return Verdict.DROP, None
    return Verdict.KEEP, None


def _kept_places(header: BatchHeader, places: list[_Bounds], cleaning: CleaningRound) -> list[_Bounds]:
    base_offset, end_offset = header.base_offset, cleaning.keys.end_offset
    newest = cleaning.keys.newest
    tombstones_go = cleaning.horizon_passed(header)
    kept = []
    for place in places:
        offset, key = base_offset + place[2], place[4]
        if offset < end_offset:
            # A record without a key cannot be compacted; a compacted topic rejects such records when they are produced.
            if key is None or newest(key) > offset:
                continue
            if place[5] and tombstones_go:
                continue
        kept.append(place)
    return kept


def _filter_empty(header: BatchHeader, cleaning: CleaningRound) -> tuple[Verdict, bytearray | None]:
    if not cleaning.keeps_empty(header):
        return Verdict.DROP, None
    if header.record_count == 0:
        return Verdict.KEEP, None
    return Verdict.REWRITE, empty_batch(header)


def stamp_horizon(header: BatchHeader, records: list[Record], delete_horizon_ms: int) -> bytearray:
    """The batch with these records and a delete horizon; records are encoded anew, as timestamps are relative to it."""
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


def _shrunk_batch(header: BatchHeader, section: bytes, kept: list[_Bounds]) -> bytearray:
    """The batch with some of its records, byte for byte; offsets, sequences, codec and attributes are unchanged."""
    records = b"".join([section[place[0] : place[1]] for place in kept])
    max_timestamp = header.max_timestamp
    if not header.uses_log_append_time:
        max_timestamp = header.base_timestamp + max(place[3] for place in kept)
    return _batch(
        header,
        compress(header.codec, records) if header.attributes & CODEC_MASK else records,
        attributes=header.attributes,
        base_timestamp=header.base_timestamp,
        max_timestamp=max_timestamp,
        record_count=len(kept),
    )


def empty_batch(header: BatchHeader) -> bytearray:
    """The batch without records: only offsets, sequences and producer are left."""
    return _batch(
        header,
        b"",
        attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT),
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=header.max_timestamp,
        record_count=0,
    )


def _batch(
    header: BatchHeader,
    section: bytes,
    *,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
    record_count: int,
) -> bytearray:
    """A batch that replaces the one of `header`."""
    batch = bytearray(HEADER_BYTES)
    batch += section
    # fmt: off
    HEADER.pack_into(batch, 0, header.base_offset, len(batch) - LENGTH_BYTES, header.leader_epoch, header.magic, 0,
                     attributes, header.last_offset_delta, base_timestamp, max_timestamp, header.producer_id,
                     header.producer_epoch, header.base_sequence, record_count)
    # fmt: on
    write_crc(batch)
    return batch
