"""Requests to other nodes, and all that can go wrong with a connection."""

import asyncio
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.errors import ErrorCode
from core_broker.peers.connection import IN_FLIGHT_MAX
from core_broker.peers.peers import Address, PeerError, PeerRefusedError, Peers
from core_broker.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from core_broker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from core_broker.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from core_broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from core_broker.protocol.records import Record, build_batch
from core_broker.server.server import Server
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings, Listener
from tests.support.handler_world import HandlerWorld
from tests.support.scripted_peer import PeerSession, ReceivedRequest, answering, response_frame, scripted_peer

PATIENCE = 60.0
"""Seconds that no test needs; a call that is meant to fail for another reason has this time-out."""
SETTINGS = BrokerSettings(listeners=(Listener("PLAINTEXT", "127.0.0.1", 0),))
HEARTBEAT = BrokerHeartbeatRequest(broker_id=1, broker_epoch=7)


@pytest.fixture
async def peers() -> AsyncIterator[Peers]:
    peers = Peers(client_id="test", frame_bytes_max=4_000_000, reconnect_seconds=0)
    yield peers
    await peers.close()


async def heartbeat(peers: Peers, address: Address, *, epoch: int = 7, timeout_seconds: float = PATIENCE) -> int:
    """Send a heartbeat of version 1; returns the error code of its response."""
    request = BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch)
    response = await peers.call(address, request, timeout_seconds=timeout_seconds, version=1)
    assert isinstance(response, BrokerHeartbeatResponse)
    return response.error_code


def reply(request: ReceivedRequest) -> BrokerHeartbeatResponse:
    """A response that can be told from others: its error code is the epoch in the request."""
    return BrokerHeartbeatResponse(error_code=request.decode(BrokerHeartbeatRequest).broker_epoch)


# -- a real broker --


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[HandlerWorld]:
    world = HandlerWorld(tmp_path, SETTINGS, ManualClock(1_700_000_000_000))
    yield world
    await world.close()


@pytest.fixture
async def broker(world: HandlerWorld) -> AsyncIterator[Address]:
    server = Server(SETTINGS, world.services.metrics)
    await server.bind()
    server.start(world.services)
    await world.register()
    yield Address("127.0.0.1", server.listeners[0].port)
    server.close()


async def test_a_broker_answers_in_the_highest_common_version(
    peers: Peers, world: HandlerWorld, broker: Address
) -> None:
    await world.create("orders", 3)
    response = await peers.call(broker, MetadataRequest(topics=None), timeout_seconds=PATIENCE)
    assert isinstance(response, MetadataResponse)
    assert [(topic.name, len(topic.partitions)) for topic in response.topics] == [("orders", 3)]
    assert response.topics[0].topic_id != bytes(16)  # version 10 and later


async def test_a_large_fetch_response_is_a_view_of_the_buffer_it_was_received_into(
    peers: Peers, world: HandlerWorld, broker: Address
) -> None:
    topic_id = await world.create("orders", max_message_bytes="2000000")
    batch = bytes(build_batch([Record(timestamp=1, value=bytes(1_000_000))]))
    world.partition("orders").append(bytearray(batch), acks_all=False)
    request = FetchRequest(
        max_wait_ms=0,
        max_bytes=2_000_000,
        topics=[FetchTopic(topic_id=topic_id, partitions=[FetchPartition(0, partition_max_bytes=2_000_000)])],
    )
    response = await peers.call(broker, request, timeout_seconds=PATIENCE, version=18)
    assert isinstance(response, FetchResponse)
    records = response.responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    assert isinstance(records.obj, bytearray)
    assert len(batch) == len(records) < len(records.obj) < len(batch) + 200
    assert records[61:] == batch[61:]  # after the header, into which the log writes its epoch


# -- versions --


async def test_versions_are_asked_for_once_per_connection(peers: Peers) -> None:
    versions = ApiVersionsResponse(api_keys=[ApiVersion(63, 0, 1)])
    async with scripted_peer(answering(versions, BrokerHeartbeatResponse())) as peer:
        await asyncio.gather(*(peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE) for _ in range(3)))
    assert [(request.key, request.version) for request in peer.requests] == [(18, 4), (63, 1), (63, 1), (63, 1)]


async def test_a_peer_that_does_not_know_the_newest_api_versions_is_asked_again(peers: Peers) -> None:
    async def script(session: PeerSession) -> None:
        request = await session.receive()
        refusal = ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, [ApiVersion(18, 0, 2)])
        session.answer(request, refusal, version=0)
        request = await session.receive()
        session.answer(request, ApiVersionsResponse(api_keys=[ApiVersion(63, 0, 0)]))
        session.answer(await session.receive(), BrokerHeartbeatResponse(error_code=5))

    async with scripted_peer(script) as peer:
        response = await peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE)
    assert [(request.key, request.version) for request in peer.requests] == [(18, 4), (18, 2), (63, 0)]
    assert response == BrokerHeartbeatResponse(error_code=5)


