"""Handshakes: limited in number and in time, and their failures are counted and explained."""

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator

import pytest

from core_broker.metrics import BrokerMetrics, LoginStats
from core_broker.security.tls import client_context, server_context, server_store
from core_broker.server.handshakes import Handshakes
from core_broker.server.tls_channel import TlsChannel
from core_broker.server.turns import Turns
from core_broker.settings.tls import TlsSettings
from tests.support.certificates import Authority

AUTHORITY = Authority()
_BROKER = AUTHORITY.issue()
SETTINGS = TlsSettings(
    ssl_keystore_key=_BROKER.key_pem(),
    ssl_keystore_certificate_chain=_BROKER.chain_pem,
    ssl_truststore_certificates=AUTHORITY.pem,
)
SERVER = server_context(SETTINGS, server_store(SETTINGS))


class World:
    """Handshakes and their clients."""

    def __init__(self, *, seconds_max: float = 60, count_max: int = 100) -> None:
        self.metrics = BrokerMetrics()
        turns = Turns(asyncio.get_running_loop())
        self.handshakes = Handshakes(turns, self.metrics, seconds_max=seconds_max, count_max=count_max)

    def begin(self) -> tuple[socket.socket, "asyncio.Future[TlsChannel | None]"]:
        """A client, and how its handshake will end."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        ended: asyncio.Future[TlsChannel | None] = asyncio.get_running_loop().create_future()
        self.handshakes.begin(ours, SERVER, {"listener": "EXTERNAL"}, ended.set_result)
        return theirs, ended


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    world.handshakes.close()


async def test_a_client_that_shakes_hands_gets_a_channel(world: World) -> None:
    client, ended = world.begin()
    assert len(world.handshakes) == 1
    _, writer = await asyncio.open_connection(sock=client, ssl=client_context(SETTINGS), server_hostname="127.0.0.1")
    channel = await asyncio.wait_for(ended, 10)
    assert channel is not None
    assert len(world.handshakes) == 0
    assert world.metrics.logins == {}
    channel.close()
    writer.close()


async def test_a_failure_is_explained_and_counted(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    client, ended = world.begin()
    stranger = ssl.create_default_context(cadata=Authority("Other").pem)
    client.setblocking(True)
    with pytest.raises(ssl.SSLError):
        await asyncio.to_thread(stranger.wrap_socket, client, server_hostname="127.0.0.1")
    assert await asyncio.wait_for(ended, 10) is None
    assert world.metrics.logins == {("EXTERNAL", "TLS"): LoginStats(failed=1)}
    (record,) = [found for found in caplog.records if found.message == "TLS handshake failed"]
    assert "does not trust the authority of the broker's certificate" in vars(record)["reason"]


async def test_a_client_that_says_nothing_is_disconnected() -> None:
    world = World(seconds_max=0.01)
    client, ended = world.begin()
    assert await asyncio.wait_for(ended, 10) is None
    assert client.recv(10) == b""
    client.close()


async def test_the_oldest_is_given_up_when_there_are_too_many() -> None:
    world = World(count_max=2)
    (_, first), (_, second), (_, third) = (world.begin() for _ in range(3))
    assert await asyncio.wait_for(first, 10) is None
    assert not second.done()
    assert not third.done()
    assert len(world.handshakes) == 2
    world.handshakes.close()
    assert (await second, await third) == (None, None)
    assert len(world.handshakes) == 0
