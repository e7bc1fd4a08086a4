"""A node whose answers are scripted: for faults that a real broker does not have."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from core_broker.peers.peers import Address
from core_broker.protocol.fields import Message, decode, encode
from core_broker.protocol.frames import parse_client_id, unpack_header
from core_broker.protocol.messages.api_versions import ApiVersionsRequest
from tests.support.wire import sized

M = TypeVar("M", bound=Message)


@dataclass(frozen=True)
class ReceivedRequest:
    """One request, still encoded."""

    key: int
    version: int
    correlation_id: int
    frame: bytes

    def decode(self, message: type[M]) -> M:
        """The request itself."""
        _, body = parse_client_id(self.frame, flexible=self.version >= message.FLEXIBLE_SINCE)
        return decode(message, self.version, self.frame, body)


class PeerSession:
    """One connection to the scripted peer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, log: list[ReceivedRequest]) -> None:
        self._reader = reader
        self._writer = writer
        self._log = log

    async def receive(self) -> ReceivedRequest:
        """The next request."""
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        frame = await self._reader.readexactly(size)
        key, version, correlation_id = unpack_header(frame, 0)
        request = ReceivedRequest(key, version, correlation_id, frame)
        self._log.append(request)
        return request

    def answer(self, request: ReceivedRequest, response: Message, *, version: int | None = None) -> None:
        """Send a response."""
        self.send(response_frame(request, response, version=version))

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._writer.write(data)

    @property
    def certificate(self) -> Mapping[str, Any] | None:
        """What the other side has shown, if the connection is encrypted."""
        found: Mapping[str, Any] | None = self._writer.get_extra_info("peercert")
        return found or None

    async def until_closed(self) -> None:
        """Wait until the other side closes the connection; its requests are not answered."""
        while await self._reader.read(65536):
            pass


def response_frame(request: ReceivedRequest, response: Message, *, version: int | None = None) -> bytes:
    """A response with its length and header."""
    version = request.version if version is None else version
    has_tags = version >= response.FLEXIBLE_SINCE and request.key != ApiVersionsRequest.API_KEY
    tags = b"\0" if has_tags else b""
    return sized(struct.pack(">i", request.correlation_id) + tags + bytes(encode(response, version)))


@dataclass
class ScriptedPeer:
    """Where the peer listens, and what it received."""

    address: Address
    requests: list[ReceivedRequest] = field(default_factory=list)
    connections: int = 0


Script = Callable[[PeerSession], Awaitable[None]]


@asynccontextmanager
async def scripted_peer(script: Script, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[ScriptedPeer]:
    """A peer that runs the script on each connection, and closes the connection when the script ends."""
    peer = ScriptedPeer(Address("127.0.0.1", 0))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer.connections += 1
        try:
            await script(PeerSession(reader, writer, peer.requests))
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the caller has closed the connection, which the test looks at
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    peer.address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
    async with server:
        yield peer


def answering(*responses: Message) -> Script:
    """Answer every request with the response of its API."""
    by_key = {response.API_KEY: response for response in responses}

    async def script(session: PeerSession) -> None:
        while True:
            request = await session.receive()
            session.answer(request, by_key[request.key])

    return script
