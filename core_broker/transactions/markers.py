"""Writes the markers of a prepared transaction to all its partitions, with retries until each has it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import msgspec

from core_broker.errors import BrokerError, ErrorCode
from core_broker.transactions.transaction import TopicPartition, Transaction, TransactionState

log = logging.getLogger(__name__)


class MarkerRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a marker, the same for all partitions of a transaction."""

    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    transaction_version: int
    """From version 2 the epoch was bumped since the records were written, and partitions check that."""


WriteMarker = Callable[[str, int, MarkerRequest], Awaitable[ErrorCode]]
"""Writes the marker to one partition, on any broker; returns once it is committed."""

Sleep = Callable[[float], Awaitable[object]]

BACKOFF_FIRST_SECONDS: Final = 0.02
BACKOFF_LAST_SECONDS: Final = 1.0

_DONE: Final = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,  # the topic was deleted meanwhile, and the records with it
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,  # records so old that they cannot be transactional
        # No producer gets an epoch above the marker's before the transaction is complete: so the marker was written
        # already, before a crash or by an earlier coordinator.
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)


class MarkerWriter:
    """Writes markers, and retries until all are written."""

    def __init__(self, write_marker: WriteMarker, *, sleep: Sleep) -> None:
        self._write_marker = write_marker
        self._sleep = sleep

    async def write(
        self, transaction: Transaction, *, coordinator_epoch: int, is_still_coordinator: Callable[[], bool]
    ) -> bool:
        """Write the markers of a prepared transaction; False if another coordinator has taken over."""
        marker = marker_of(transaction, coordinator_epoch)
        missing = sorted(transaction.partitions)
        backoff = BACKOFF_FIRST_SECONDS
        while missing:
            errors = await self._write_round(missing, marker)
            if not is_still_coordinator() or ErrorCode.TRANSACTION_COORDINATOR_FENCED in errors:
                return False
            failed = [(*at, error) for at, error in zip(missing, errors, strict=True) if error not in _DONE]
            missing = [(topic, partition) for topic, partition, _ in failed]
            if missing:
                topic, partition, error = failed[0]
                log.warning(
                    "transaction markers could not be written, retrying",
                    extra={
                        "transactional_id": transaction.transactional_id,
                        "partitions_missing": len(failed),
                        "topic": topic,
                        "partition": partition,
                        "error": error.name,
                    },
                )
                await self._sleep(backoff)
                backoff = min(backoff * 2, BACKOFF_LAST_SECONDS)
        return is_still_coordinator()

    async def _write_round(self, partitions: Iterable[TopicPartition], marker: MarkerRequest) -> list[ErrorCode]:
        """Write concurrently: a partition without a leader must not delay the others."""
        writes = [self._write_one(topic, partition, marker) for topic, partition in partitions]
        if len(writes) == 1:
            return [await writes[0]]
        return await asyncio.gather(*writes)

    async def _write_one(self, topic: str, partition: int, marker: MarkerRequest) -> ErrorCode:
        try:
            return await self._write_marker(topic, partition, marker)
        except BrokerError as error:
            return error.code
        except Exception:
            # The transaction is decided: giving up after an unexpected error would leave it open forever.
            log.exception("transaction marker failed", extra={"topic": topic, "partition": partition})
            return ErrorCode.UNKNOWN_SERVER_ERROR


def marker_of(transaction: Transaction, coordinator_epoch: int) -> MarkerRequest:
    """The marker that ends a prepared transaction."""
    return MarkerRequest(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        commit=transaction.state is TransactionState.PREPARE_COMMIT,
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction.client_version,
    )
