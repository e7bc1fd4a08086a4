"""The broker without sockets that handlers are tested in, also with groups or transactions that work."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings
from tests.support.group_handler_world import GroupHandlers, group_handlers
from tests.support.handler_world import HandlerWorld
from tests.support.transaction_handler_world import TransactionHandlers, transaction_handlers


@pytest.fixture
def settings() -> BrokerSettings:
    return BrokerSettings(
        broker_rack="rack-a", num_partitions=3, group_initial_rebalance_delay_ms=0, offset_metadata_max_bytes=10
    )


@pytest.fixture
async def world(tmp_path: Path, settings: BrokerSettings) -> AsyncIterator[HandlerWorld]:
    world = HandlerWorld(tmp_path, settings, ManualClock(1_700_000_000_000))
    await world.register()
    yield world
    await world.close()


@pytest.fixture
async def broker(world: HandlerWorld) -> AsyncIterator[GroupHandlers]:
    async with group_handlers(world) as handlers:
        yield handlers


@pytest.fixture
async def handlers(world: HandlerWorld) -> AsyncIterator[TransactionHandlers]:
    async with transaction_handlers(world) as handlers:
        yield handlers
