"""Requests that only the active controller can answer are forwarded to it."""

import asyncio
import gc
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import cast

import msgspec
import pytest

from core_broker.cluster.controller_channel import ControllerChannel
from core_broker.cluster.metadata import ResourceType
from core_broker.cluster.quorum import MetadataQuorum
from core_broker.errors import ErrorCode
from core_broker.handlers.session import Session
from core_broker.peers.peers import Address
from core_broker.protocol.fields import decode
from core_broker.protocol.frames import unpack_header
from core_broker.protocol.messages import incremental_alter_configs as configs
from core_broker.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from core_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from core_broker.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from core_broker.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from core_broker.server.dispatch import call_handler, dispatch
from core_broker.server.server import Server
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings, Listener
from tests.support.controller_location import KnownController
from tests.support.handler_world import BROKEN_STORE, HandlerWorld
from tests.support.scripted_peer import answering, scripted_peer
from tests.support.wire import frame

SETTINGS = BrokerSettings(
    listeners=(Listener("PLAINTEXT", "127.0.0.1", 0), Listener("CONTROLLER", "127.0.0.1", 0)),
    controller_listener_names=("CONTROLLER",),
)
CREATE = CreateTopicsRequest([CreatableTopic("orders", 2, 1)])


@pytest.fixture
async def controller(tmp_path: Path) -> AsyncIterator[HandlerWorld]:
    world = HandlerWorld(tmp_path / "controller", SETTINGS, ManualClock(1_700_000_000_000))
    await world.register()
    yield world
    await world.close()


@pytest.fixture
async def controller_address(controller: HandlerWorld) -> AsyncIterator[Address]:
    server = Server(SETTINGS, controller.services.metrics)
    await server.bind()
    server.start_controller(controller.services)
    yield Address("127.0.0.1", server.controller_listeners[0].port)
    server.close()


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[HandlerWorld]:
    """A node that is not the controller; a test says where that is."""
    world = HandlerWorld(tmp_path / "broker", SETTINGS, ManualClock(1_700_000_000_000))
    yield world
    await world.close()


def point(broker: HandlerWorld, address: Address | None) -> KnownController:
    """The active controller is at this address."""
    location = KnownController(address)
    location.image = broker.quorum.image
    broker.services = msgspec.structs.replace(
        broker.services,
        metadata=cast("MetadataQuorum", location),
        controller_channel=ControllerChannel(broker.peers, location, local=broker.call_local),
    )
    return location


async def test_the_controller_answers_a_request_that_another_broker_received(
    broker: HandlerWorld, controller: HandlerWorld, controller_address: Address
) -> None:
    point(broker, controller_address)
    response = await broker.call(CREATE, CreateTopicsResponse, 7)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("orders", 0)]
    assert "orders" in controller.quorum.image.topics
    assert "orders" not in broker.quorum.image.topics


async def test_the_controller_gets_what_the_broker_does_not_refuse_itself(
    broker: HandlerWorld, controller: HandlerWorld, controller_address: Address
) -> None:
    await broker.register()
    point(broker, controller_address)
    store = configs.AlterableConfig("listener.name.external.ssl.keystore.location", 0, BROKEN_STORE)
    timeout = configs.AlterableConfig("consumer.session.timeout.ms", 0, "50000")
    request = configs.IncrementalAlterConfigsRequest(
        [
            configs.AlterConfigsResource(ResourceType.BROKER, "1", [store]),
            configs.AlterConfigsResource(ResourceType.GROUP, "g", [timeout]),
        ]
    )
    response = await broker.call(request, configs.IncrementalAlterConfigsResponse, 1)
    found = {item.resource_name: (item.error_code, item.error_message) for item in response.responses}
    assert found == {"g": (0, None), "1": (ErrorCode.INVALID_REQUEST, f"cannot read {BROKEN_STORE}")}
    image = controller.quorum.image
    assert image.config_of(ResourceType.GROUP, "g") == {"consumer.session.timeout.ms": "50000"}
    assert image.config_of(ResourceType.BROKER, "1") == {}


async def test_an_error_of_the_controller_reaches_the_client(
    broker: HandlerWorld, controller: HandlerWorld, controller_address: Address
) -> None:
    await controller.create("orders")
    point(broker, controller_address)
    response = await broker.call(CREATE, CreateTopicsResponse, 3)
    assert [topic.error_code for topic in response.topics] == [ErrorCode.TOPIC_ALREADY_EXISTS]


