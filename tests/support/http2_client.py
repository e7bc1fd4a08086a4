"""A client of HTTP/2 that sends exactly what a test wants, whether that is allowed or not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

import h2.events
from h2.config import H2Configuration
from h2.connection import H2Connection

_TIMEOUT_S: Final = 10.0


class Http2Client:
    """One connection; what arrives is kept by stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        self.h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self.bodies: dict[int, bytes] = {}
        self.statuses: dict[int, int] = {}
        self.ended: set[int] = set()
        self.resets: dict[int, int] = {}
        self.goaways: list[int] = []
        self.is_closed = False
        self._reader, self._writer, self._host = reader, writer, host

    async def start(self) -> None:
        """Send the preface."""
        self.h2.initiate_connection()
        await self.flush()

    async def flush(self) -> None:
        """Send what is to be sent."""
        self._writer.write(self.h2.data_to_send())
        await self._writer.drain()

    async def request(self, path: str, *, method: str = "POST", ends: bool = False) -> int:
        """Begin a request; returns its stream."""
        stream = self.h2.get_next_available_stream_id()
        headers = [(":method", method), (":path", path), (":scheme", "http"), (":authority", self._host)]
        self.h2.send_headers(stream, headers, end_stream=ends)
        await self.flush()
        return stream

    async def send(self, stream: int, data: bytes, *, ends: bool = False) -> None:
        """Send a part of a body that fits into the window."""
        self.h2.send_data(stream, data, end_stream=ends)
        await self.flush()

    async def read(self, *, takes: bool = True) -> None:
        """Wait for the next bytes; `takes` makes room for what they were."""
        data = await asyncio.wait_for(self._reader.read(65536), _TIMEOUT_S)
        if not data:
            self.is_closed = True
            return
        for event in self.h2.receive_data(data):
            self._note(event, takes)
        await self.flush()

    async def frames(self) -> list[tuple[int, bytes]]:
        """Type and payload of the next frames, as they are: the library reads none behind a GOAWAY."""
        try:
            head = await asyncio.wait_for(self._reader.readexactly(9), _TIMEOUT_S)
        except asyncio.IncompleteReadError:
            self.is_closed = True
            return []
        return [(head[3], await self._reader.readexactly(int.from_bytes(head[:3])))]

    async def body(self, stream: int, *, lines: int | None = None) -> bytes:
        """The body of a response, or its beginning with so many lines."""
        while not self.is_closed and stream not in self.ended and stream not in self.resets:
            if lines is not None and self.bodies.get(stream, b"").count(b"\n") >= lines:
                break
            await self.read()
        return self.bodies.get(stream, b"")

    def _note(self, event: h2.events.Event, takes: bool) -> None:
        match event:
            case h2.events.ResponseReceived(stream_id=int(stream)):
                self.statuses[stream] = int(dict(event.headers or [])[":status"])  # type: ignore[index]  # decoded
            case h2.events.DataReceived(stream_id=int(stream)):
                self.bodies[stream] = self.bodies.get(stream, b"") + (event.data or b"")
                if takes and event.flow_controlled_length:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, stream)
            case h2.events.StreamEnded(stream_id=int(stream)):
                self.ended.add(stream)
            case h2.events.StreamReset(stream_id=int(stream)):
                self.resets[stream] = int(event.error_code or 0)
            case h2.events.ConnectionTerminated():
                self.goaways.append(int(event.error_code or 0))
            case _:
                pass


@asynccontextmanager
async def http2_client(url: str) -> AsyncIterator[Http2Client]:
    """A connection with prior knowledge."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        client = Http2Client(reader, writer, parts.netloc)
        await client.start()
        yield client
    finally:
        writer.close()
