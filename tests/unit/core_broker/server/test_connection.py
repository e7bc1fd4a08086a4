"""Requests of a producer are appended while earlier ones wait for their commit; responses come in order."""

import asyncio
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.cluster.metadata import PartitionImage
from core_broker.cluster.partition import Partition
from core_broker.protocol.messages.api_versions import ApiVersionsRequest
from core_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from core_broker.protocol.records import Record, build_batch
from core_broker.server.connection import Connection
from core_broker.server.server import Server
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings, Listener
from tests.support.handler_world import HandlerWorld
from tests.support.wire import frame

SETTINGS = BrokerSettings(listeners=(Listener("PLAINTEXT", "127.0.0.1", 0),))
FOLLOWER = 2


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[HandlerWorld]:
    world = HandlerWorld(tmp_path, SETTINGS, ManualClock(1_700_000_000_000))
    yield world
    await world.close()


@pytest.fixture
async def partition(world: HandlerWorld) -> Partition:
    """A partition whose records are committed once a follower has them, which is for the test to say."""
    await world.register()
    await world.create("orders")
    partition = world.partition("orders")
    leader = partition.leader_id
    replicas = (leader, FOLLOWER)
    partition.update(PartitionImage(replicas, replicas, leader, partition.leader_epoch + 1, 1))
    return partition


@pytest.fixture
async def client(world: HandlerWorld) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    server = Server(SETTINGS, world.services.metrics)
    await server.bind()
    server.start(world.services)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.listeners[0].port)
    yield reader, writer
    writer.close()
    server.close()


def produce(correlation_id: int, *, acks: int = -1) -> bytes:
    part = PartitionProduceData(0, bytes(build_batch([Record(timestamp=1, value=b"v")])))
    request = ProduceRequest(None, acks, 60_000, [TopicProduceData("orders", partition_data=[part])])
    return frame(request, 9, correlation_id=correlation_id)


async def until_end(partition: Partition, offset: int) -> None:
    """Wait until the log has so many records; the test's time-out ends a wait in vain."""
    while partition.log.end_offset < offset:  # noqa: ASYNC110 - what is waited for is a counter
        await asyncio.sleep(0.005)


def commit(partition: Partition, offset: int) -> None:
    """The follower has everything below an offset."""
    partition.follower_fetched(FOLLOWER, offset, log_start=0, broker_epoch=-1)


async def answered(reader: asyncio.StreamReader) -> int:
    """The correlation id of the next response."""
    size = int.from_bytes(await asyncio.wait_for(reader.readexactly(4), 60))
    (correlation_id,) = struct.unpack_from(">i", await reader.readexactly(size))
    assert isinstance(correlation_id, int)
    return correlation_id


async def nothing_comes(reader: asyncio.StreamReader) -> bool:
    try:
        await asyncio.wait_for(reader.readexactly(1), 0.1)
    except TimeoutError:
        return True
    return False


async def test_a_producer_need_not_wait_for_the_commit_of_its_earlier_requests(
    partition: Partition, client: tuple[asyncio.StreamReader, asyncio.StreamWriter]
) -> None:
    reader, writer = client
    for number in range(3):
        writer.write(produce(number))
    await until_end(partition, 3)
    assert await nothing_comes(reader)
    commit(partition, 2)
    assert [await answered(reader), await answered(reader)] == [0, 1]
    assert await nothing_comes(reader)
    commit(partition, 3)
    assert await answered(reader) == 2


async def test_a_response_that_is_ready_first_waits_for_those_before_it(
    partition: Partition, client: tuple[asyncio.StreamReader, asyncio.StreamWriter]
) -> None:
    reader, writer = client
    writer.write(produce(7))
    await until_end(partition, 1)
    writer.write(produce(8, acks=1))
    await until_end(partition, 2)
    assert await nothing_comes(reader)
    commit(partition, 1)
    assert [await answered(reader), await answered(reader)] == [7, 8]


async def test_other_requests_wait_until_everything_before_them_is_answered(
    world: HandlerWorld, partition: Partition, client: tuple[asyncio.StreamReader, asyncio.StreamWriter]
) -> None:
    reader, writer = client
    writer.write(produce(1) + frame(ApiVersionsRequest(), 0, correlation_id=2) + produce(3))
    await until_end(partition, 1)
    assert await nothing_comes(reader)
    assert partition.log.end_offset == 1
    assert "ApiVersions" not in world.services.metrics.requests
    commit(partition, 1)
    assert [await answered(reader), await answered(reader)] == [1, 2]
    await until_end(partition, 2)
    commit(partition, 2)
    assert await answered(reader) == 3


async def test_a_producer_has_a_limited_number_of_requests_in_the_log_that_are_not_committed(
    partition: Partition, client: tuple[asyncio.StreamReader, asyncio.StreamWriter]
) -> None:
    reader, writer = client
    for number in range(40):
        writer.write(produce(number))
    await until_end(partition, 16)
    assert await nothing_comes(reader)
    assert partition.log.end_offset == 16
    for end in range(1, 41):
        await until_end(partition, end)
        commit(partition, end)
    assert [await answered(reader) for _ in range(40)] == list(range(40))


