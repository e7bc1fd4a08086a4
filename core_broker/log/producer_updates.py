"""Applies written batches to the producer state and to the index of aborted transactions.

The leader's append, a follower's append and recovery all use `apply_batch`, so they end in the same state.
"""

import logging

from core_broker.log.producer_state import EndMarker, ProducerStates
from core_broker.log.transaction_index import AbortedTransaction, TransactionIndex
from core_broker.protocol.records import BatchHeader, Buffer, CorruptBatch, read_end_marker, read_records

log = logging.getLogger(__name__)


def apply_batch(
    producers: ProducerStates, header: BatchHeader, buffer: Buffer, aborted: TransactionIndex | None
) -> None:
    """Apply a batch of the log; only for batches with a producer id."""
    if not header.is_control:
        producers.update(header, header.base_offset)
        return
    try:
        marker = end_marker(header, buffer)
    except CorruptBatch as error:
        log.error(
            "unreadable control batch ignored",
            extra={"base_offset": header.base_offset, "producer_id": header.producer_id, "reason": str(error)},
        )
        return
    if marker is None:
        return
    completed = producers.complete_transaction(header, marker, header.base_offset)
    if completed is not None and completed.is_aborted and aborted is not None:
        stable = producers.last_stable_offset_if_completed(completed)
        aborted.append(AbortedTransaction(completed.producer_id, completed.first_offset, completed.last_offset, stable))


def end_marker(header: BatchHeader, buffer: Buffer) -> EndMarker | None:
    """The end marker in a control batch; None for other control batches; raises CorruptBatch."""
    records = read_records(buffer, header)
    if not records:  # compaction keeps an empty batch for the last sequence of its producer
        return None
    marker = read_end_marker(records[0])
    return None if marker is None else EndMarker(*marker)
