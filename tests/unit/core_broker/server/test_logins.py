"""Logins of a connection: the first one, those that follow, and sessions that end."""

import asyncio
import struct
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from core_broker.handlers.session import Session
from core_broker.protocol.fields import encode
from core_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from core_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from core_broker.security.sasl.listener import DELAYED_MAX, SaslListeners
from core_broker.server.authentication import Reply
from core_broker.server.logins import Login, Logins
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings
from tests.support.handler_world import HandlerWorld
from tests.support.sasl_world import scram_services

SETTINGS = BrokerSettings.parse(
    {
        "listeners": "EXTERNAL://localhost:9094,INTERNAL://localhost:9092",
        "listener.security.protocol.map": "EXTERNAL:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "sasl.enabled.mechanisms": "PLAIN",
        "connections.max.reauth.ms": "10000",
        "listener.name.external.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule"
        " required user_alice=secret;",
    }
)
HANDSHAKE = struct.pack(">hhih", 17, 1, 1, -1) + encode(SaslHandshakeRequest("PLAIN"), 1)
MESSAGE = struct.pack(">hhih", 36, 1, 2, -1) + encode(SaslAuthenticateRequest(b"\0alice\0secret"), 1)
METADATA = struct.pack(">hhih", 3, 9, 3, -1)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[HandlerWorld]:
    found = HandlerWorld(tmp_path, SETTINGS, ManualClock(1_000_000))
    yield found
    await found.close()


@pytest.fixture
def logins(world: HandlerWorld) -> Iterator[Logins]:
    found = Logins(SaslListeners(SETTINGS, world.clock, scram_services()), world.services)
    yield found
    found.close()


def login_of(logins: Logins, listener: str = "EXTERNAL") -> Login | None:
    return logins.of(Session(host="10.0.0.7", listener_name=listener, local_host="10.0.0.1"))


def receive(login: Login, *frames: bytes) -> list[Reply | None]:
    replies = []
    for frame in frames:
        reply = login.receive(memoryview(frame))
        assert reply is None or isinstance(reply, Reply)
        replies.append(reply)
    return replies


def logged_in(logins: Logins) -> Login:
    login = login_of(logins)
    assert login is not None
    receive(login, HANDSHAKE, MESSAGE)
    assert not login.is_in_progress
    return login


def test_a_listener_without_sasl_has_no_logins(logins: Logins) -> None:
    assert login_of(logins, "INTERNAL") is None


def test_requests_are_passed_on_after_the_login(logins: Logins) -> None:
    login = login_of(logins)
    assert login is not None
    before = login.frame_bytes
    receive(login, HANDSHAKE, MESSAGE)
    assert (before, login.frame_bytes) == ((8, 524_288), None)
    assert receive(login, METADATA) == [None]


def test_a_session_that_has_ended_closes_the_connection(logins: Logins, world: HandlerWorld) -> None:
    login = logged_in(logins)
    world.clock.advance(9_999)
    assert receive(login, METADATA) == [None]
    world.clock.advance(1)
    (reply,) = receive(login, METADATA)
    assert reply is not None
    assert reply.closes
    assert reply.response is None
    assert world.services.metrics.sessions_expired == 1


def test_a_client_may_log_in_again_after_its_session_has_ended(logins: Logins, world: HandlerWorld) -> None:
    login = logged_in(logins)
    world.clock.advance(20_000)
    handshake, message = receive(login, HANDSHAKE, MESSAGE)
    assert handshake is not None
    assert message is not None
    assert not message.closes
    assert receive(login, METADATA) == [None]
    assert [stats.renewals_succeeded for stats in world.services.metrics.logins.values()] == [1]


def test_a_client_that_logs_in_again_too_soon_gets_an_error_and_stays(logins: Logins, world: HandlerWorld) -> None:
    login = logged_in(logins)
    world.clock.advance(2_000)
    receive(login, HANDSHAKE, MESSAGE)
    assert receive(login, HANDSHAKE) == [None]
    world.clock.advance(1_000)
    assert receive(login, HANDSHAKE) != [None]


def test_nothing_else_is_answered_while_a_client_logs_in_again(logins: Logins, world: HandlerWorld) -> None:
    login = logged_in(logins)
    world.clock.advance(2_000)
    _, reply = receive(login, HANDSHAKE, METADATA)
    assert reply is not None
    assert reply.closes


async def test_only_so_many_connections_wait_for_a_failure(logins: Logins) -> None:
    waiting = [asyncio.create_task(logins.delay(1000)) for _ in range(DELAYED_MAX)]
    await asyncio.sleep(0)
    await asyncio.wait_for(logins.delay(1000), 10)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
