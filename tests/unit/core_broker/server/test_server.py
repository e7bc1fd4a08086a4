"""Connections are accepted within the limits, which may change while the broker runs."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from core_broker.protocol.messages.api_versions import ApiVersionsRequest
from core_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from core_broker.server.server import Server
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings, Listener
from tests.support.handler_world import HandlerWorld
from tests.support.wire import frame

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


async def is_closed(reader: asyncio.StreamReader, *, within_seconds: float = 60.0) -> bool:
    """Whether the broker hangs up."""
    try:
        return await asyncio.wait_for(reader.read(1), within_seconds) == b""
    except (TimeoutError, ConnectionResetError) as error:
        return isinstance(error, ConnectionResetError)


async def until(is_so: Callable[[], bool]) -> None:
    """Let the loop run until something is so; the test's time-out ends a wait in vain."""
    while not is_so():  # noqa: ASYNC110 - what is waited for is a counter
        await asyncio.sleep(0.01)


async def test_port_0_becomes_a_real_one(server: Server) -> None:
    assert server.listeners[0].port > 0


async def ask(writer: asyncio.StreamWriter) -> None:
    writer.write(frame(ApiVersionsRequest("test", "1"), 3))
    await writer.drain()


async def test_connections_over_the_total_wait_until_another_is_closed(world: HandlerWorld, server: Server) -> None:
    server.configure(SETTINGS.replace(max_connections=2))
    opened = [await connect(server) for _ in range(3)]
    for _, writer in opened:
        await ask(writer)
    assert [await is_answered(reader) for reader, _ in opened[:2]] == [True, True]
    assert world.services.metrics.connections_accepted == 2
    opened[0][1].close()
    assert await is_answered(opened[2][0])
    for _, writer in opened:
        writer.close()


async def test_for_another_broker_the_least_used_connection_is_closed(world: HandlerWorld) -> None:
    listeners = (Listener("PLAINTEXT", "127.0.0.1", 0), Listener("INTERNAL", "127.0.0.1", 0))
    settings = SETTINGS.replace(listeners=listeners, inter_broker_listener_name="INTERNAL", max_connections=2)
    server = Server(settings, world.services.metrics)
    await server.bind()
    server.start(world.services)
    opened = []
    for number in range(2):
        server.tick = number
        opened.append(await connect(server))
        await ask(opened[number][1])
        assert await is_answered(opened[number][0])
    broker, broker_writer = await asyncio.open_connection("127.0.0.1", server.listeners[1].port)
    await ask(broker_writer)
    assert await is_answered(broker)
    assert await is_closed(opened[0][0])
    await ask(opened[1][1])
    assert await is_answered(opened[1][0])
    for writer in (broker_writer, *(writer for _, writer in opened)):
        writer.close()
    server.close()


async def test_an_address_over_its_quota_is_not_read_and_then_closed(world: HandlerWorld, server: Server) -> None:
    await world.set_quota("connection_creation_rate", 1, ip="127.0.0.1")
    opened = [await connect(server) for _ in range(11)]
    for _, writer in opened:
        await ask(writer)
    assert [await is_answered(reader) for reader, _ in opened[:10]] == [True] * 10
    assert await is_closed(opened[10][0])
    metrics = world.services.metrics
    assert (metrics.connections_accepted, metrics.connections_refused) == (10, 1)
    for _, writer in opened:
        writer.close()


async def test_a_server_that_stops_closes_the_connections_that_it_holds(world: HandlerWorld, server: Server) -> None:
    await world.set_quota("connection_creation_rate", 1, ip=None)
    opened = [await connect(server) for _ in range(11)]
    await until(lambda: world.services.metrics.connections_refused == 1)
    assert len(server._held) == 1
    server.close()
    assert not server._held
    assert await is_closed(opened[10][0])
    for _, writer in opened:
        writer.close()


