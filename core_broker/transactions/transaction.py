"""One transactional id: its states, and what each event makes of them. No I/O.

```
             add partitions                 end                      markers written
    Empty ───────────────────▶ Ongoing ──────────▶ PrepareCommit ──────────────────▶ CompleteCommit ─┐
      ▲                          ▲ │  end, time-out,                                                 │
      │                          │ └──────────────▶ PrepareAbort ──────────────────▶ CompleteAbort ──┤
      │ init producer id         │   init by another producer                                        │
      └──────────────────────────┴──────────────────────── add partitions ───────────────────────────┘
```

An event is a function of the state and the time: it returns the state to persist (the same object when there is nothing
to do) or raises BrokerError. What is to be done follows from the state returned: a Prepare state is persisted first,
then the markers are written, then `complete` is persisted. Between a decision and its commit the coordinator calls with
`is_changing=True`, and every event that would change the state is answered CONCURRENT_TRANSACTIONS.

Two protocols live side by side. In the older one a producer keeps its epoch until InitProducerId. With transaction
version 2 (KIP-890) each end of a transaction bumps the epoch, so that a request delayed from an earlier transaction can
never touch a later one. Clients of the older protocol (EndTxn below v5) keep that risk.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

import msgspec

from core_broker.errors import BrokerError, ErrorCode

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
EPOCH_MAX: Final = 32767
"""Never given to a client, so that the coordinator can always fence the producer that holds the one before it."""

TRANSACTION_V0: Final = 0
"""A client of the older protocol."""
TRANSACTION_V2: Final = 2
"""A client that expects a new epoch after each transaction (KIP-890)."""

TopicPartition = tuple[str, int]


class TransactionState(IntEnum):
    """The states, with the numbers under which Kafka stores them."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    """About to be forgotten; only ever pending, never persisted."""
    PREPARE_EPOCH_FENCE = 7
    """Kafka's name for the moment before a fencing abort; we go to PREPARE_ABORT in one step and never store it."""

    @property
    def label(self) -> str:
        """The name as Kafka's tools know it, such as `PrepareCommit`."""
        return "".join(word.capitalize() for word in self.name.split("_"))


