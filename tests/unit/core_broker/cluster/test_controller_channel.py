"""Requests reach the active controller, wherever it is and wherever it moves to."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from core_broker.cluster.controller_channel import ControllerChannel, Requester, has_not_controller_error
from core_broker.errors import BrokerError, ErrorCode
from core_broker.peers.peers import Peers
from core_broker.protocol.fields import Message, decode, encode
from core_broker.protocol.frames import parse_client_id, unpack_header
from core_broker.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from core_broker.protocol.messages.alter_partition import (
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from core_broker.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from core_broker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from core_broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from core_broker.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from core_broker.protocol.principals import Principal
from tests.support.controller_location import KnownController
from tests.support.scripted_peer import PeerSession, answering, scripted_peer

VERSIONS = ApiVersionsResponse(api_keys=[ApiVersion(58, 0, 0), ApiVersion(63, 0, 1), ApiVersion(67, 0, 0)])
REQUEST = AllocateProducerIdsRequest(broker_id=1)
FROM_FOLLOWER = AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
FROM_CONTROLLER = AllocateProducerIdsResponse(producer_id_start=1000, producer_id_len=1000)
PRINCIPAL = bytes.fromhex("0000 05 55736572 06 616c696365 00 00")


@pytest.fixture
async def peers() -> AsyncIterator[Peers]:
    peers = Peers(client_id="test", reconnect_seconds=0)
    yield peers
    await peers.close()


async def local(_request: Message) -> Message:
    """What the handler of this process answers."""
    return AllocateProducerIdsResponse(producer_id_start=5)


async def silent(session: PeerSession) -> None:
    """A controller that has been paused."""
    await session.until_closed()


async def test_the_controller_in_this_process_is_called_without_a_connection(peers: Peers) -> None:
    location = KnownController()
    location.is_leader = True
    response = await ControllerChannel(peers, location, local=local).call(REQUEST)
    assert response == AllocateProducerIdsResponse(producer_id_start=5)


async def test_another_node_is_called_over_the_network(peers: Peers) -> None:
    async with scripted_peer(answering(VERSIONS, FROM_CONTROLLER)) as controller:
        channel = ControllerChannel(peers, KnownController(controller.address), local=local)
        assert await channel.call(REQUEST) == FROM_CONTROLLER


async def test_a_request_follows_the_controller_to_another_node(peers: Peers) -> None:
    location = KnownController()

    async def deposed(session: PeerSession) -> None:
        session.answer(await session.receive(), VERSIONS)
        request = await session.receive()
        location.announce(successor.address)
        session.answer(request, FROM_FOLLOWER)

    async with scripted_peer(deposed) as first, scripted_peer(answering(VERSIONS, FROM_CONTROLLER)) as successor:
        location.announce(first.address)
        assert await ControllerChannel(peers, location, local=local).call(REQUEST) == FROM_CONTROLLER
    assert [request.key for request in first.requests] == [request.key for request in successor.requests] == [18, 67]


async def test_a_request_follows_the_controller_into_this_process(peers: Peers) -> None:
    location = KnownController()

    async def deposed(session: PeerSession) -> None:
        session.answer(await session.receive(), VERSIONS)
        request = await session.receive()
        location.is_leader = True
        session.answer(request, FROM_FOLLOWER)

    async with scripted_peer(deposed) as first:
        location.announce(first.address)
        response = await ControllerChannel(peers, location, local=local).call(REQUEST)
    assert response == AllocateProducerIdsResponse(producer_id_start=5)


async def test_a_request_leaves_a_controller_that_hangs_when_there_is_another(peers: Peers) -> None:
    location = KnownController()

    async def hanging(session: PeerSession) -> None:
        location.announce(successor.address)
        await session.until_closed()

    async with scripted_peer(hanging) as first, scripted_peer(answering(VERSIONS, FROM_CONTROLLER)) as successor:
        location.announce(first.address)
        assert await ControllerChannel(peers, location, local=local).call(REQUEST) == FROM_CONTROLLER


async def test_a_request_waits_for_a_controller(peers: Peers) -> None:
    location = KnownController()
    async with scripted_peer(answering(VERSIONS, FROM_CONTROLLER)) as controller:
        call = asyncio.create_task(ControllerChannel(peers, location, local=local).call(REQUEST))
        assert not (await asyncio.wait({call}, timeout=0.1))[0]
        location.announce(controller.address)
        assert await call == FROM_CONTROLLER


async def test_a_lost_connection_is_tried_again(peers: Peers) -> None:
    async def script(session: PeerSession) -> None:
        if controller.connections > 1:
            await answering(VERSIONS, FROM_CONTROLLER)(session)

    async with scripted_peer(script) as controller:
        channel = ControllerChannel(peers, KnownController(controller.address), local=local)
        assert await channel.call(REQUEST) == FROM_CONTROLLER


async def test_not_controller_raised_in_this_process_is_tried_again(peers: Peers) -> None:
    location = KnownController()
    location.is_leader = True

    async def deposed(_request: Message) -> Message:
        location.is_leader = False
        location.announce(successor.address)
        raise BrokerError(ErrorCode.NOT_CONTROLLER)

    async with scripted_peer(answering(VERSIONS, FROM_CONTROLLER)) as successor:
        assert await ControllerChannel(peers, location, local=deposed).call(REQUEST) == FROM_CONTROLLER


async def test_time_runs_out_without_a_controller(peers: Peers) -> None:
    channel = ControllerChannel(peers, KnownController(), local=local)
    with pytest.raises(BrokerError, match="the controller is unknown") as raised:
        await channel.call(REQUEST, timeout_seconds=0.1)
    assert raised.value.code == ErrorCode.REQUEST_TIMED_OUT


async def test_time_runs_out_while_no_node_is_the_controller(peers: Peers) -> None:
    async with scripted_peer(answering(VERSIONS, FROM_FOLLOWER)) as follower:
        channel = ControllerChannel(peers, KnownController(follower.address), local=local)
        with pytest.raises(BrokerError) as raised:
            await channel.call(REQUEST, timeout_seconds=0.5)
    assert raised.value.code == ErrorCode.REQUEST_TIMED_OUT


async def test_time_runs_out_while_the_controller_hangs_and_the_connection_is_dropped(peers: Peers) -> None:
    async with scripted_peer(silent) as controller:
        channel = ControllerChannel(peers, KnownController(controller.address), local=local)
        for _ in range(2):
            with pytest.raises(BrokerError, match="did not answer") as raised:
                await channel.call(REQUEST, timeout_seconds=0.1)
            assert raised.value.code == ErrorCode.REQUEST_TIMED_OUT
    assert controller.connections >= 2


async def test_a_slow_request_does_not_delay_heartbeats(peers: Peers) -> None:
    async def script(session: PeerSession) -> None:
        session.answer(await session.receive(), VERSIONS)
        request = await session.receive()
        if request.key == BrokerHeartbeatRequest.API_KEY:
            session.answer(request, BrokerHeartbeatResponse())
        await session.until_closed()

    async with scripted_peer(script) as controller:
        channel = ControllerChannel(peers, KnownController(controller.address), local=local)
        slow = asyncio.create_task(channel.call(REQUEST))
        assert await channel.call(BrokerHeartbeatRequest()) == BrokerHeartbeatResponse()
        slow.cancel()


async def test_an_envelope_has_the_frame_the_principal_and_the_address_of_the_client(peers: Peers) -> None:
    frame = b"\x00\x13\x00\x07 and the rest of a CreateTopics request"
    async with scripted_peer(answering(VERSIONS, EnvelopeResponse(b"response"))) as controller:
        channel = ControllerChannel(peers, KnownController(controller.address), local=local)
        assert (
            await channel.forward(frame, principal=Principal("User", "alice"), client_host="192.0.2.9") == b"response"
        )
    envelope = controller.requests[-1]
    assert envelope.decode(EnvelopeRequest) == EnvelopeRequest(frame, PRINCIPAL, bytes((192, 0, 2, 9)))
    body = bytes((len(frame) + 1,)) + frame + bytes((len(PRINCIPAL) + 1,)) + PRINCIPAL + b"\x05\xc0\x00\x02\x09\x00"
    assert envelope.frame.endswith(body)


async def test_a_request_of_this_broker_for_a_client_travels_in_an_envelope(peers: Peers) -> None:
    created = CreateTopicsResponse(topics=[CreatableTopicResult("orders")])
    inner = bytes(4) + b"\0" + bytes(encode(created, 7))
    async with scripted_peer(answering(VERSIONS, EnvelopeResponse(inner))) as controller:
        channel = ControllerChannel(peers, KnownController(controller.address), local=local)
        client = Requester(Principal("User", "alice"), "192.0.2.9", "app")
        request = CreateTopicsRequest([CreatableTopic("orders", 1, 1)])
        assert await channel.call_for(client, request, CreateTopicsResponse) == created
    envelope = controller.requests[-1].decode(EnvelopeRequest)
    assert isinstance(envelope, EnvelopeRequest)
    assert (envelope.request_principal, envelope.client_host_address) == (PRINCIPAL, bytes((192, 0, 2, 9)))
    frame = envelope.request_data
    assert unpack_header(frame, 0)[:2] == (19, 7)
    client_id, body = parse_client_id(frame, flexible=True)
    assert (client_id, decode(CreateTopicsRequest, 7, frame, body)) == ("app", request)


@pytest.mark.parametrize(
    "envelope_error,client_error",
    [
        (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNSUPPORTED_VERSION),
        (ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR),  # no error and no response either
        (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT),
    ],
)
async def test_the_error_of_an_envelope_becomes_one_for_the_client(
    peers: Peers, envelope_error: ErrorCode, client_error: ErrorCode
) -> None:
    async with scripted_peer(answering(VERSIONS, EnvelopeResponse(None, envelope_error))) as controller:
        channel = ControllerChannel(peers, KnownController(controller.address), local=local)
        seconds = 0.3 if envelope_error == ErrorCode.NOT_CONTROLLER else 60
        with pytest.raises(BrokerError) as raised:
            await channel.forward(b"", principal=Principal("User", "a"), client_host="::1", timeout_seconds=seconds)
    assert raised.value.code == client_error


def alter_partition(*codes: int) -> AlterPartitionResponse:
    """A response with an error for each partition."""
    partitions = [AlterPartitionResponsePartitionData(error_code=code, leader_id=41) for code in codes]
    return AlterPartitionResponse(topics=[AlterPartitionResponseTopicData(partitions=partitions)])


def test_not_controller_is_found_at_the_top_and_in_items() -> None:
    assert has_not_controller_error(AlterPartitionResponse(error_code=41))
    assert has_not_controller_error(alter_partition(0, 41))
    assert not has_not_controller_error(alter_partition(0, 0))


def test_a_huge_response_is_searched_only_in_part() -> None:
    assert not has_not_controller_error(alter_partition(*[0] * 20_000, 41))