async def test_a_connection_that_ends_forgets_what_it_waited_for(
    partition: Partition, client: tuple[asyncio.StreamReader, asyncio.StreamWriter], world: HandlerWorld
) -> None:
    _, writer = client
    for number in range(3):
        writer.write(produce(number))
    await until_end(partition, 3)
    writer.transport.abort()
    while world.services.metrics.connections_open:  # noqa: ASYNC110 - what is waited for is a counter
        await asyncio.sleep(0.005)
    commit(partition, 3)
    assert partition.high_watermark == 3


# --- throttled clients ------------------------------------------------------------------------------------------------


async def read_one(reader: asyncio.StreamReader) -> bytes:
    """One whole response."""
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4)))


def versions(correlation_id: int) -> bytes:
    return frame(ApiVersionsRequest("test", "1"), 0, correlation_id=correlation_id)


@pytest.fixture
async def server(world: HandlerWorld) -> AsyncIterator[Server]:
    server = Server(SETTINGS, world.services.metrics)
    await server.bind()
    server.start(world.services)
    yield server
    server.close()


async def until_appended(partition: Partition) -> None:
    """Let the loop run until there is a record; the test's time-out ends a wait in vain."""
    while partition.log.end_offset == 0:  # noqa: ASYNC110 - what is waited for is an offset
        await asyncio.sleep(0.01)


async def open_to(server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", server.listeners[0].port)


def only_connection(server: Server) -> Connection:
    (connection,) = server._connections
    return connection


async def test_a_throttled_connection_is_answered_and_then_not_read(world: HandlerWorld, server: Server) -> None:
    await world.register()
    await world.create("orders")
    await world.set_quota("producer_byte_rate", 1, client_id="wire")
    reader, writer = await open_to(server)
    writer.write(produce(1, acks=1) + versions(2))  # both arrive together
    assert int.from_bytes((await read_one(reader))[:4]) == 1
    other_reader, other_writer = await open_to(server)
    for correlation_id in range(20):
        writer.write(versions(3))
        other_writer.write(versions(correlation_id))
        assert int.from_bytes((await read_one(other_reader))[:4]) == correlation_id
    assert reader._buffer == b""  # type: ignore[attr-defined]  # what has arrived and was not read by this test
    for each in (writer, other_writer):
        each.close()


async def test_a_throttled_connection_goes_on_when_the_time_is_over(server: Server) -> None:
    reader, writer = await open_to(server)
    writer.write(versions(1))
    await read_one(reader)
    connection = only_connection(server)
    connection.throttle(3600)
    connection.throttle(1)  # a shorter one does not end it
    writer.write(versions(2) + versions(3))
    await asyncio.sleep(0)
    connection._end_throttle()
    assert [int.from_bytes((await read_one(reader))[:4]) for _ in range(2)] == [2, 3]
    connection.throttle(0.01)
    writer.write(versions(4))
    assert int.from_bytes((await read_one(reader))[:4]) == 4
    writer.close()


async def test_a_producer_without_responses_is_not_read_either(world: HandlerWorld, server: Server) -> None:
    await world.register()
    await world.create("orders")
    await world.set_quota("producer_byte_rate", 1, client_id="wire")
    _, writer = await open_to(server)
    for correlation_id in range(3):
        writer.write(produce(correlation_id, acks=0))
        await writer.drain()
    await until_appended(world.partition("orders"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert world.partition("orders").log.end_offset == 1
    writer.close()


async def test_a_throttled_connection_does_not_live_longer_than_an_idle_one(server: Server) -> None:
    reader, writer = await open_to(server)
    writer.write(versions(1))
    await read_one(reader)
    connection = only_connection(server)
    tick = connection.last_tick
    connection.throttle(3600)
    writer.write(versions(2))
    server.tick += 5
    for _ in range(20):
        await asyncio.sleep(0)
    assert connection.last_tick == tick
    connection.close()
    assert connection._throttle is not None
    assert connection._throttle.cancelled()
    connection.throttle(1)
    assert connection._throttle.cancelled()
    writer.close()


async def test_a_response_that_waited_for_its_commit_throttles_when_it_is_sent(
    world: HandlerWorld, partition: Partition, server: Server
) -> None:
    await world.set_quota("producer_byte_rate", 1, client_id="wire")
    reader, writer = await open_to(server)
    writer.write(produce(1))
    await until_appended(partition)
    writer.write(versions(2))
    commit(partition, 1)
    assert int.from_bytes((await read_one(reader))[:4]) == 1
    connection = only_connection(server)
    assert connection._throttle is not None
    connection._end_throttle()
    assert int.from_bytes((await read_one(reader))[:4]) == 2
    writer.close()
