"""One transactional id: its states and the events that change them. No I/O.

```
             add partitions                 end                      markers written
    Empty ───────────────────▶ Ongoing ──────────▶ PrepareCommit ──────────────────▶ CompleteCommit ─┐
      ▲                          ▲ │  end, time-out,                                                 │
      │                          │ └──────────────▶ PrepareAbort ──────────────────▶ CompleteAbort ──┤
      │ init producer id         │   init by another producer                                        │
      └──────────────────────────┴──────────────────────── add partitions ───────────────────────────┘
```

An event is a function of the state and the time: it returns the state to persist (the same object if there is nothing
to do) or raises BrokerError. The work follows from the state returned: a Prepare state is persisted first, then the
markers are written, then `complete` is persisted. Between a decision and its commit the coordinator calls with
`is_changing=True`, and every event that would change the state raises CONCURRENT_TRANSACTIONS.

There are two protocols. In the older one a producer keeps its epoch until InitProducerId. With transaction version 2
(KIP-890) each end of a transaction bumps the epoch, so that a request delayed from an earlier transaction can never
affect a later one. Clients of the older protocol (EndTxn below version 5) have that risk.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

import msgspec

from core_broker.errors import BrokerError, ErrorCode

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
EPOCH_MAX: Final = 32767
"""Never given to a client, so that the coordinator can always fence the producer with the previous one."""

TRANSACTION_V0: Final = 0
"""A client of the older protocol."""
TRANSACTION_V2: Final = 2
"""A client that expects a new epoch after each transaction (KIP-890)."""

TopicPartition = tuple[str, int]


class TransactionState(IntEnum):
    """The states, with Kafka's numbers."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    """About to be removed; only ever pending, never persisted."""
    PREPARE_EPOCH_FENCE = 7
    """Kafka's state before a fencing abort; we go to PREPARE_ABORT in one step and never store it."""

    @property
    def label(self) -> str:
        """Kafka's name of the state, such as `PrepareCommit`."""
        return "".join(word.capitalize() for word in self.name.split("_"))


