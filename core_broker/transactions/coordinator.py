"""The transaction coordinator: executes the state machine of `transaction` for its transactional ids.

The order makes transactions safe: the decision (Prepare) is committed to `__transaction_state` before the first marker
is written, and Complete only after the last one. After a crash the next leader of the partition reads the decision and
finishes the work.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator
from typing import Final

from core_broker.cluster.partitions import Partitions
from core_broker.errors import BrokerError, ErrorCode
from core_broker.service.clock import Clock
from core_broker.settings import BrokerSettings
from core_broker.transactions import transaction as machine
from core_broker.transactions.background import BackgroundJobs
from core_broker.transactions.markers import BACKOFF_LAST_SECONDS, MarkerWriter, Sleep, WriteMarker
from core_broker.transactions.producer_ids import ProducerIds
from core_broker.transactions.state_log import Entry, OwnedPartition, StateLog
from core_broker.transactions.transaction import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    PREPARED,
    TRANSACTION_V2,
    Producer,
    TopicPartition,
    Transaction,
    TransactionState,
)

log = logging.getLogger(__name__)

COMPLETION_WAIT_MS: Final = 100
"""How long a request waits for the markers of the previous transaction. Kafka does not wait but makes the client retry,
whose back-off is much longer than the markers usually take; after this time we do the same."""

TIMEOUT_CHECK_MS_MAX: Final = 1000
"""Open transactions are few and cheap to check, so time-outs are noticed sooner than with Kafka's 10 s."""


