"""What a node knows about the active controller, under the control of a test."""

import asyncio

from core_broker.cluster.metadata import MetadataImage
from core_broker.peers.peers import Address


class KnownController:
    """Says nothing of a controller before `announce`, or until `is_leader` is set."""

    def __init__(self, address: Address | None = None) -> None:
        self.is_leader = False
        self.image: MetadataImage | None = None
        self.controller_address = address
        self.is_known = asyncio.Event()
        self.is_awaited = asyncio.Event()

    @property
    def leader_id(self) -> int:
        """Any id while a controller is known."""
        return 1 if self.is_leader or self.controller_address is not None else -1

    def announce(self, address: Address) -> None:
        """There is a controller at this address."""
        self.controller_address = address
        self.is_known.set()

    async def wait_for_leader(self, timeout_seconds: float) -> None:
        """Wait for `announce`."""
        self.is_awaited.set()
        await asyncio.wait_for(self.is_known.wait(), timeout_seconds)
