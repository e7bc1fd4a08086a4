"""Producer ids: unique in the cluster, assigned one by one from blocks allocated by the controller."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

AllocateBlock = Callable[[int], Awaitable[range]]
"""`Controller.allocate_producer_ids`: the block is committed to the metadata log before any of its ids is used."""

BLOCK_IDS: Final = 1000
"""As in Kafka; the rest of a block is not used after the broker stops."""


class ProducerIds:
    """The ids that this broker may still assign."""

    def __init__(self, allocate_block: AllocateBlock) -> None:
        self._allocate_block = allocate_block
        self._block = iter(range(0))
        self._allocating = asyncio.Lock()

    async def next(self) -> int:
        """A unique id; waits only if a new block is needed. Raises BrokerError if none can be allocated."""
        producer_id = next(self._block, None)
        while producer_id is None:
            async with self._allocating:
                producer_id = next(self._block, None)  # another request may have allocated a block meanwhile
                if producer_id is None:
                    self._block = iter(await self._allocate_block(BLOCK_IDS))
                    producer_id = next(self._block, None)
        return producer_id
