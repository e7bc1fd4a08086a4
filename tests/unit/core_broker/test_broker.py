"""A whole node in this process."""

from contextlib import AsyncExitStack
from pathlib import Path

from core_broker.broker import start
from core_broker.cluster.controller.topics import NewTopic
from core_broker.cluster.metadata import PartitionImage
from core_broker.handlers.context import Services
from core_broker.metrics import BrokerMetrics
from core_broker.peers.peers import Peers
from core_broker.server.server import Server
from core_broker.service.clock import SystemClock
from core_broker.settings import BrokerSettings, Listener


async def started(path: Path, stack: AsyncExitStack) -> Services:
    """The parts of a running node; the stack stops it."""
    settings = BrokerSettings(log_dirs=(str(path),), listeners=(Listener("PLAINTEXT", "127.0.0.1", 0),))
    metrics = BrokerMetrics()
    peers, server = Peers(client_id="test"), Server(settings, metrics)
    await start(settings, SystemClock(), stack, metrics=metrics, peers=peers, server=server)
    return server.services


def orders(services: Services) -> PartitionImage:
    return services.metadata.image.topics["orders"].partitions[0]


async def test_a_single_node_that_stopped_cleanly_keeps_its_leader_epochs(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        services = await started(tmp_path, stack)
        await services.controller.create_topics([NewTopic(name="orders", partition_count=1, replication_factor=1)])
        before = orders(services)
    async with AsyncExitStack() as stack:
        services = await started(tmp_path, stack)
        assert orders(services) == before
        assert not services.metadata.image.brokers[1].is_fenced