async def test_an_address_can_have_a_limit_of_its_own(server: Server) -> None:
    server.configure(SETTINGS.replace(max_connections_per_ip=0, max_connections_per_ip_overrides=("127.0.0.1:1",)))
    first, first_writer = await connect(server)
    second, second_writer = await connect(server)
    assert await is_closed(second)
    assert not await is_closed(first, within_seconds=0.2)
    for writer in (first_writer, second_writer):
        writer.close()


async def test_new_connections_wait_when_too_many_come_in_a_window(world: HandlerWorld, server: Server) -> None:
    server.configure(SETTINGS.replace(max_connection_creation_rate=2))
    sockets = [socket.create_connection(("127.0.0.1", server.listeners[0].port)) for _ in range(22)]
    await until(lambda: world.services.metrics.connections_accepted >= 20)
    assert world.services.metrics.connections_accepted == 20
    await until(lambda: world.services.metrics.connections_accepted == 22)
    for each in sockets:
        each.close()


def large_request(size: int) -> bytes:
    """A produce request to a topic that there is not."""
    part = PartitionProduceData(0, bytes(size))
    return frame(ProduceRequest(None, -1, 1000, [TopicProduceData("missing", partition_data=[part])]), 9)


async def is_answered(reader: asyncio.StreamReader) -> bool:
    """Whether a whole answer comes."""
    try:
        size = int.from_bytes(await asyncio.wait_for(reader.readexactly(4), 60))
        return len(await reader.readexactly(size)) == size
    except (TimeoutError, asyncio.IncompleteReadError):
        return False


async def test_a_server_that_closes_to_clients_still_serves_other_nodes(world: HandlerWorld) -> None:
    listeners = (Listener("PLAINTEXT", "127.0.0.1", 0), Listener("CONTROLLER", "127.0.0.1", 0))
    server = Server(SETTINGS.replace(listeners=listeners), world.services.metrics)
    await server.bind()
    server.start_controller(world.services)
    server.start(world.services)
    client, client_writer = await connect(server)
    client_writer.write(frame(ApiVersionsRequest("test", "1"), 3))
    assert await is_answered(client)
    node, node_writer = await asyncio.open_connection("127.0.0.1", server.controller_listeners[0].port)
    server.close_to_clients()
    assert await is_closed(client)
    with pytest.raises(ConnectionRefusedError):
        await connect(server)
    node_writer.write(frame(ApiVersionsRequest("test", "1"), 3))
    assert await is_answered(node)
    for writer in (client_writer, node_writer):
        writer.close()
    server.close()


async def test_controller_listener_that_is_not_an_early_one_waits_for_the_acls(world: HandlerWorld) -> None:
    names = ("EARLY", "LATE")
    listeners = tuple(Listener(name, "127.0.0.1", 0) for name in names)
    settings = SETTINGS.replace(
        listeners=listeners,
        controller_listener_names=names,
        early_start_listeners=("EARLY",),
        process_roles=("controller",),
    )
    server = Server(settings, world.services.metrics)
    await server.bind()
    server.start_controller(world.services)
    early, late = [await asyncio.open_connection("127.0.0.1", each.port) for each in server.controller_listeners]
    for _, writer in (early, late):
        writer.write(frame(ApiVersionsRequest("test", "1"), 3))
    assert await is_answered(early[0])
    assert world.services.metrics.connections_accepted == 1
    server.start_other_controller_listeners()
    assert await is_answered(late[0])
    for _, writer in (early, late):
        writer.close()
    server.close()


@pytest.fixture
async def tight(world: HandlerWorld) -> AsyncIterator[Server]:
    """A server with room for one large request, and a bit."""
    server = Server(SETTINGS.replace(queued_max_request_bytes=1_200_000), world.services.metrics)
    await server.bind()
    server.start(world.services)
    yield server
    server.close()