@pytest.mark.parametrize("offered", [[], [ApiVersion(63, 3, 9)]], ids=["unknown", "newer"])
async def test_an_api_without_a_common_version_is_not_sent(peers: Peers, offered: list[ApiVersion]) -> None:
    async with scripted_peer(answering(ApiVersionsResponse(api_keys=offered))) as peer:
        with pytest.raises(PeerError, match="BrokerHeartbeatRequest, which is not supported here"):
            await peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE)
    assert [request.key for request in peer.requests] == [18]


async def test_the_versions_of_a_peer_can_be_the_request_itself(peers: Peers, broker: Address) -> None:
    response = await peers.call(broker, ApiVersionsRequest("test", "1"), timeout_seconds=PATIENCE, version=4)
    assert isinstance(response, ApiVersionsResponse)
    assert response.error_code == 0
    assert len(response.api_keys) > 10


async def test_a_given_version_is_sent_without_asking(peers: Peers) -> None:
    async with scripted_peer(answering(BrokerHeartbeatResponse())) as peer:
        await heartbeat(peers, peer.address)
    assert [(request.key, request.version) for request in peer.requests] == [(63, 1)]


# -- pipelining --


async def test_responses_find_their_requests_in_any_order(peers: Peers) -> None:
    async def script(session: PeerSession) -> None:
        requests = [await session.receive() for _ in range(IN_FLIGHT_MAX)]
        for request in reversed(requests):
            session.answer(request, reply(request))

    async with scripted_peer(script) as peer:
        codes = await asyncio.gather(*(heartbeat(peers, peer.address, epoch=n) for n in range(IN_FLIGHT_MAX)))
    assert codes == [0, 1, 2, 3, 4]
    assert peer.connections == 1


async def test_a_request_over_the_limit_is_sent_when_another_is_answered(peers: Peers) -> None:
    async def script(session: PeerSession) -> None:
        requests = [await session.receive() for _ in range(IN_FLIGHT_MAX)]
        next_one = asyncio.create_task(session.receive())
        assert not (await asyncio.wait({next_one}, timeout=0.1))[0]
        for request in requests:
            session.answer(request, reply(request))
        request = await next_one
        session.answer(request, reply(request))

    async with scripted_peer(script) as peer:
        codes = await asyncio.gather(*(heartbeat(peers, peer.address, epoch=n) for n in range(IN_FLIGHT_MAX + 1)))
    assert codes == [0, 1, 2, 3, 4, 5]


async def test_each_purpose_has_its_own_connection(peers: Peers) -> None:
    async with scripted_peer(answering(BrokerHeartbeatResponse())) as peer:
        for purpose in ("replica", "markers", "replica"):
            await peers.call(peer.address, HEARTBEAT, timeout_seconds=PATIENCE, purpose=purpose, version=0)
    assert peer.connections == 2


async def test_responses_that_arrive_together_and_in_pieces_are_read(peers: Peers) -> None:
    sizes = [10, 40_000, 3, 16_000, 17_000]

    async def script(session: PeerSession) -> None:
        data = b""
        for size in sizes:
            partition = PartitionData(records=bytes([size % 251]) * size)
            response = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])
            data += response_frame(await session.receive(), response)
        for start in range(0, len(data), 7_001):
            session.send(data[start : start + 7_001])
            await asyncio.sleep(0)

    async with scripted_peer(script) as peer:
        calls = [peers.call(peer.address, FetchRequest(), timeout_seconds=PATIENCE, version=12) for _ in sizes]
        responses = await asyncio.gather(*calls)
    received = [r.responses[0].partitions[0].records for r in responses if isinstance(r, FetchResponse)]
    assert [bytes(records or b"") for records in received] == [bytes([size % 251]) * size for size in sizes]


# -- faults --


async def test_a_connection_closed_in_the_middle_of_a_response_fails_all_its_requests(peers: Peers) -> None:
    async def script(session: PeerSession) -> None:
        requests = [await session.receive() for _ in range(3)]
        session.send(response_frame(requests[0], BrokerHeartbeatResponse())[:9])

    async with scripted_peer(script) as peer:
        calls = [heartbeat(peers, peer.address) for _ in range(3)]
        errors = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(error) for error in errors] == [PeerError] * 3
    assert "connection lost" in str(errors[0])


async def test_waiting_requests_fail_with_the_connection(peers: Peers) -> None:
    async def script(session: PeerSession) -> None:
        for _ in range(IN_FLIGHT_MAX):
            await session.receive()

    async with scripted_peer(script) as peer:
        calls = [heartbeat(peers, peer.address) for _ in range(2 * IN_FLIGHT_MAX)]
        errors = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(error) for error in errors] == [PeerError] * 2 * IN_FLIGHT_MAX


async def test_a_lost_connection_is_opened_again(peers: Peers) -> None:
    async def script(session: PeerSession) -> None:
        session.answer(await session.receive(), BrokerHeartbeatResponse())

    async with scripted_peer(script) as peer:
        await heartbeat(peers, peer.address)
        while True:  # the connection may be used until its end is noticed
            try:
                await heartbeat(peers, peer.address)
                break
            except PeerError:
                pass
    assert peer.connections >= 2


