"""A channel with TLS: what is decrypted is never lost or forgotten, and what is not sent is kept in order."""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core_broker.security.tls import client_context, server_context, server_store
from core_broker.server.tls_channel import TlsChannel
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
CLIENT = client_context(SETTINGS)
ALERT = 0x15


class Client:
    """The other end: TLS in memory, whose bytes are sent only when the test says so."""

    def __init__(self, context: ssl.SSLContext = CLIENT) -> None:
        self.theirs, self.socket = socket.socketpair()
        for end in (self.theirs, self.socket):
            end.setblocking(False)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="127.0.0.1")
        self.channel = TlsChannel(self.theirs, SERVER, asyncio.get_running_loop())

    def shake_hands(self) -> "Client":
        is_complete = False
        while not is_complete:
            with suppress(ssl.SSLWantReadError):
                self.tls.do_handshake()
            self.socket.sendall(self.outgoing.read())
            is_complete = self.channel.shake_hands()
            self.receive()
        return self

    def receive(self) -> bytes:
        """Everything that the channel has sent, decrypted; records of the handshake on the way."""
        found = b""
        with suppress(BlockingIOError):
            while data := self.socket.recv(1 << 20):
                self.incoming.write(data)
        with suppress(ssl.SSLWantReadError):
            while part := self.tls.read(1 << 20):
                found += part
        return found

    def encrypt(self, data: bytes) -> bytes:
        position = 0
        while position < len(data):
            position += self.tls.write(memoryview(data)[position:])
        return self.outgoing.read()


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    client = Client().shake_hands()
    yield client
    client.channel.close()
    client.socket.close()


def read_all(channel: TlsChannel, size: int) -> bytes:
    """Read with a buffer of this size until nothing is left."""
    found = b""
    view = memoryview(bytearray(size))
    with suppress(BlockingIOError):
        while count := channel.read_into(view):
            found += view[:count]
    return found


@pytest.mark.parametrize("size", [1, 100, 16 * 1024, 128 * 1024])
async def test_everything_is_read_whatever_the_size_of_the_buffer(client: Client, size: int) -> None:
    data = os.urandom(40_000)
    client.socket.sendall(client.encrypt(data))
    assert read_all(client.channel, size) == data


async def test_an_incomplete_record_is_not_ready_and_not_lost(client: Client) -> None:
    encrypted = client.encrypt(b"request")
    view = memoryview(bytearray(100))
    for byte in encrypted[:-1]:
        client.socket.sendall(bytes([byte]))
        with pytest.raises(BlockingIOError):
            client.channel.read_into(view)
    client.socket.sendall(encrypted[-1:])
    assert client.channel.read_into(view) == 7
    assert bytes(view[:7]) == b"request"


