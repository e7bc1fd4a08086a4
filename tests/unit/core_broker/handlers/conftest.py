"""The broker without sockets that handlers are tested in."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings
from tests.support.handler_world import HandlerWorld


@pytest.fixture
def settings() -> BrokerSettings:
    return BrokerSettings(broker_rack="rack-a", num_partitions=3)


@pytest.fixture
async def world(tmp_path: Path, settings: BrokerSettings) -> AsyncIterator[HandlerWorld]:
    world = HandlerWorld(tmp_path, settings, ManualClock(1_700_000_000_000))
    await world.register()
    yield world
    await world.close()
