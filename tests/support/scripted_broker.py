"""A broker that says what a test wants it to say: for answers that no broker at hand would give."""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Self

from core_broker.protocol.fields import Message, encode

Answer = Callable[[bytes], bytes]
"""Takes the body of a request and gives the body of the answer."""


class ScriptedBroker:
    """Takes connections one after the other and answers the requests of each by the script."""

    def __init__(self, script: Sequence[Answer], *, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[tuple[int, int, bytes]] = []
        """Key, version and body of every request."""
        self._script = script
        self._tls = tls
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._listening.getsockname()[1]
        return port

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # Wakes the thread, which would not notice that its socket was closed.
        socket.create_connection(("127.0.0.1", self.port)).close()
        self._thread.join(5)
        self._listening.close()

    def _serve(self) -> None:
        connection, _ = self._listening.accept()
        try:
            with self._tls.wrap_socket(connection, server_side=True) if self._tls else connection as client:
                for answer in self._script:
                    self._reply(client, answer)
        except OSError:
            pass  # The client has gone: the test looks at what it made of it.

    def _reply(self, client: socket.socket, answer: Answer) -> None:
        (length,) = struct.unpack(">i", _exactly(client, 4))
        frame = _exactly(client, length)
        key, version, correlation_id, name_length = struct.unpack_from(">hhih", frame)
        body = frame[10 + name_length :]
        self.requests.append((key, version, body))
        reply = struct.pack(">i", correlation_id) + answer(body)
        client.sendall(struct.pack(">i", len(reply)) + reply)


def _exactly(client: socket.socket, count: int) -> bytes:
    parts = b""
    while len(parts) < count:
        part = client.recv(count - len(parts))
        if not part:
            raise ConnectionError("the client has gone")
        parts += part
    return parts


def saying(message: Message, version: int) -> Answer:
    """Answers with a message, whatever was asked."""
    tags = b"\0" if version >= message.FLEXIBLE_SINCE else b""
    return lambda _: tags + bytes(encode(message, version))