async def test_large_requests_that_arrive_together_do_not_wait_for_each_other_for_ever(tight: Server) -> None:
    request = large_request(1_000_000)
    connections = [await connect(tight) for _ in range(5)]
    for start in range(0, len(request), 200_000):
        for _, writer in connections:
            writer.write(request[start : start + 200_000])
        await asyncio.sleep(0.01)
    assert all(await asyncio.gather(*(is_answered(reader) for reader, _ in connections)))
    assert tight.memory.reserved == 0
    for _, writer in connections:
        writer.close()


async def test_a_client_that_stops_in_the_middle_gives_way_when_others_wait(tight: Server) -> None:
    tight.stalled_seconds = 0.2
    stopped, stopped_writer = await connect(tight)
    stopped_writer.write(large_request(1_000_000)[:500_000])
    await until(lambda: tight.memory.reserved > 0)
    reader, writer = await connect(tight)
    writer.write(large_request(1_000_000))
    assert await is_answered(reader)
    assert await is_closed(stopped)
    for each in (writer, stopped_writer):
        each.close()


async def test_a_client_that_stops_in_the_middle_is_left_alone_while_there_is_room(server: Server) -> None:
    server.stalled_seconds = 0.05
    stopped, stopped_writer = await connect(server)
    stopped_writer.write(large_request(1_000_000)[:500_000])
    reader, writer = await connect(server)
    writer.write(large_request(1_000_000))
    assert await is_answered(reader)
    assert not await is_closed(stopped, within_seconds=0.2)
    for each in (writer, stopped_writer):
        each.close()


async def test_a_connection_that_ends_in_the_middle_gives_its_reservation_back(tight: Server) -> None:
    _, writer = await connect(tight)
    writer.write(large_request(1_000_000)[:500_000])
    await until(lambda: tight.memory.reserved > 0)
    writer.close()
    await until(lambda: tight.memory.reserved == 0)


async def test_a_small_request_waits_for_one_large_one_at_most(
    world: HandlerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(SETTINGS.replace(request_log_enable=True), world.services.metrics)
    await server.bind()
    server.start(world.services)
    request = large_request(300_000)
    bulk = [await connect(server) for _ in range(4)]
    small, small_writer = await connect(server)
    for _, writer in bulk:
        writer.write(request[:-30_000])
    await until(lambda: server.memory.reserved >= 4 * 300_000)
    await until(lambda: not any(writer.transport.get_write_buffer_size() for _, writer in bulk))
    for _ in range(100):  # rounds of the loop: the server reads what has arrived
        await asyncio.sleep(0)
    with caplog.at_level("INFO", logger="core_broker.requests"):
        # The loop gets no chance to run in between: all of it is there when it looks next, the small one last.
        for _, writer in bulk:
            writer.write(request[-30_000:])
        small_writer.write(frame(ApiVersionsRequest(), 0))
        assert await is_answered(small)
        assert all(await asyncio.gather(*(is_answered(reader) for reader, _ in bulk)))
    answered = [record.__dict__["api"] for record in caplog.records if record.name == "core_broker.requests"]
    assert sorted(answered) == ["ApiVersions", "Produce", "Produce", "Produce", "Produce"]
    assert answered.index("ApiVersions") <= 1
    for _, writer in (*bulk, (small, small_writer)):
        writer.close()
    server.close()


async def test_large_requests_that_come_in_pieces_are_all_answered(server: Server) -> None:
    request = large_request(300_000) * 3
    connections = [await connect(server) for _ in range(3)]
    for start in range(0, len(request), 70_001):
        for _, writer in connections:
            writer.write(request[start : start + 70_001])
            await asyncio.sleep(0)
    for _ in range(3):
        assert all(await asyncio.gather(*(is_answered(reader) for reader, _ in connections)))
    assert server.memory.reserved == 0
    for _, writer in connections:
        writer.close()


async def test_closed_connections_are_forgotten(world: HandlerWorld, server: Server) -> None:
    _, writer = await connect(server)
    await until(lambda: world.services.metrics.connections_open == 1)
    writer.close()
    await until(lambda: world.services.metrics.connections_open == 0)
