"""The metrics page, where other tests do not read it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from core_broker.security.operations import Operation, ResourceType
from core_broker.server.metrics_page import families
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings
from tests.support.handler_world import HandlerWorld

Samples = dict[tuple[str, ...], float]
DECISIONS = "kafka_server_authorizer_metrics_decisions_total"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[HandlerWorld]:
    world = HandlerWorld(tmp_path, BrokerSettings(), ManualClock(1_700_000_000_000))
    await world.register()
    yield world
    await world.close()


def read(world: HandlerWorld) -> dict[str, Samples]:
    """The samples of each metric, by their labels."""
    return {family.name: dict(family.samples) for family in families(world.services)}


async def test_decisions_of_the_authorizer_are_counted_by_outcome(world: HandlerWorld) -> None:
    world.enforce((Operation.CREATE, ResourceType.TOPIC, "orders"))
    for name, count in (("orders", 1), ("invoices", 2)):
        for _ in range(count):
            await world.call(CreateTopicsRequest([CreatableTopic(name, 1, 1)]), CreateTopicsResponse, 5)
    found = read(world)
    assert found["kafka_server_authorizer_metrics_acls_total_count"] == {(): 1}
    assert set(found[DECISIONS]) == {("allowed",), ("denied",)}
    assert found[DECISIONS]["allowed",] >= 1
    assert found[DECISIONS]["denied",] >= 2


async def test_without_an_authorizer_there_are_no_metrics_of_one(world: HandlerWorld) -> None:
    assert DECISIONS not in read(world)


async def test_logins_are_shown_by_listener_and_mechanism(world: HandlerWorld) -> None:
    world.services.metrics.login("EXTERNAL", "PLAIN").failed += 3
    found = read(world)
    assert found["kafka_server_socket_server_metrics_failed_authentication_total"] == {("EXTERNAL", "PLAIN"): 3}
    assert found["kafka_server_socket_server_metrics_successful_authentication_total"] == {("EXTERNAL", "PLAIN"): 0}
