"""Producer ids: unique in the cluster, assigned one by one from blocks allocated by the controller."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

log = logging.getLogger(__name__)

AllocateBlock = Callable[[], Awaitable[range]]
"""The block is committed to the metadata log before any of its ids is used."""

_PREFETCH_FRACTION: Final = 0.1
"""The next block is allocated when no more than this is left of the current one, as in Kafka."""
_ALLOCATION_TIMEOUT_SECONDS: Final = 10.0


class ProducerIds:
    """The ids that this broker may still assign; the rest of a block is not used after the broker stops."""

    def __init__(self, allocate: AllocateBlock) -> None:
        self._allocate = allocate
        self._block = range(0)
        self._next_block = range(0)
        self._low_mark = 0
        self._allocating = asyncio.Lock()

    async def next(self) -> int:
        """A unique id; waits only if a new block is needed. Raises BrokerError if none can be allocated."""
        while not self._block:
            async with self._allocating:
                # Another request may have allocated a block meanwhile.
                if not self._block:
                    self._block, self._next_block = self._next_block or await self._allocate(), range(0)
                    self._low_mark = int(len(self._block) * _PREFETCH_FRACTION)
        producer_id, self._block = self._block[0], self._block[1:]
        return producer_id

    @property
    def should_prefetch(self) -> bool:
        """Whether the next block should be allocated now, before a request has to wait for it."""
        return len(self._block) <= self._low_mark and not self._next_block and not self._allocating.locked()

    async def prefetch(self) -> None:
        """Allocate the next block; a failure is only logged, because the next request tries again."""
        try:
            async with self._allocating:
                if not self._next_block:
                    self._next_block = await self._allocate()
        except BrokerError as error:
            log.warning("producer ids not allocated yet", extra={"error": str(error)})


class ControllerCalls(Protocol):
    """`ControllerChannel`."""

    async def call(self, request: Message, *, timeout_seconds: float = 30.0) -> Message:
        """Send a request to the active controller; raises BrokerError."""


def allocate_from_controller(
    channel: ControllerCalls, *, broker_id: int, broker_epoch: Callable[[], int]
) -> AllocateBlock:
    """Allocation of blocks by AllocateProducerIds requests."""

    async def allocate() -> range:
        request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=broker_epoch())
        try:
            response = await channel.call(request, timeout_seconds=_ALLOCATION_TIMEOUT_SECONDS)
            if not isinstance(response, AllocateProducerIdsResponse):
                raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"unexpected {type(response).__name__}")
            if response.error_code:
                raise BrokerError(ErrorCode(response.error_code))
        except BrokerError as error:
            # Clients cannot act on the controller's reasons, such as an outdated broker epoch: they just try again.
            message = f"the controller allocated no producer ids: {error}"
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, message) from error
        first = response.producer_id_start
        return range(first, first + response.producer_id_len)

    return allocate