@pytest.mark.parametrize("size", [-1, 0, 3, 4_000_001, 2**31 - 1])
async def test_a_frame_of_an_invalid_size_closes_the_connection(peers: Peers, size: int) -> None:
    is_closed = asyncio.Event()

    async def script(session: PeerSession) -> None:
        await session.receive()
        session.send(struct.pack(">i", size) + bytes(8))
        await session.until_closed()
        is_closed.set()

    async with scripted_peer(script) as peer:
        with pytest.raises(PeerError, match=f"a frame of {size} bytes"):
            await heartbeat(peers, peer.address)
        await is_closed.wait()


async def test_a_response_to_no_request_closes_the_connection(peers: Peers) -> None:
    async def script(session: PeerSession) -> None:
        await session.receive()
        session.send(struct.pack(">ii", 8, 999) + bytes(4))
        await session.until_closed()

    async with scripted_peer(script) as peer:
        with pytest.raises(PeerError, match=r"unknown request \(999\)"):
            await heartbeat(peers, peer.address)


async def test_a_response_that_cannot_be_decoded_is_an_error(peers: Peers) -> None:
    async def script(session: PeerSession) -> None:
        request = await session.receive()
        session.send(struct.pack(">iib", 5, request.correlation_id, 0))
        session.answer(await session.receive(), BrokerHeartbeatResponse())

    async with scripted_peer(script) as peer:
        with pytest.raises(PeerError, match="invalid response"):
            await heartbeat(peers, peer.address)
        assert await heartbeat(peers, peer.address) == 0


async def test_a_peer_that_never_answers_is_connected_to_anew(peers: Peers) -> None:
    async def script(session: PeerSession) -> None:
        await session.until_closed()

    async with scripted_peer(script) as peer:
        for _ in range(2):
            with pytest.raises(PeerError, match="did not answer BrokerHeartbeatRequest within 0.05 seconds"):
                await heartbeat(peers, peer.address, timeout_seconds=0.05)
    assert peer.connections == 2


async def test_a_time_out_behind_a_slow_request_keeps_the_connection(peers: Peers) -> None:
    may_answer = asyncio.Event()

    async def script(session: PeerSession) -> None:
        requests = [await session.receive() for _ in range(2)]
        await may_answer.wait()
        for request in requests:
            session.answer(request, reply(request))
        request = await session.receive()
        session.answer(request, reply(request))

    async with scripted_peer(script) as peer:
        slow = asyncio.create_task(heartbeat(peers, peer.address, epoch=1))
        await asyncio.sleep(0)
        with pytest.raises(PeerError, match="did not answer"):
            await heartbeat(peers, peer.address, epoch=2, timeout_seconds=0.05)
        may_answer.set()
        assert await slow == 1
        assert await heartbeat(peers, peer.address, epoch=3) == 3
    assert peer.connections == 1


async def test_the_late_response_of_a_cancelled_request_is_dropped(peers: Peers) -> None:
    is_received, may_answer = asyncio.Event(), asyncio.Event()

    async def script(session: PeerSession) -> None:
        first = await session.receive()
        is_received.set()
        await may_answer.wait()
        session.answer(first, reply(first))
        second = await session.receive()
        session.answer(second, reply(second))

    async with scripted_peer(script) as peer:
        cancelled = asyncio.create_task(heartbeat(peers, peer.address, epoch=1))
        await is_received.wait()
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        other = asyncio.create_task(heartbeat(peers, peer.address, epoch=2))
        may_answer.set()
        assert await other == 2
    assert peer.connections == 1


async def test_requests_that_are_always_cancelled_do_not_block_a_connection_for_ever(peers: Peers) -> None:
    async def script(session: PeerSession) -> None:
        await session.until_closed()

    async with scripted_peer(script) as peer:
        while peer.connections < 2:  # each call waits for longer than its caller does
            with pytest.raises((TimeoutError, PeerError)):
                await asyncio.wait_for(heartbeat(peers, peer.address, timeout_seconds=0.06), 0.02)


async def test_an_address_that_refused_a_connection_is_left_alone_for_a_moment() -> None:
    async with scripted_peer(answering(BrokerHeartbeatResponse())) as peer:
        address = peer.address
    for reconnect_seconds, reason in ((3600.0, "refused a connection just now"), (0.0, "cannot connect to")):
        peers = Peers(client_id="test", reconnect_seconds=reconnect_seconds)
        with pytest.raises(PeerRefusedError, match="cannot connect to"):
            await heartbeat(peers, address)
        with pytest.raises(PeerRefusedError, match=reason):
            await heartbeat(peers, address)
        await peers.close()


async def test_close_fails_requests_without_a_response_and_all_later_ones() -> None:
    is_received = asyncio.Event()

    async def script(session: PeerSession) -> None:
        await session.receive()
        is_received.set()
        await session.until_closed()

    peers = Peers(client_id="test")
    async with scripted_peer(script) as peer:
        call = asyncio.create_task(heartbeat(peers, peer.address))
        await is_received.wait()
        await peers.close()
        for waiting in (call, heartbeat(peers, peer.address)):
            with pytest.raises(PeerError, match="closed"):
                await waiting
