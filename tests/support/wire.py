"""A connection that speaks frames and nothing more: for what no client library would ever send."""

import socket
import struct
from typing import Final, Self, TypeVar

from core_broker.protocol.fields import Message, decode, encode

API_VERSIONS: Final = 18
R = TypeVar("R", bound=Message)


def frame(message: Message, version: int, *, correlation_id: int = 1, client_id: str | None = "wire") -> bytes:
    """A whole request frame, length included."""
    return sized(request_body(message, version, correlation_id=correlation_id, client_id=client_id))


def request_body(message: Message, version: int, *, correlation_id: int = 1, client_id: str | None = "wire") -> bytes:
    """A request without the length in front."""
    assert message.API_KEY is not None
    header = struct.pack(">hhi", message.API_KEY, version, correlation_id)
    name = b"\xff\xff" if client_id is None else struct.pack(">h", len(client_id)) + client_id.encode()
    tags = b"\x00" if version >= message.FLEXIBLE_SINCE else b""
    return header + name + tags + bytes(encode(message, version))


def sized(body: bytes) -> bytes:
    """Put the length in front."""
    return struct.pack(">i", len(body)) + body


class WireConnection:
    """A blocking TCP connection to a broker, the first of several."""

    def __init__(
        self,
        bootstrap: str,
        *,
        timeout_s: float = 20.0,
        receive_buffer_bytes: int | None = None,
        source_host: str | None = None,
    ) -> None:
        """`source_host` is the address that the broker sees, such as 127.0.0.2."""
        host, _, port = bootstrap.partition(",")[0].rpartition(":")
        self.socket = socket.socket()
        if receive_buffer_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        if source_host is not None:
            self.socket.bind((source_host, 0))
        self.socket.settimeout(timeout_s)
        self.socket.connect((host, int(port)))
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.socket.sendall(data)

    def receive(self) -> bytes:
        """The next frame without its length; raises ConnectionError when the broker closed the connection."""
        (length,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(length)

    def request(self, message: Message, version: int, response: type[R]) -> R:
        """Send one request and decode its answer."""
        return decode(response, version, self.body(message, version))

    def body(self, message: Message, version: int) -> bytes:
        """Send one request; the answer as bytes, without its header."""
        self._correlation_id += 1
        self.send(frame(message, version, correlation_id=self._correlation_id))
        answer = self.receive()
        assert struct.unpack_from(">i", answer)[0] == self._correlation_id
        flexible = version >= message.FLEXIBLE_SINCE and message.API_KEY != API_VERSIONS
        return answer[5 if flexible else 4 :]

    def is_closed_by_peer(self) -> bool:
        """Wait for the broker to close the connection, throwing away what it still sends; False after the time-out."""
        try:
            while self.socket.recv(65536):
                pass
        except TimeoutError:
            return False
        except OSError:
            return True
        return True

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(min(size - len(data), 1 << 20))
            if not piece:
                raise ConnectionError(f"connection closed after {len(data)} of {size} bytes")
            data += piece
        return bytes(data)