PREPARED: Final = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
COMPLETED: Final = frozenset({TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
IDLE: Final = COMPLETED | {TransactionState.EMPTY}


class Producer(NamedTuple):
    """A producer id together with its epoch."""

    producer_id: int
    epoch: int


class Transaction(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one transactional id; a change creates a new value."""

    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the last change; identifies a retry after the epochs of an id were exhausted."""
    next_producer_id: int = NO_PRODUCER_ID
    """The id to use when this prepared transaction completes, because the epochs are exhausted."""
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The previous epoch of the current producer; a request with it is a retry. Not stored, see `restore`."""
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = -1
    updated_ms: int = -1
    client_version: int = TRANSACTION_V0

    @property
    def producer(self) -> Producer:
        """The current producer id and epoch."""
        return Producer(self.producer_id, self.producer_epoch)

    @property
    def next_producer(self) -> Producer:
        """The producer id and epoch after a prepared transaction completes: the response of EndTxn 5 to V2 clients."""
        if self.next_producer_id != NO_PRODUCER_ID:
            return Producer(self.next_producer_id, 0)
        return self.producer

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the next bump needs a new producer id."""
        return self.producer_epoch >= EPOCH_MAX - 1

    @property
    def deadline_ms(self) -> int:
        """When an ongoing transaction times out."""
        return self.start_ms + self.timeout_ms


# -- init producer id -------------------------------------------------------------------------------------------------


def create(transactional_id: str, producer_id: int, *, timeout_ms: int, now_ms: int) -> Transaction:
    """A new transactional id; it need not be stored before `initialize` gives it an epoch."""
    return Transaction(
        transactional_id=transactional_id, producer_id=producer_id, timeout_ms=timeout_ms, updated_ms=now_ms
    )


def initialize(
    current: Transaction,
    *,
    timeout_ms: int,
    expected: Producer | None,
    new_producer_id: int,
    now_ms: int,
    server_version: int,
    is_changing: bool = False,
) -> Transaction:
    """InitProducerId: an Empty state with a new epoch, or a PrepareAbort that must complete before the next attempt.

    `expected` is the id and epoch of a producer that recovers from an error (KIP-360). `new_producer_id` is used only
    if the epochs are exhausted (`is_epoch_exhausted`).
    """
    if is_changing:
        raise _concurrent(current)
    if expected is not None and not _may_hold(current, expected):
        raise _fenced_error(current, expected)
    if current.state in PREPARED:
        raise _concurrent(current)
    if current.state is TransactionState.ONGOING:
        return _fence_for(current, expected, server_version, now_ms)
    if current.is_epoch_exhausted and (expected is None or expected.epoch == current.producer_epoch):
        return msgspec.structs.replace(
            current,
            state=TransactionState.EMPTY,
            producer_id=new_producer_id,
            previous_producer_id=current.producer_id,
            producer_epoch=0,
            last_producer_epoch=NO_PRODUCER_EPOCH if expected is None else current.producer_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=-1,
            updated_ms=now_ms,
        )
    epoch, last_epoch = _next_epoch(current, expected)
    return msgspec.structs.replace(
        current,
        state=TransactionState.EMPTY,
        # A retry keeps the exhausted id, for a further retry.
        previous_producer_id=current.previous_producer_id if epoch == current.producer_epoch else current.producer_id,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        start_ms=-1,
        updated_ms=now_ms,
    )


def _may_hold(current: Transaction, expected: Producer) -> bool:
    """Whether the producer's id is, or was just before, the one of this transactional id (KIP-360)."""
    if current.producer_epoch == NO_PRODUCER_EPOCH or expected.producer_id == current.producer_id:
        return True
    # The response with the new id was lost, and the producer retries with the exhausted one.
    return expected.producer_id == current.previous_producer_id and expected.epoch >= EPOCH_MAX - 1


def _fence_for(current: Transaction, expected: Producer | None, server_version: int, now_ms: int) -> Transaction:
    """Abort the open transaction of another producer, or of this one if it lost track of it.

    Kafka does not check the epoch here, so a fenced producer could abort its successor's transaction; we reject it.
    The epoch of the current producer is kept, so that its next attempt is not mistaken for that of a zombie.
    """
    if expected is not None and expected != current.producer:
        raise _fenced_error(current, expected)
    fenced = fence(current, server_version=server_version, now_ms=now_ms)
    if expected is None:
        return fenced
    return msgspec.structs.replace(fenced, last_producer_epoch=expected.epoch)


def _next_epoch(current: Transaction, expected: Producer | None) -> tuple[int, int]:
    """The epoch to assign, and the previous epoch of its producer."""
    epoch = current.producer_epoch
    if expected is None:
        return epoch + 1, NO_PRODUCER_EPOCH
    if epoch == NO_PRODUCER_EPOCH or expected.epoch == epoch:
        return epoch + 1, epoch
    if expected.epoch == current.last_producer_epoch:
        return epoch, expected.epoch  # the response to the first attempt was lost: the same epoch again
    raise _fenced_error(current, expected)


# -- partitions -------------------------------------------------------------------------------------------------------


def add_partitions(
    current: Transaction,
    producer: Producer,
    partitions: Iterable[TopicPartition],
    *,
    client_version: int,
    now_ms: int,
    is_changing: bool = False,
) -> Transaction:
    """Add partitions to the transaction, which is begun if necessary; returns it unchanged if it has them all."""
    _check_producer(current, producer)
    if is_changing or current.state in PREPARED:
        raise _concurrent(current)
    is_ongoing = current.state is TransactionState.ONGOING
    extended = current.partitions.union(partitions)
    if is_ongoing and len(extended) == len(current.partitions):
        return current
    return msgspec.structs.replace(
        current,
        state=TransactionState.ONGOING,
        previous_producer_id=current.producer_id,
        partitions=extended,
        start_ms=current.start_ms if is_ongoing else now_ms,
        updated_ms=now_ms,
        client_version=client_version,
    )


def check_can_verify(current: Transaction, producer: Producer, *, is_ending: bool = False) -> None:
    """Reject the verification for a fenced producer, or while the transaction is being ended."""
    _check_producer(current, producer)
    if is_ending or current.state in PREPARED:
        raise _concurrent(current)


def _check_producer(current: Transaction, producer: Producer) -> None:
    if producer == current.producer or (current.state in PREPARED and producer == current.next_producer):
        return
    if producer.producer_id != current.producer_id:
        raise BrokerError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"transactional id {current.transactional_id} belongs to producer {current.producer_id}, "
            f"not to {producer.producer_id}",
        )
    raise _fenced_error(current, producer)


# -- the end ----------------------------------------------------------------------------------------------------------


def end(
    current: Transaction,
    producer: Producer,
    *,
    commit: bool,
    client_version: int,
    new_producer_id: int,
    now_ms: int,
    is_changing: bool = False,
) -> Transaction:
    """EndTxn: the prepared transaction, or the unchanged state if this is a retry of an end that succeeded.

    `new_producer_id` is used only for a V2 client whose epochs are exhausted (`is_epoch_exhausted`).
    """
    if client_version >= TRANSACTION_V2:
        return _end_v2(current, producer, commit, new_producer_id, now_ms, is_changing)
    _check_producer(current, producer)
    if is_changing:
        raise _concurrent(current)
    if current.state is TransactionState.ONGOING:
        return _prepare_end(current, commit, now_ms, client_version=TRANSACTION_V0)
    return _repeat_response(current, commit)


def _end_v2(
    current: Transaction, producer: Producer, commit: bool, new_producer_id: int, now_ms: int, is_changing: bool
) -> Transaction:
    """As in KIP-890, the previous epoch means a retry, the current epoch means the next transaction.

    Aborting a transaction without records is allowed and bumps the epoch, too (KAFKA-18464): the client cannot know
    whether its first, unanswered Produce had begun it.
    """
    is_retry = _is_retried_end(current, producer)
    if not is_retry:
        _check_producer(current, producer)
    if is_changing:
        raise _concurrent(current)
    if is_retry:
        return _repeat_response(current, commit)
    if current.state in PREPARED:
        # The next, empty transaction ends before the previous one is complete: it must wait, and is not fenced.
        raise _concurrent(current)
    if current.state is not TransactionState.ONGOING and commit:
        raise _invalid_state(current, commit)
    bumped = msgspec.structs.replace(
        current,
        producer_epoch=min(current.producer_epoch + 1, EPOCH_MAX),
        last_producer_epoch=current.producer_epoch,
        next_producer_id=new_producer_id if current.is_epoch_exhausted else NO_PRODUCER_ID,
        start_ms=current.start_ms if current.state is TransactionState.ONGOING else now_ms,
    )
    return _prepare_end(bumped, commit, now_ms, client_version=TRANSACTION_V2)


def _is_retried_end(current: Transaction, producer: Producer) -> bool:
    """Whether a V2 producer retries an end that bumped its epoch.

    Only an end requested by a client leaves `last_producer_epoch` one behind; fencing bumps by two.
    """
    if current.client_version < TRANSACTION_V2 or producer.epoch != current.last_producer_epoch:
        return False
    if current.state in PREPARED or (current.state in COMPLETED and producer.producer_id == current.producer_id):
        return producer.producer_id == current.producer_id and producer.epoch + 1 == current.producer_epoch
    return (
        current.state in COMPLETED
        and producer == (current.previous_producer_id, EPOCH_MAX - 1)
        and current.producer_epoch == 0
    )


def _repeat_response(current: Transaction, commit: bool) -> Transaction:
    """The unchanged state if it is the requested one; otherwise raises an error."""
    state = current.state
    if state is (TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT):
        return current
    if state is (TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT):
        raise _concurrent(current)
    raise _invalid_state(current, commit)


def fence(current: Transaction, *, server_version: int, now_ms: int) -> Transaction:
    """Abort an ongoing transaction and fence its producer: after a time-out, or for a new producer.

    With transaction version 2 the epoch is bumped by two, as in Kafka: one to fence and one for the end, so that no
    producer can mistake the fencing for the response to its own end.
    """
    bump = 2 if server_version >= TRANSACTION_V2 else 1
    fenced = msgspec.structs.replace(
        current,
        producer_epoch=min(current.producer_epoch + bump, EPOCH_MAX),
        last_producer_epoch=NO_PRODUCER_EPOCH,
        next_producer_id=NO_PRODUCER_ID,
    )
    version = TRANSACTION_V2 if server_version >= TRANSACTION_V2 else TRANSACTION_V0
    return _prepare_end(fenced, False, now_ms, client_version=version)


def _prepare_end(current: Transaction, commit: bool, now_ms: int, *, client_version: int) -> Transaction:
    return msgspec.structs.replace(
        current,
        state=TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
        previous_producer_id=current.producer_id,
        updated_ms=now_ms,
        client_version=client_version,
    )


def complete(current: Transaction, *, now_ms: int) -> Transaction:
    """Complete a prepared transaction, after all markers were written."""
    if current.state not in PREPARED:
        raise ValueError(f"{current.transactional_id} is {current.state.label}, not prepared")
    committed = current.state is TransactionState.PREPARE_COMMIT
    producer_id, epoch = current.next_producer
    return msgspec.structs.replace(
        current,
        state=TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT,
        producer_id=producer_id,
        previous_producer_id=current.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        producer_epoch=epoch,
        partitions=frozenset(),
        updated_ms=now_ms,
    )


# -- time and restarts ------------------------------------------------------------------------------------------------


def has_timed_out(current: Transaction, now_ms: int) -> bool:
    """Whether the transaction has been open for longer than its producer allowed."""
    return current.state is TransactionState.ONGOING and current.deadline_ms < now_ms


def has_expired(current: Transaction, now_ms: int, expiration_ms: int) -> bool:
    """Whether the transactional id has not been used for so long that it may be removed."""
    return current.state in IDLE and current.updated_ms + expiration_ms <= now_ms


def restore(stored: Transaction) -> Transaction:
    """Add the last epoch, which Kafka's format does not contain, to a transaction read from the log.

    So a V2 client can retry an EndTxn after a change of coordinator. If the last epoch cannot be derived, it stays
    unknown, and a retry is fenced rather than accepted.
    """
    if stored.client_version < TRANSACTION_V2 or stored.state not in PREPARED | COMPLETED:
        return stored
    epoch = stored.producer_epoch
    if stored.state in COMPLETED and epoch == 0:
        last_epoch = EPOCH_MAX - 1 if stored.previous_producer_id != stored.producer_id else NO_PRODUCER_EPOCH
    elif epoch == EPOCH_MAX and stored.next_producer_id == NO_PRODUCER_ID:
        last_epoch = NO_PRODUCER_EPOCH  # only after fencing: an end requested by a client would set a new id
    else:
        last_epoch = epoch - 1
    return msgspec.structs.replace(stored, last_producer_epoch=last_epoch)


# -- errors -----------------------------------------------------------------------------------------------------------


def _concurrent(current: Transaction) -> BrokerError:
    return BrokerError(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"another operation on transactional id {current.transactional_id} ({current.state.label}) is in progress",
    )


def _fenced_error(current: Transaction, producer: Producer) -> BrokerError:
    return BrokerError(
        ErrorCode.PRODUCER_FENCED,
        f"producer {producer.producer_id} with epoch {producer.epoch} was fenced: the epoch of transactional id "
        f"{current.transactional_id} is {current.producer_epoch}",
    )


def _invalid_state(current: Transaction, commit: bool) -> BrokerError:
    return BrokerError(
        ErrorCode.INVALID_TXN_STATE,
        f"transactional id {current.transactional_id} is in state {current.state.label}: "
        f"there is no transaction to {'commit' if commit else 'abort'}",
    )
