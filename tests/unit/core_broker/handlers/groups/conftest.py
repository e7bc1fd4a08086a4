"""A broker whose groups work."""

from collections.abc import AsyncIterator

import pytest

from core_broker.settings import BrokerSettings
from tests.support.group_handler_world import GroupHandlers, group_handlers
from tests.support.handler_world import HandlerWorld


@pytest.fixture
def settings() -> BrokerSettings:
    return BrokerSettings(group_initial_rebalance_delay_ms=0, offset_metadata_max_bytes=10)


@pytest.fixture
async def broker(world: HandlerWorld) -> AsyncIterator[GroupHandlers]:
    async with group_handlers(world) as handlers:
        yield handlers
