from collections import deque

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.transactions.markers import BACKOFF_LAST_SECONDS, MarkerWriter
from core_broker.transactions.transaction import Transaction, TransactionState
from tests.support.fake_transaction_log import FakeTopics

PREPARED = Transaction(
    transactional_id="tx",
    producer_id=7,
    producer_epoch=3,
    timeout_ms=1000,
    state=TransactionState.PREPARE_COMMIT,
    partitions=frozenset({("orders", 0), ("payments", 1)}),
    client_version=2,
)


class Pauses:
    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


async def write(topics: FakeTopics, pauses: Pauses | None = None, *, is_coordinator: bool = True) -> bool:
    writer = MarkerWriter(topics.write_marker, sleep=pauses or Pauses())
    return await writer.write(PREPARED, coordinator_epoch=4, is_still_coordinator=lambda: is_coordinator)


async def test_every_partition_gets_the_decision() -> None:
    topics = FakeTopics()
    assert await write(topics)
    assert topics.of("orders", 0) == topics.of("payments", 1) == [(7, 3, True)]


async def test_marker_tells_coordinator_epoch_and_transaction_version() -> None:
    topics = FakeTopics()
    await write(topics)
    assert {(marker.coordinator_epoch, marker.transaction_version) for _, _, marker in topics.markers} == {(4, 2)}


@pytest.mark.parametrize(
    "failure",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        BrokerError(ErrorCode.KAFKA_STORAGE_ERROR),
        RuntimeError("a mistake"),
    ],
)
async def test_failed_marker_is_tried_again_without_repeating_the_others(failure: ErrorCode | Exception) -> None:
    topics = FakeTopics()
    topics.failures["orders", 0] = deque([failure, failure])
    pauses = Pauses()
    assert await write(topics, pauses)
    assert topics.of("orders", 0) == topics.of("payments", 1) == [(7, 3, True)]
    assert len(pauses.taken) == 2


async def test_pauses_grow_up_to_a_second() -> None:
    topics = FakeTopics()
    topics.failures["orders", 0] = deque([ErrorCode.REQUEST_TIMED_OUT] * 20)
    pauses = Pauses()
    await write(topics, pauses)
    assert pauses.taken == sorted(pauses.taken)
    assert pauses.taken[-1] == BACKOFF_LAST_SECONDS


@pytest.mark.parametrize(
    "answer",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    ],
)
async def test_partition_that_needs_no_marker_does_not_hold_up_the_transaction(answer: ErrorCode) -> None:
    topics = FakeTopics()
    topics.failures["orders", 0] = deque([answer])
    assert await write(topics)
    assert topics.of("orders", 0) == []
    assert topics.of("payments", 1) == [(7, 3, True)]


async def test_replaced_coordinator_stops() -> None:
    assert not await write(FakeTopics(), is_coordinator=False)


async def test_coordinator_told_that_it_was_replaced_stops() -> None:
    topics = FakeTopics()
    topics.failures["orders", 0] = deque([ErrorCode.TRANSACTION_COORDINATOR_FENCED])
    assert not await write(topics)