class TransactionCoordinator:
    """Transactions of the transactional ids whose partition of `__transaction_state` this broker leads."""

    def __init__(
        self,
        *,
        settings: BrokerSettings,
        clock: Clock,
        partitions: Partitions,
        partition_count: Callable[[], int],
        producer_ids: ProducerIds,
        write_marker: WriteMarker,
        transaction_version: Callable[[], int] = lambda: TRANSACTION_V2,
        completion_wait_ms: int = COMPLETION_WAIT_MS,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._producer_ids = producer_ids
        self._transaction_version = transaction_version
        self._completion_wait_ms = completion_wait_ms
        self._sleep = sleep
        self._markers = MarkerWriter(write_marker, sleep=sleep)
        self._state = StateLog(partitions, partition_count=partition_count, transaction_version=transaction_version)
        self._open: dict[str, Entry] = {}
        self._jobs = BackgroundJobs()

    # -- run, load and resign ------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Load partitions, write markers and check time-outs until cancelled.

        Start it after all partitions are open: a marker for a missing partition counts as one of a deleted topic.
        """
        configured_ms = self._settings.transaction_abort_timed_out_transaction_cleanup_interval_ms
        check_interval_ms = min(configured_ms, TIMEOUT_CHECK_MS_MAX)
        async with self._jobs.running():
            next_expiry = self._clock.monotonic()
            while True:
                await self._sleep(check_interval_ms / 1000)
                await self.abort_timed_out()
                if self._clock.monotonic() >= next_expiry:
                    next_expiry += self._settings.transaction_remove_expired_transaction_cleanup_interval_ms / 1000
                    await self.forget_expired()

    async def wait_until_idle(self, *, timeout_ms: int) -> bool:
        """Wait until everything is loaded and every marker is written; False on time-out."""
        return await self._jobs.wait_until_done(timeout_ms / 1000)

    def become_leader(self, partition_index: int, leader_epoch: int) -> None:
        """Take over a partition of `__transaction_state`; an empty one is ready at once, others are loaded by `run`."""
        owned = self._state.own(partition_index, leader_epoch)
        if owned is not None and owned.is_loading:
            self._jobs.start(lambda: self._load(owned))

    def resign(self, partition_index: int) -> None:
        """Drop a partition whose transactional ids have another coordinator now."""
        self._state.release(partition_index)
        # Their time-outs are the next coordinator's, which begins them again when it loads the partition.
        self._open = {key: entry for key, entry in self._open.items() if entry.owner.is_owned}

    async def _load(self, owned: OwnedPartition) -> None:
        try:
            await self._state.load(owned)
        except BrokerError as error:
            log.info("load of transactions stopped", extra={"partition": owned.index, "reason": error.message})
            return
        for entry in owned.entries.values():
            if entry.current.state in PREPARED:
                self._finish_later(entry)
            elif entry.current.state is TransactionState.ONGOING:
                self._open[entry.current.transactional_id] = entry
        log.info(
            "transactions loaded",
            extra={"partition": owned.index, "epoch": owned.leader_epoch, "transactional_ids": len(owned.entries)},
        )

    # -- init producer id ----------------------------------------------------------------------------------------------

    async def init_producer_id(
        self, transactional_id: str | None, timeout_ms: int, *, expected: Producer | None = None
    ) -> Producer:
        """A producer id and epoch that fence every earlier producer of `transactional_id`; raises BrokerError."""
        if transactional_id is None:
            return Producer(await self._next_producer_id(), 0)
        _check_transactional_id(transactional_id)
        longest = self._settings.transaction_max_timeout_ms
        if not 0 < timeout_ms <= longest:
            raise BrokerError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"transaction.timeout.ms {timeout_ms} is not between 1 and transaction.max.timeout.ms {longest}",
            )
        for _ in range(_INIT_TRIES):
            entry = self._state.find(transactional_id)
            if entry is None:
                producer_id = await self._next_producer_id()
                now_ms = self._clock.now_ms()
                entry = self._state.create(
                    machine.create(transactional_id, producer_id, timeout_ms=timeout_ms, now_ms=now_ms)
                )
            await self._wait_completed(entry)
            producer = await self._initialize(entry, timeout_ms, expected)
            if producer is not None:
                return producer
            # An open transaction is being aborted first. No producer gets its new epoch, only the next one.
        raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS, f"the transaction of {transactional_id} is being aborted")

    async def _initialize(self, entry: Entry, timeout_ms: int, expected: Producer | None) -> Producer | None:
        """The producer's new id and epoch, or None if an open transaction must be aborted first."""
        new_producer_id = await self._new_producer_id_if_exhausted(entry)
        changed = machine.initialize(
            entry.current,
            timeout_ms=timeout_ms,
            expected=expected,
            new_producer_id=new_producer_id,
            now_ms=self._clock.now_ms(),
            server_version=self._transaction_version(),
            is_changing=entry.is_changing,
        )
        if changed.state in PREPARED:
            await self._prepare(entry, changed)
            return None
        # A new transactional id that cannot be stored is dropped.
        try:
            await self._state.store(entry, changed)
        except BaseException:
            if entry.current.producer_epoch == NO_PRODUCER_EPOCH:
                self._state.discard(entry)
            raise
        return changed.producer

    async def _new_producer_id_if_exhausted(self, entry: Entry) -> int:
        """Called before the decision, because the coordinator must not await between a decision and its append."""
        return await self._next_producer_id() if entry.current.is_epoch_exhausted else NO_PRODUCER_ID

    async def _next_producer_id(self) -> int:
        producer_id = await self._producer_ids.next()
        if self._producer_ids.should_prefetch:
            self._jobs.start(self._producer_ids.prefetch)
        return producer_id

    # -- partitions ----------------------------------------------------------------------------------------------------

    async def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Collection[TopicPartition],
        *,
        client_version: int,
    ) -> None:
        """Add partitions to the transaction, which is begun if necessary; raises BrokerError.

        With TRANSACTION_V2, a broker adds the partition that a producer writes to. Then it does not wait for the end of
        the previous transaction, whose marker would invalidate the guard that the broker holds on the partition: the
        producer would get an invalid transaction instead of a retriable error.
        """
        entry = self._find(transactional_id)
        if client_version < TRANSACTION_V2:
            await self._wait_completed(entry)
        await self._add(entry, producer, partitions, client_version)

    async def _add(
        self, entry: Entry, producer: Producer, partitions: Collection[TopicPartition], client_version: int
    ) -> None:
        changed = machine.add_partitions(
            entry.current,
            producer,
            partitions,
            client_version=client_version,
            now_ms=self._clock.now_ms(),
            is_changing=entry.is_changing,
        )
        if changed is not entry.current:
            await self._state.store(entry, changed)
            self._open[changed.transactional_id] = entry

    def verify_partitions(
        self, transactional_id: str, producer: Producer, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Which partitions belong to the transaction: NONE, or TRANSACTION_ABORTABLE for those that do not."""
        entry = self._find(transactional_id)
        current = entry.current
        machine.check_can_verify(current, producer, is_ending=entry.pending not in _STAYS_OPEN)
        return {
            partition: ErrorCode.NONE if partition in current.partitions else ErrorCode.TRANSACTION_ABORTABLE
            for partition in partitions
        }

    def is_partition_in_transaction(
        self, transactional_id: str, producer_id: int, producer_epoch: int, topic: str, partition: int
    ) -> bool:
        """Whether records may be written to a partition at once; if not, call `verify_or_add_partition`."""
        entry = self._state.by_id.get(transactional_id)
        if entry is None or entry.pending not in _STAYS_OPEN:
            return False
        current = entry.current
        return (
            current.state is TransactionState.ONGOING
            and current.producer_id == producer_id
            and current.producer_epoch == producer_epoch
            and (topic, partition) in current.partitions
        )

    async def verify_or_add_partition(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        topic: str,
        partition: int,
        *,
        add: bool,
        knows_abortable: bool = False,
    ) -> ErrorCode:
        """Whether a producer may write to a partition within its transaction (KIP-890).

        With `add` (Produce v12+, TxnOffsetCommit v5+) the partition is added, otherwise it must have been added before.
        `knows_abortable` (Produce v11+, TxnOffsetCommit v4+): the client understands TRANSACTION_ABORTABLE.
        """
        if self.is_partition_in_transaction(transactional_id, producer_id, producer_epoch, topic, partition):
            return ErrorCode.NONE
        producer = Producer(producer_id, producer_epoch)
        try:
            if add:
                added = ((topic, partition),)
                await self.add_partitions(transactional_id, producer, added, client_version=TRANSACTION_V2)
                return ErrorCode.NONE
            code = self.verify_partitions(transactional_id, producer, ((topic, partition),))[topic, partition]
        except BrokerError as error:
            code = error.code
        if code is ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH  # producers of all versions understand it in a Produce response
        if code is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
            return ErrorCode.INVALID_TXN_STATE
        return code

    # -- the end -------------------------------------------------------------------------------------------------------

    async def end(self, transactional_id: str, producer: Producer, *, commit: bool, client_version: int) -> Producer:
        """Decide the transaction; returns the producer id and epoch to continue with once the decision is committed.

        The decision is final from then on, however long the markers take; but usually they are quick, and then readers
        see the records as soon as the producer gets its response. Raises BrokerError.
        """
        entry = self._find(transactional_id)
        await self._wait_completed(entry)
        new_producer_id = await self._new_producer_id_if_exhausted(entry)
        changed = machine.end(
            entry.current,
            producer,
            commit=commit,
            client_version=client_version,
            new_producer_id=new_producer_id,
            now_ms=self._clock.now_ms(),
            is_changing=entry.is_changing,
        )
        if changed is not entry.current:
            await self._prepare(entry, changed)
            await self._wait_completed(entry)
        return changed.next_producer

    async def _prepare(self, entry: Entry, prepared: Transaction) -> None:
        """Commit a decision, then start writing its markers."""
        await self._state.store(entry, prepared)
        self._open.pop(prepared.transactional_id, None)
        self._finish_later(entry)

    def _finish_later(self, entry: Entry) -> None:
        entry.completed = asyncio.Event()
        self._jobs.start(lambda: self._finish(entry))

    async def _finish(self, entry: Entry) -> None:
        """Write the markers of a decision, and wake the requests that wait for it."""
        try:
            await self._write_markers_and_complete(entry)
        finally:
            if entry.completed is not None:
                entry.completed.set()
                entry.completed = None

    async def _write_markers_and_complete(self, entry: Entry) -> None:
        """Write all markers, then Complete; stops only if another coordinator has taken over."""
        prepared, owner = entry.current, entry.owner
        is_written = await self._markers.write(
            prepared, coordinator_epoch=owner.leader_epoch, is_still_coordinator=lambda: owner.is_owned
        )
        if not is_written:
            log.info(
                "another coordinator finishes the transaction", extra={"transactional_id": prepared.transactional_id}
            )
            return
        while owner.is_owned:
            try:
                await self._state.store(entry, machine.complete(prepared, now_ms=self._clock.now_ms()))
            except BrokerError as error:
                _report_failure("completed transaction not stored yet, retrying", prepared, error)
                await self._sleep(BACKOFF_LAST_SECONDS)
            else:
                break

    async def _wait_completed(self, entry: Entry) -> None:
        """Wait a moment for the markers of the previous transaction."""
        completed = entry.completed
        if completed is None or not self._completion_wait_ms:
            return
        try:
            async with asyncio.timeout(self._completion_wait_ms / 1000):
                await completed.wait()
        except TimeoutError:
            pass

    # -- time ----------------------------------------------------------------------------------------------------------

    async def abort_timed_out(self) -> None:
        """Abort every transaction that has been open for longer than its producer allowed, and fence that producer."""
        now_ms = self._clock.now_ms()
        late = [entry for entry in self._open.values() if machine.has_timed_out(entry.current, now_ms)]
        await asyncio.gather(*(self._abort(entry) for entry in late if not entry.is_changing))

    async def _abort(self, entry: Entry) -> None:
        late = entry.current
        if entry.is_changing or late.state is not TransactionState.ONGOING:
            return  # a request was faster
        fenced = machine.fence(late, server_version=self._transaction_version(), now_ms=self._clock.now_ms())
        try:
            await self._prepare(entry, fenced)
        except BrokerError as error:
            _report_failure("timed-out transaction not aborted yet", late, error)
            return
        log.info(
            "transaction timed out and will be aborted",
            extra={
                "transactional_id": late.transactional_id,
                "producer_id": late.producer_id,
                "timeout_ms": late.timeout_ms,
            },
        )

    async def forget_expired(self) -> None:
        """Remove transactional ids that have not been used for `transactional.id.expiration.ms`."""
        now_ms = self._clock.now_ms()
        expiration_ms = self._settings.transactional_id_expiration_ms
        expired = [
            entry
            for entry in self._state.entries()
            if not entry.is_changing and machine.has_expired(entry.current, now_ms, expiration_ms)
        ]
        for entry in expired:
            if entry.is_changing or not machine.has_expired(entry.current, now_ms, expiration_ms):
                continue  # it was used while another one was being removed
            try:
                await self._state.forget(entry, now_ms=now_ms)
            except BrokerError as error:
                _report_failure("expired transactional id not removed yet", entry.current, error)
            await asyncio.sleep(0)  # an append that is committed at once does not yield

    # -- queries -------------------------------------------------------------------------------------------------------

    def describe(self, transactional_id: str) -> Transaction:
        """The state of one transactional id; raises BrokerError."""
        _check_transactional_id(transactional_id)
        entry = self._state.find(transactional_id)
        if entry is None or entry.pending is TransactionState.DEAD or entry.current.producer_epoch < 0:
            raise BrokerError(
                ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"transactional id {transactional_id} does not exist"
            )
        return entry.current

    def transactions(self) -> Iterator[Transaction]:
        """The state of every transactional id; raises BrokerError while some are still being loaded."""
        if self._state.is_any_loading:
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "transactions are being loaded")
        return (entry.current for entry in self._state.entries() if entry.current.producer_epoch >= 0)

    @property
    def open_count(self) -> int:
        """How many transactions are open."""
        return len(self._open)

    def partition_of(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` that stores a transactional id."""
        return self._state.partition_of(transactional_id)

    def _find(self, transactional_id: str) -> Entry:
        _check_transactional_id(transactional_id)
        entry = self._state.find(transactional_id)
        if entry is None:
            raise BrokerError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"transactional id {transactional_id} has no producer yet"
            )
        return entry


_STAYS_OPEN: Final = frozenset({None, TransactionState.ONGOING})
"""The pending states in which a transaction still accepts records."""
_INIT_TRIES: Final = 2


def _check_transactional_id(transactional_id: str) -> None:
    if not transactional_id:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "the transactional id must not be empty")


def _report_failure(message: str, transaction: Transaction, error: BrokerError) -> None:
    log.warning(message, extra={"transactional_id": transaction.transactional_id, "error": str(error)})
