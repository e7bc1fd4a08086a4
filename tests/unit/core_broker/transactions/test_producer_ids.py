import asyncio

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.transactions.producer_ids import BLOCK_IDS, ProducerIds


class Blocks:
    def __init__(self) -> None:
        self.allocated = 0
        self.failures = 0

    async def allocate(self, count: int) -> range:
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise BrokerError(ErrorCode.NOT_CONTROLLER)
        first = self.allocated * count
        self.allocated += 1
        return range(first, first + count)


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
