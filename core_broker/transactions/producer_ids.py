"""Producer ids: unique in the cluster, handed out one by one from blocks that the controller allocates."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

AllocateBlock = Callable[[int], Awaitable[range]]
"""`Controller.allocate_producer_ids`: the block is recorded in the metadata log before anyone sees an id of it."""

BLOCK_IDS: Final = 1000
"""As in Kafka; what is left of a block when the broker stops is never used."""


class ProducerIds:
    """The ids this broker may still hand out."""

    def __init__(self, allocate_block: AllocateBlock) -> None:
        self._allocate_block = allocate_block
        self._block = iter(range(0))
        self._allocating = asyncio.Lock()

    async def next(self) -> int:
        """An id nobody else has; waits only when a block has run out. Raises BrokerError when no block can be had."""
        producer_id = next(self._block, None)
        while producer_id is None:
            async with self._allocating:
                producer_id = next(self._block, None)  # Another request may have fetched a block meanwhile.
                if producer_id is None:
                    self._block = iter(await self._allocate_block(BLOCK_IDS))
                    producer_id = next(self._block, None)
        return producer_id