@settings(deadline=None, max_examples=30)
@given(parts=st.lists(st.integers(1, 60_000), max_size=8), cuts=st.lists(st.integers(1, 50_000), max_size=20))
def test_a_stream_cut_anywhere_is_read_whole(parts: list[int], cuts: list[int]) -> None:
    async def scenario() -> None:
        client = Client().shake_hands()
        data = [os.urandom(size) for size in parts]
        encrypted = b"".join(map(client.encrypt, data))
        found, position = b"", 0
        for cut in (*cuts, *([50_000] * (len(encrypted) // 50_000 + 1))):
            client.socket.sendall(encrypted[position : position + cut])
            position += cut
            found += read_all(client.channel, 20_000)
        assert found == b"".join(data)
        client.channel.close()
        client.socket.close()

    asyncio.run(scenario())


async def called(register: Callable[[Callable[[], None]], None]) -> None:
    """Wait until the channel calls its reader."""
    event = asyncio.Event()
    register(event.set)
    await asyncio.wait_for(event.wait(), 10)


async def test_the_reader_is_called_for_what_waits_behind_the_socket(client: Client) -> None:
    client.socket.sendall(client.encrypt(b"two requests"))
    view = memoryview(bytearray(3))
    assert client.channel.read_into(view) == 3
    await called(client.channel.start_reading)
    client.channel.stop_reading()
    assert read_all(client.channel, 100) == b" requests"


async def test_a_reader_that_leaves_something_is_called_again(client: Client) -> None:
    found: list[bytes] = []
    is_complete = asyncio.Event()

    def on_readable() -> None:
        view = memoryview(bytearray(5))
        with suppress(BlockingIOError):
            found.append(bytes(view[: client.channel.read_into(view)]))
        if sum(map(len, found)) == 12:
            is_complete.set()

    client.channel.start_reading(on_readable)
    client.socket.sendall(client.encrypt(b"two requests"))
    await asyncio.wait_for(is_complete.wait(), 10)
    assert b"".join(found) == b"two requests"


async def test_looking_for_the_end_takes_nothing_away(client: Client) -> None:
    with pytest.raises(BlockingIOError):
        client.channel.is_closed_by_client()
    client.socket.sendall(client.encrypt(b"request"))
    assert not client.channel.is_closed_by_client()
    assert not client.channel.is_closed_by_client()
    await called(client.channel.start_reading)
    assert read_all(client.channel, 4) == b"request"


@pytest.mark.parametrize("is_announced", [True, False])
async def test_the_end_is_noticed(client: Client, is_announced: bool) -> None:
    last = client.encrypt(b"last")
    if is_announced:
        with suppress(ssl.SSLWantReadError):
            client.tls.unwrap()
    client.socket.sendall(last + client.outgoing.read())
    client.socket.close()
    view = memoryview(bytearray(100))
    assert client.channel.read_into(view) == 4
    assert client.channel.read_into(view) == 0
    assert client.channel.is_closed_by_client()


async def test_what_is_written_arrives(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"0123456789")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert (client.channel.write(b"head ", socket.MSG_MORE), client.channel.has_unsent) == (5, True)
        assert (client.channel.send_file(descriptor, 2, 3), client.channel.has_unsent) == (3, False)
        assert client.channel.send_file(descriptor, 10, 3) == 0
    finally:
        os.close(descriptor)
    assert client.receive() == b"head 234"


async def test_a_full_socket_keeps_everything_in_order(client: Client) -> None:
    data = os.urandom(3 << 20)
    sent = 0
    with suppress(BlockingIOError):
        while sent < len(data):
            sent += client.channel.write(memoryview(data)[sent:], 0)
    assert (sent < len(data), client.channel.has_unsent, client.channel.flush()) == (True, True, False)
    found = b""
    while len(found) < len(data):
        found += client.receive()
        with suppress(BlockingIOError):
            while sent < len(data):
                sent += client.channel.write(memoryview(data)[sent:], 0)
        client.channel.flush()
    assert found == data


async def test_closing_tells_the_other_side_that_nothing_was_cut_off(client: Client) -> None:
    client.channel.close()
    client.incoming.write(client.socket.recv(1000))
    assert client.tls.read(1) == b""


async def test_a_failed_handshake_is_answered_with_an_alert() -> None:
    newest = SETTINGS.replace(ssl_enabled_protocols=("TLSv1.3",))
    client = Client(client_context(SETTINGS.replace(ssl_enabled_protocols=("TLSv1.2",))))
    client.channel = TlsChannel(client.theirs, server_context(newest, server_store(newest)), asyncio.get_running_loop())
    with suppress(ssl.SSLWantReadError):
        client.tls.do_handshake()
    client.socket.sendall(client.outgoing.read())
    with pytest.raises(ssl.SSLError, match="UNSUPPORTED_PROTOCOL"):
        client.channel.shake_hands()
    assert client.channel.speaks_tls
    assert client.socket.recv(100)[0] == ALERT
    client.channel.close()
    client.socket.close()


async def test_a_client_without_tls_is_told_apart() -> None:
    client = Client()
    client.socket.sendall(b"\x00\x00\x00\x14\x00\x12\x00\x03" + bytes(12))
    with pytest.raises(ssl.SSLError):
        client.channel.shake_hands()
    assert not client.channel.speaks_tls
    client.channel.close()
    client.socket.close()


async def test_a_client_that_leaves_during_the_handshake() -> None:
    client = Client()
    client.socket.close()
    with pytest.raises(ConnectionResetError):
        client.channel.shake_hands()
    client.channel.close()
