"""The partitions of `__transaction_state` that this broker leads, and their transactional ids.

The state of an id changes in three steps: it is marked as changing, the record is appended, and once that is committed
the new state takes effect. Nothing else may change it meanwhile.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Final

from core_broker.cluster.coordinators import TRANSACTIONS_TOPIC, partition_for
from core_broker.cluster.led_partition import LedPartition
from core_broker.cluster.partition import Partition
from core_broker.cluster.partitions import Partitions
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.primitives import DecodeError
from core_broker.protocol.records import BatchHeader, CorruptBatch, Record, build_batch, iterate_records
from core_broker.transactions.records import read_record, record_of, tombstone_of
from core_broker.transactions.transaction import Transaction, TransactionState

log = logging.getLogger(__name__)

APPEND_TIMEOUT_MS: Final = 5000


class OwnedPartition:
    """A partition whose transactional ids this broker coordinates, during one leader epoch."""

    __slots__ = ("entries", "index", "is_loading", "leader_epoch", "led")

    def __init__(self, index: int, leader_epoch: int, partition: Partition) -> None:
        self.index = index
        self.leader_epoch = leader_epoch
        self.led = LedPartition(partition, leader_epoch)
        self.entries: dict[str, Entry] = {}
        self.is_loading = not self.led.is_empty

    @property
    def is_owned(self) -> bool:
        """Whether this broker is still the coordinator, in the same epoch."""
        return self.led.is_current


class Entry:
    """A transactional id in memory: its current state and its pending state."""

    __slots__ = ("completed", "current", "owner", "pending")

    def __init__(self, current: Transaction, owner: OwnedPartition) -> None:
        self.current = current
        self.owner = owner
        self.pending: TransactionState | None = None
        self.completed: asyncio.Event | None = None
        """Set when the markers of a prepared transaction are written; None if none is prepared."""

    @property
    def is_changing(self) -> bool:
        """Whether a change was decided and is not committed yet."""
        return self.pending is not None


class StateLog:
    """All transactional ids this broker coordinates, in memory and in `__transaction_state`."""

    def __init__(
        self,
        partitions: Partitions,
        *,
        partition_count: Callable[[], int],
        transaction_version: Callable[[], int],
    ) -> None:
        self._partitions = partitions
        self._partition_count = partition_count
        self._transaction_version = transaction_version
        self._owned: dict[int, OwnedPartition] = {}
        self.by_id: dict[str, Entry] = {}
        """Every loaded transactional id, without looking up its partition first."""

    # -- leadership ----------------------------------------------------------------------------------------------------

    def own(self, index: int, leader_epoch: int) -> OwnedPartition | None:
        """Take over a partition, which must then be loaded; None if it is already owned in this epoch."""
        known = self._owned.get(index)
        if known is not None and known.leader_epoch >= leader_epoch:
            return None
        self.release(index)
        owned = OwnedPartition(index, leader_epoch, self._partitions.get(TRANSACTIONS_TOPIC, index))
        self._owned[index] = owned
        return owned

    async def load(self, owned: OwnedPartition) -> None:
        """Load an owned partition; requests for it are rejected until then.

        Raises NOT_LEADER_OR_FOLLOWER if another broker takes over meanwhile. Only committed records count: a decision
        that can still be lost must not be carried out.
        """
        transactions: dict[str, Transaction] = {}
        async for header, buffer in owned.led.committed_batches():
            if not header.is_control:
                _replay(owned, header, buffer, transactions)
        for transactional_id, transaction in transactions.items():
            self._add(owned, transactional_id, Entry(transaction, owned))
        owned.is_loading = False

    def release(self, index: int) -> None:
        """Drop a partition that another broker leads now."""
        owned = self._owned.pop(index, None)
        if owned is None:
            return
        owned.led.release()
        for transactional_id in owned.entries:
            self.by_id.pop(transactional_id, None)

    def _add(self, owned: OwnedPartition, transactional_id: str, entry: Entry) -> None:
        owned.entries[transactional_id] = entry
        self.by_id[transactional_id] = entry

    # -- finding -------------------------------------------------------------------------------------------------------

    def partition_of(self, transactional_id: str) -> int:
        """The partition that stores a transactional id."""
        return partition_for(transactional_id, self._partition_count())

    def find(self, transactional_id: str) -> Entry | None:
        """The entry of a transactional id, None if it is new; raises BrokerError if another broker coordinates it."""
        entry = self.by_id.get(transactional_id)
        if entry is None:
            self._owner_of(transactional_id)
        return entry

    def create(self, transaction: Transaction) -> Entry:
        """Add a new transactional id, or return it if it was added meanwhile; it is not stored yet."""
        entry = self.find(transaction.transactional_id)
        if entry is None:
            owned = self._owner_of(transaction.transactional_id)
            entry = Entry(transaction, owned)
            self._add(owned, transaction.transactional_id, entry)
        return entry

    def entries(self) -> Iterator[Entry]:
        """Every loaded transactional id."""
        return iter(self.by_id.values())

    @property
    def is_any_loading(self) -> bool:
        """Whether a list of all transactions would be incomplete."""
        return any(owned.is_loading for owned in self._owned.values())

    def _owner_of(self, transactional_id: str) -> OwnedPartition:
        index = self.partition_of(transactional_id)
        owned = self._owned.get(index)
        if owned is None:
            raise BrokerError(
                ErrorCode.NOT_COORDINATOR,
                f"this broker does not lead {TRANSACTIONS_TOPIC}-{index}, which stores {transactional_id}",
            )
        if owned.is_loading:
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{TRANSACTIONS_TOPIC}-{index} is being loaded")
        return owned

    # -- changing ------------------------------------------------------------------------------------------------------

    async def store(self, entry: Entry, changed: Transaction) -> None:
        """Set the state of an entry once it is committed; raises BrokerError and keeps the old state if that fails."""
        record = record_of(changed, transaction_version=self._transaction_version())
        await self._append(entry, changed.state, record)
        entry.current = changed

    async def forget(self, entry: Entry, *, now_ms: int) -> None:
        """Remove a transactional id from the log and from memory."""
        transactional_id = entry.current.transactional_id
        await self._append(entry, TransactionState.DEAD, tombstone_of(transactional_id, timestamp_ms=now_ms))
        self.discard(entry)

    def discard(self, entry: Entry) -> None:
        """Drop an entry from memory that was never stored, or no longer is."""
        transactional_id = entry.current.transactional_id
        entry.owner.entries.pop(transactional_id, None)
        if self.by_id.get(transactional_id) is entry:
            del self.by_id[transactional_id]

    async def _append(self, entry: Entry, pending: TransactionState, record: Record) -> None:
        owner = entry.owner
        # The entry may have been dropped while its request was waiting.
        if not owner.is_owned:
            raise _new_leader(owner)
        if self.by_id.get(entry.current.transactional_id) is not entry:
            raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS, "the transactional id has just expired")
        entry.pending = pending
        try:
            appended = owner.led.append(build_batch([record]))
            await owner.led.wait_committed(appended, timeout_ms=APPEND_TIMEOUT_MS)
        except BrokerError as error:
            raise BrokerError(_COORDINATOR_ERRORS.get(error.code, error.code), error.message) from error
        finally:
            entry.pending = None


def _new_leader(owned: OwnedPartition) -> BrokerError:
    return BrokerError(
        ErrorCode.NOT_COORDINATOR,
        f"this broker no longer leads {TRANSACTIONS_TOPIC}-{owned.index} in epoch {owned.leader_epoch}",
    )


def _replay(
    owned: OwnedPartition, header: BatchHeader, buffer: memoryview, transactions: dict[str, Transaction]
) -> None:
    """A record that cannot be read is left out: the others must not be lost with it."""
    try:
        for record in iterate_records(buffer, header):
            found = read_record(record)
            if found is None:
                continue
            transactional_id, transaction = found
            if transaction is None:
                transactions.pop(transactional_id, None)
            else:
                transactions[transactional_id] = transaction
    except (CorruptBatch, DecodeError) as error:
        log.exception(
            "transaction state cannot be read",
            exc_info=error,
            extra={"partition": owned.index, "base_offset": header.base_offset},
        )


_COORDINATOR_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""The coordinator's error for a client if the state could not be stored."""