PREPARED: Final = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
COMPLETED: Final = frozenset({TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
IDLE: Final = COMPLETED | {TransactionState.EMPTY}


class Producer(NamedTuple):
    """A producer id together with its epoch."""

    producer_id: int
    epoch: int


class Transaction(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of one transactional id; a change makes a new one."""

    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the last change; tells a retry after the epochs of an id have run out."""
    next_producer_id: int = NO_PRODUCER_ID
    """The id that takes over when this prepared transaction completes, because the epochs have run out."""
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch that the present holder had before; whoever asks with it is retrying. Not stored, see `restored`."""
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = -1
    updated_ms: int = -1
    client_version: int = TRANSACTION_V0

    @property
    def producer(self) -> Producer:
        """Who may act now."""
        return Producer(self.producer_id, self.producer_epoch)

    @property
    def next_producer(self) -> Producer:
        """Who may act once a prepared transaction is complete: what a V2 client is told at the end (EndTxn v5)."""
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


def created(transactional_id: str, producer_id: int, *, timeout_ms: int, now_ms: int) -> Transaction:
    """A transactional id seen for the first time; not worth storing before `initialize` gives it an epoch."""
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
    """InitProducerId: an Empty state with a fresh epoch, or a PrepareAbort that must complete before asking again.

    `expected` is what a producer that goes on after an error believes to hold (KIP-360). `new_producer_id` is taken
    into use only if the epochs have run out (`is_epoch_exhausted`).
    """
    if is_changing:
        raise _concurrent(current)
    if expected is not None and not _may_hold(current, expected):
        raise _fenced(current, expected)
    if current.state in PREPARED:
        raise _concurrent(current)
    if current.state is TransactionState.ONGOING:
        return _fence_for(current, expected, server_version, now_ms)
    if current.is_epoch_exhausted and (expected is None or expected.epoch == current.producer_epoch):
        return _with_new_producer_id(current, new_producer_id, expected, timeout_ms, now_ms)
    epoch, last_epoch = _next_epoch(current, expected)
    return msgspec.structs.replace(
        current,
        state=TransactionState.EMPTY,
        previous_producer_id=_previous_id_after_init(current, epoch),
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        start_ms=-1,
        updated_ms=now_ms,
    )


def _may_hold(current: Transaction, expected: Producer) -> bool:
    """Whether the id that a producer believes to hold is, or just was, the one of this transactional id (KIP-360)."""
    if current.producer_epoch == NO_PRODUCER_EPOCH or expected.producer_id == current.producer_id:
        return True
    # The answer that carried the new id was lost, and the producer asks again with the exhausted one.
    return expected.producer_id == current.previous_producer_id and expected.epoch >= EPOCH_MAX - 1


def _fence_for(current: Transaction, expected: Producer | None, server_version: int, now_ms: int) -> Transaction:
    """Abort the open transaction of another producer, or of this one when it lost track of it.

    Kafka does not look at the epoch here, so a fenced producer could abort its successor's transaction; we refuse it.
    The producer that holds the current epoch is remembered, so that its next try is not taken for a zombie's.
    """
    if expected is not None and expected != current.producer:
        raise _fenced(current, expected)
    fenced = fence(current, server_version=server_version, now_ms=now_ms)
    if expected is None:
        return fenced
    return msgspec.structs.replace(fenced, last_producer_epoch=expected.epoch)


def _next_epoch(current: Transaction, expected: Producer | None) -> tuple[int, int]:
    """The epoch to hand out, and the epoch that its holder had before."""
    epoch = current.producer_epoch
    if expected is None:
        return epoch + 1, NO_PRODUCER_EPOCH
    if epoch == NO_PRODUCER_EPOCH or expected.epoch == epoch:
        return epoch + 1, epoch
    if expected.epoch == current.last_producer_epoch:
        return epoch, expected.epoch  # The answer to the first try was lost: the same epoch once more.
    raise _fenced(current, expected)


def _previous_id_after_init(current: Transaction, epoch: int) -> int:
    """A retry leaves the trace of the exhausted id in place, for a further retry."""
    return current.previous_producer_id if epoch == current.producer_epoch else current.producer_id


def _with_new_producer_id(
    current: Transaction, new_producer_id: int, expected: Producer | None, timeout_ms: int, now_ms: int
) -> Transaction:
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
    """The transaction extended by `partitions`, begun if need be; unchanged when it has them all."""
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
    """Refuse to say anything about partitions to a fenced producer, or while the transaction is being ended."""
    _check_producer(current, producer)
    if is_ending or current.state in PREPARED:
        raise _concurrent(current)


def _check_producer(current: Transaction, producer: Producer) -> None:
    if producer == current.producer or (current.state in PREPARED and producer == current.next_producer):
        return
    if producer.producer_id != current.producer_id:
        raise _wrong_producer_id(current, producer)
    raise _fenced(current, producer)


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
    """EndTxn: the prepared transaction; or the state as it is, when this is a retry of an end that succeeded.

    `new_producer_id` is taken into use only by a V2 client whose epochs have run out (`is_epoch_exhausted`).
    """
    if client_version >= TRANSACTION_V2:
        return _end_v2(current, producer, commit, new_producer_id, now_ms, is_changing)
    return _end_v0(current, producer, commit, now_ms, is_changing)


def _end_v0(current: Transaction, producer: Producer, commit: bool, now_ms: int, is_changing: bool) -> Transaction:
    _check_producer(current, producer)
    if is_changing:
        raise _concurrent(current)
    if current.state is TransactionState.ONGOING:
        return _prepared(current, commit, now_ms, client_version=TRANSACTION_V0)
    return _answer_again(current, commit)


def _end_v2(
    current: Transaction, producer: Producer, commit: bool, new_producer_id: int, now_ms: int, is_changing: bool
) -> Transaction:
    """As KIP-890 has it: the epoch before means a retry, the current epoch means the next transaction.

    Aborting a transaction in which nothing was written is allowed and bumps the epoch too (KAFKA-18464): the client
    cannot know whether its first, unanswered Produce had begun it.
    """
    is_retry = _is_retried_end(current, producer)
    if not is_retry:
        _check_producer(current, producer)
    if is_changing:
        raise _concurrent(current)
    if is_retry:
        return _answer_again(current, commit)
    if current.state in PREPARED:
        # The next transaction ends, empty, before the last one is complete: it must wait, not be fenced.
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
    return _prepared(bumped, commit, now_ms, client_version=TRANSACTION_V2)


def _is_retried_end(current: Transaction, producer: Producer) -> bool:
    """Whether a V2 producer asks again for an end that bumped its epoch.

    Only an end asked for by a client leaves `last_producer_epoch` one behind; fencing bumps by two.
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


def _answer_again(current: Transaction, commit: bool) -> Transaction:
    """The state as it is if it is what the request asks for; otherwise the error that tells why not."""
    state = current.state
    if state is (TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT):
        return current
    if state is (TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT):
        raise _concurrent(current)
    raise _invalid_state(current, commit)


def fence(current: Transaction, *, server_version: int, now_ms: int) -> Transaction:
    """Abort an ongoing transaction so that its producer can never act again: on time-out, or for a new producer.

    With transaction version 2 the epoch goes up by two, as in Kafka: one to fence and one for the end, and so no
    producer can take the fencing for the answer to its own end.
    """
    bump = 2 if server_version >= TRANSACTION_V2 else 1
    fenced = msgspec.structs.replace(
        current,
        producer_epoch=min(current.producer_epoch + bump, EPOCH_MAX),
        last_producer_epoch=NO_PRODUCER_EPOCH,
        next_producer_id=NO_PRODUCER_ID,
    )
    version = TRANSACTION_V2 if server_version >= TRANSACTION_V2 else TRANSACTION_V0
    return _prepared(fenced, False, now_ms, client_version=version)


def _prepared(current: Transaction, commit: bool, now_ms: int, *, client_version: int) -> Transaction:
    return msgspec.structs.replace(
        current,
        state=TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
        previous_producer_id=current.producer_id,
        updated_ms=now_ms,
        client_version=client_version,
    )


def complete(current: Transaction, *, now_ms: int) -> Transaction:
    """Every marker of a prepared transaction is written."""
    if current.state not in PREPARED:
        raise ValueError(f"{current.transactional_id} is {current.state.label}, only a prepared one can complete")
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
    """Whether nobody has used the transactional id for so long that it may be forgotten."""
    return current.state in IDLE and current.updated_ms + expiration_ms <= now_ms


def restored(stored: Transaction) -> Transaction:
    """A transaction as read from the log, with the last epoch worked out, which Kafka's format does not carry.

    So a V2 client whose EndTxn spans a change of coordinator still gets its answer. Where nothing can be told the last
    epoch stays unknown, and a retry is fenced rather than believed.
    """
    if stored.client_version < TRANSACTION_V2 or stored.state not in PREPARED | COMPLETED:
        return stored
    epoch = stored.producer_epoch
    if stored.state in COMPLETED and epoch == 0:
        last_epoch = EPOCH_MAX - 1 if stored.previous_producer_id != stored.producer_id else NO_PRODUCER_EPOCH
    elif epoch == EPOCH_MAX and stored.next_producer_id == NO_PRODUCER_ID:
        last_epoch = NO_PRODUCER_EPOCH  # Only fencing gets here: an end asked for by a client brings a new id along.
    else:
        last_epoch = epoch - 1
    return msgspec.structs.replace(stored, last_producer_epoch=last_epoch)


# -- refusals ---------------------------------------------------------------------------------------------------------


def _concurrent(current: Transaction) -> BrokerError:
    return BrokerError(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"another operation on transactional id {current.transactional_id} ({current.state.label}) is in progress",
    )


def _fenced(current: Transaction, producer: Producer) -> BrokerError:
    return BrokerError(
        ErrorCode.PRODUCER_FENCED,
        f"producer {producer.producer_id} with epoch {producer.epoch} does not hold transactional id "
        f"{current.transactional_id}, whose epoch is {current.producer_epoch}",
    )


def _wrong_producer_id(current: Transaction, producer: Producer) -> BrokerError:
    return BrokerError(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        f"transactional id {current.transactional_id} belongs to producer {current.producer_id}, "
        f"not to {producer.producer_id}",
    )


def _invalid_state(current: Transaction, commit: bool) -> BrokerError:
    return BrokerError(
        ErrorCode.INVALID_TXN_STATE,
        f"transactional id {current.transactional_id} is {current.state.label}: "
        f"there is nothing to {'commit' if commit else 'abort'}",
    )
