"""Connections are accepted within the limits, which may change while the broker runs."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from core_broker.server.server import Server
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings, Listener
from tests.support.handler_world import HandlerWorld

SETTINGS = BrokerSettings(listeners=(Listener("PLAINTEXT", "127.0.0.1", 0),))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[HandlerWorld]:
    world = HandlerWorld(tmp_path, SETTINGS, ManualClock(1_700_000_000_000))
    yield world
    await world.close()


@pytest.fixture
async def server(world: HandlerWorld) -> AsyncIterator[Server]:
    server = Server(SETTINGS, world.services.metrics)
    await server.bind()
    server.start(world.services)
    yield server
    server.close()


async def connect(server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", server.listeners[0].port)


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Whether the broker hangs up within a moment."""
    try:
        return await asyncio.wait_for(reader.read(1), 0.2) == b""
    except (TimeoutError, ConnectionResetError) as error:
        return isinstance(error, ConnectionResetError)


async def until(is_so: Callable[[], bool]) -> None:
    """Let the loop run until something is so; the test's time-out ends a wait in vain."""
    while not is_so():  # noqa: ASYNC110 - what is waited for is a counter
        await asyncio.sleep(0.01)


async def test_port_0_becomes_a_real_one(server: Server) -> None:
    assert server.listeners[0].port > 0


async def test_connections_over_the_total_are_closed(server: Server) -> None:
    server.configure(SETTINGS.replace(max_connections=2))
    readers = []
    writers = []
    for _ in range(3):
        reader, writer = await connect(server)
        readers.append(reader)
        writers.append(writer)
    assert [await is_closed(reader) for reader in readers] == [False, False, True]
    for writer in writers:
        writer.close()


async def test_an_address_can_have_a_limit_of_its_own(server: Server) -> None:
    server.configure(SETTINGS.replace(max_connections_per_ip=0, max_connections_per_ip_overrides=("127.0.0.1:1",)))
    first, first_writer = await connect(server)
    second, second_writer = await connect(server)
    assert not await is_closed(first)
    assert await is_closed(second)
    for writer in (first_writer, second_writer):
        writer.close()


async def test_new_connections_wait_when_too_many_come_in_a_second(world: HandlerWorld, server: Server) -> None:
    server.configure(SETTINGS.replace(max_connection_creation_rate=2))
    sockets = [socket.create_connection(("127.0.0.1", server.listeners[0].port)) for _ in range(4)]
    await asyncio.sleep(0.05)
    assert world.services.metrics.connections_accepted == 2
    await until(lambda: world.services.metrics.connections_accepted == 4)
    for each in sockets:
        each.close()


async def test_closed_connections_are_forgotten(world: HandlerWorld, server: Server) -> None:
    _, writer = await connect(server)
    await until(lambda: world.services.metrics.connections_open == 1)
    writer.close()
    await until(lambda: world.services.metrics.connections_open == 0)
