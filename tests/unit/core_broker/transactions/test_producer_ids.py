import asyncio

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from core_broker.transactions.producer_ids import ProducerIds, allocate_from_controller

BLOCK_IDS = 1000


class Blocks:
    def __init__(self) -> None:
        self.allocated = 0
        self.failures = 0

    async def allocate(self) -> range:
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise BrokerError(ErrorCode.NOT_CONTROLLER)
        first = self.allocated * BLOCK_IDS
        self.allocated += 1
        return range(first, first + BLOCK_IDS)


async def test_ids_of_a_block_are_handed_out_in_order() -> None:
    ids = ProducerIds(Blocks().allocate)
    assert [await ids.next() for _ in range(3)] == [0, 1, 2]


async def test_next_block_follows_when_one_is_used_up() -> None:
    blocks = Blocks()
    ids = ProducerIds(blocks.allocate)
    assert [await ids.next() for _ in range(BLOCK_IDS + 1)] == list(range(BLOCK_IDS + 1))
    assert blocks.allocated == 2


async def test_requests_that_wait_for_the_same_block_get_different_ids() -> None:
    blocks = Blocks()
    ids = ProducerIds(blocks.allocate)
    assert sorted(await asyncio.gather(*(ids.next() for _ in range(10)))) == list(range(10))
    assert blocks.allocated == 1


async def test_failed_allocation_is_told_and_tried_again_with_the_next_request() -> None:
    blocks = Blocks()
    blocks.failures = 1
    ids = ProducerIds(blocks.allocate)
    with pytest.raises(BrokerError):
        await ids.next()
    assert await ids.next() == 0


async def test_two_brokers_never_share_an_id() -> None:
    blocks = Blocks()
    first, second = ProducerIds(blocks.allocate), ProducerIds(blocks.allocate)
    taken = [await ids.next() for _ in range(5) for ids in (first, second)]
    assert len(set(taken)) == len(taken)


async def test_next_block_is_allocated_before_the_last_tenth_is_used() -> None:
    blocks = Blocks()
    ids = ProducerIds(blocks.allocate)
    wants_more = []
    for _ in range(BLOCK_IDS * 9 // 10):
        await ids.next()
        wants_more.append(ids.should_prefetch)
    assert wants_more == [False] * 899 + [True]
    await ids.prefetch()
    assert [await ids.next() for _ in range(200)] == list(range(900, 1100))
    assert blocks.allocated == 2


async def test_failed_prefetch_does_not_fail_a_request() -> None:
    blocks = Blocks()
    ids = ProducerIds(blocks.allocate)
    for _ in range(BLOCK_IDS - 1):
        await ids.next()
    blocks.failures = 1
    await ids.prefetch()
    assert [await ids.next() for _ in range(2)] == [BLOCK_IDS - 1, BLOCK_IDS]


class Controller:
    """The active controller, as a channel reaches it."""

    def __init__(self, answer: AllocateProducerIdsResponse | BrokerError) -> None:
        self.answer = answer
        self.requests: list[Message] = []

    async def call(self, request: Message, *, timeout_seconds: float = 30.0) -> Message:
        self.requests.append(request)
        if isinstance(self.answer, BrokerError):
            raise self.answer
        return self.answer


async def test_block_is_requested_with_the_epoch_of_the_broker() -> None:
    controller = Controller(AllocateProducerIdsResponse(producer_id_start=5000, producer_id_len=1000))
    allocate = allocate_from_controller(controller, broker_id=3, broker_epoch=lambda: 17)
    assert await allocate() == range(5000, 6000)
    assert controller.requests == [AllocateProducerIdsRequest(broker_id=3, broker_epoch=17)]


@pytest.mark.parametrize(
    "answer",
    [AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH), BrokerError(ErrorCode.REQUEST_TIMED_OUT)],
)
async def test_client_tries_again_when_the_controller_allocates_nothing(
    answer: AllocateProducerIdsResponse | BrokerError,
) -> None:
    ids = ProducerIds(allocate_from_controller(Controller(answer), broker_id=3, broker_epoch=lambda: 17))
    with pytest.raises(BrokerError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        await ids.next()