@pytest.mark.parametrize("code", [ErrorCode.INVALID_REQUEST, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE])
async def test_a_refused_envelope_is_an_unknown_server_error(broker: HandlerWorld, code: ErrorCode) -> None:
    versions = ApiVersionsResponse(api_keys=[ApiVersion(58, 0, 0)])
    async with scripted_peer(answering(versions, EnvelopeResponse(None, code))) as peer:
        point(broker, peer.address)
        topics = (await broker.call(CREATE, CreateTopicsResponse, 7)).topics
        features = await broker.call(UpdateFeaturesRequest(), UpdateFeaturesResponse, 1)
    assert [(topic.name, topic.error_code) for topic in topics] == [("orders", ErrorCode.UNKNOWN_SERVER_ERROR)]
    assert features.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


async def test_the_frame_and_the_client_are_in_the_envelope(broker: HandlerWorld) -> None:
    versions = ApiVersionsResponse(api_keys=[ApiVersion(58, 0, 0)])
    async with scripted_peer(answering(versions, EnvelopeResponse(None, ErrorCode.INVALID_REQUEST))) as peer:
        point(broker, peer.address)
        await broker.call(CREATE, CreateTopicsResponse, 7)
    envelope = peer.requests[-1].decode(EnvelopeRequest)
    assert envelope.request_data == frame(CREATE, 7, correlation_id=77)[4:]
    assert envelope.client_host_address == bytes((192, 0, 2, 9))
    assert envelope.request_principal == b"\0\0\5User\x0aANONYMOUS\0\0"


async def test_a_request_that_waits_for_a_controller_outlives_the_buffer_it_was_received_into(
    broker: HandlerWorld, controller: HandlerWorld, controller_address: Address
) -> None:
    location = point(broker, None)
    server = Server(SETTINGS, broker.services.metrics)
    await server.bind()
    server.start(broker.services)
    streams = [await asyncio.open_connection("127.0.0.1", server.listeners[0].port) for _ in range(2)]
    (reader, writer), (other_reader, other_writer) = streams
    writer.write(frame(CREATE, 7))
    await location.is_awaited.wait()
    other_writer.write(frame(ApiVersionsRequest("not a name of software " * 20), 4))
    await asyncio.wait_for(other_reader.readexactly(8), 60)
    location.announce(controller_address)
    size = int.from_bytes(await asyncio.wait_for(reader.readexactly(4), 60))
    response = decode(CreateTopicsResponse, 7, await reader.readexactly(size), 5)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("orders", 0)]
    for stream in (writer, other_writer):
        stream.close()
    server.close()


async def test_a_client_whose_request_the_controller_cannot_decode_is_disconnected(broker: HandlerWorld) -> None:
    versions = ApiVersionsResponse(api_keys=[ApiVersion(58, 0, 0)])
    async with scripted_peer(answering(versions, EnvelopeResponse(None, ErrorCode.UNSUPPORTED_VERSION))) as peer:
        point(broker, peer.address)
        server = Server(SETTINGS, broker.services.metrics)
        await server.bind()
        server.start(broker.services)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.listeners[0].port)
        writer.write(frame(CREATE, 7))
        assert await asyncio.wait_for(reader.read(1), 60) == b""
        writer.close()
        server.close()
    assert broker.services.metrics.frames_refused == 1


async def test_the_controller_handles_its_own_requests_without_a_frame(controller: HandlerWorld) -> None:
    response = await call_handler(CREATE, controller.services)
    assert isinstance(response, CreateTopicsResponse)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("orders", 0)]


async def test_a_request_that_is_cancelled_before_it_begins_leaves_no_coroutine_that_was_never_awaited(
    controller: HandlerWorld,
) -> None:
    received = memoryview(frame(CREATE, 7))[4:]
    session = Session(host="192.0.2.9", listener_name="CONTROLLER", local_host="127.0.0.1", is_controller_listener=True)
    answer = dispatch(received, unpack_header(received, 0), session, controller.services)
    assert isinstance(answer, Coroutine)
    task = asyncio.get_running_loop().create_task(answer)
    task.cancel()
    await asyncio.wait([task])
    del answer, task
    gc.collect()  # a warning about a coroutine that was never awaited fails the test


async def test_topics_that_cannot_be_created_on_a_broken_disk_have_an_error_each(
    controller: HandlerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_descriptor: int) -> None:
        raise OSError("I/O error")

    monkeypatch.setattr("os.fdatasync", broken)
    monkeypatch.setattr("os.fsync", broken)
    response = await controller.call(CREATE, CreateTopicsResponse, 7)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("orders", ErrorCode.KAFKA_STORAGE_ERROR)]
    monkeypatch.undo()


async def test_a_client_of_a_controller_that_has_just_lost_its_lead_is_answered_by_the_next_one(
    broker: HandlerWorld, controller: HandlerWorld, controller_address: Address
) -> None:
    location = point(broker, controller_address)
    location.is_leader = True
    broker.quorum.node.resign(0.0)
    asyncio.get_running_loop().call_later(0.05, setattr, location, "is_leader", False)
    response = await broker.call(CREATE, CreateTopicsResponse, 7)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("orders", 0)]
    assert "orders" in controller.quorum.image.topics
