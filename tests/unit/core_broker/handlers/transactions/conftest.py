"""The broker without sockets, with transactions."""

from collections.abc import AsyncIterator

import pytest

from tests.support.handler_world import HandlerWorld
from tests.support.transaction_handler_world import TransactionHandlers, transaction_handlers


@pytest.fixture
async def handlers(world: HandlerWorld) -> AsyncIterator[TransactionHandlers]:
    async with transaction_handlers(world) as handlers:
        yield handlers
