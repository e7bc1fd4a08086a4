"""A whole node in this process."""

from contextlib import AsyncExitStack
from pathlib import Path

from core_broker.broker import Links, start
from core_broker.cluster.controller.topics import NewTopic
from core_broker.cluster.metadata import PartitionImage
from core_broker.handlers.context import Services
from core_broker.metrics import BrokerMetrics
from core_broker.protocol.principals import Principal
from core_broker.security.acls import AclEntry
from core_broker.security.operations import Operation, ResourceType
from core_broker.server.server import Server
from core_broker.service.clock import SystemClock
from core_broker.settings import BrokerSettings, Listener
from core_broker.settings.authorization import STANDARD_AUTHORIZER


async def started(path: Path, stack: AsyncExitStack, **changes: object) -> Services:
    """The parts of a running node; the stack stops it."""
    settings = BrokerSettings(log_dirs=(str(path),), listeners=(Listener("PLAINTEXT", "127.0.0.1", 0),))
    settings = settings.replace(**changes)
    metrics = BrokerMetrics()
    links, server = Links.of(settings), Server(settings, metrics)
    await start(settings, SystemClock(), stack, metrics=metrics, links=links, server=server)
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


async def test_a_node_without_an_authorizer_has_none(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        assert (await started(tmp_path, stack)).authorizer is None


async def test_acls_are_in_force_when_clients_are_admitted_and_after_a_restart(tmp_path: Path) -> None:
    alice, read = Principal("User", "alice"), AclEntry(2, "orders", 3, "User:alice", "*", Operation.READ, 3)
    for is_stored in (False, True):
        async with AsyncExitStack() as stack:
            services = await started(tmp_path, stack, authorizer_class_name=STANDARD_AUTHORIZER)
            authorizer = services.authorizer
            assert authorizer is not None
            assert authorizer.is_loaded
            assert authorizer.allows(alice, "::1", Operation.READ, ResourceType.TOPIC, "orders") is is_stored
            assert await services.controller.create_acls([read]) == [None]
            assert authorizer.allows(alice, "::1", Operation.READ, ResourceType.TOPIC, "orders")
