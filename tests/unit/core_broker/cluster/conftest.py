"""A started metadata quorum with one registered broker, on a disk of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.cluster.controller.controller import Controller
from core_broker.cluster.endpoints import AdvertisedEndpoints
from core_broker.cluster.quorum import MetadataQuorum
from core_broker.cluster.registration_request import registration_request
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings, Listener


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000_000)


@pytest.fixture
def settings() -> BrokerSettings:
    return BrokerSettings(num_partitions=2)


@pytest.fixture
async def quorum(tmp_path: Path, clock: ManualClock, settings: BrokerSettings) -> AsyncIterator[MetadataQuorum]:
    quorum = MetadataQuorum(tmp_path, cluster_id="test-cluster", settings=settings, clock=clock)
    quorum.start()
    yield quorum
    await quorum.close()


@pytest.fixture
async def controller(quorum: MetadataQuorum, clock: ManualClock, settings: BrokerSettings) -> Controller:
    controller = Controller(quorum, settings, clock)
    request = registration_request(
        settings,
        AdvertisedEndpoints.of([Listener("PLAINTEXT", "", 9092)], settings),
        cluster_id="test-cluster",
        incarnation_id=b"a" * 16,
        log_dirs=[b"d" * 16],
    )
    await controller.register_broker(request, unfence=True)
    return controller
