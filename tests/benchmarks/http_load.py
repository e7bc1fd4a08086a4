"""A closed loop of HTTP requests over a few connections, written so that the server is what is measured."""

import re
import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

_LENGTH: Final = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


@dataclass(slots=True)
class Load:
    """What a run did."""

    seconds: float = 0.0
    waits: list[float] = field(default_factory=list)
    """Seconds from each request to its whole answer."""
    statuses: dict[bytes, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Connection:
    socket: socket.socket
    received: bytes = b""
    sent_at: float = 0.0


def request(method: str, target: str, body: bytes = b"") -> bytes:
    """The bytes of one request, with the headers that Confluent's clients send."""
    head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nAccept: application/vnd.schemaregistry.v1+json\r\n"
    if body:
        head += f"Content-Type: application/vnd.schemaregistry.v1+json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def send_all(url: str, requests: Sequence[bytes], *, connections: int) -> Load:
    """Send every request once, each connection one at a time; waits until all are answered."""
    load, remaining = Load(), iter(requests)
    with selectors.DefaultSelector() as selector:
        for _ in range(min(connections, len(requests))):
            opened = _Connection(_connect(url))
            selector.register(opened.socket, selectors.EVENT_READ, opened)
        started = time.perf_counter()
        for key in list(selector.get_map().values()):
            _send_next(key.data, remaining)
        while len(load.waits) < len(requests):
            for key, _ in selector.select(timeout=30):
                if not _receive(key.data, load):
                    continue
                if not _send_next(key.data, remaining):
                    selector.unregister(key.data.socket)
                    key.data.socket.close()
        load.seconds = time.perf_counter() - started
    return load


def _connect(url: str) -> socket.socket:
    parts = urlsplit(url)
    connected = socket.create_connection((parts.hostname or "", parts.port or 80), timeout=30)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


def _send_next(connection: _Connection, remaining: Iterator[bytes]) -> bool:
    following = next(remaining, None)
    if following is None:
        return False
    connection.sent_at = time.perf_counter()
    connection.socket.sendall(following)
    return True


def _receive(connection: _Connection, load: Load) -> bool:
    """Take what came; true when the answer is whole."""
    data = connection.socket.recv(1 << 18)
    if not data:
        raise ConnectionError("the server closed a connection")
    connection.received += data
    head, separator, body = connection.received.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    if not separator or length is None or len(body) < int(length[1]):
        return False
    load.waits.append(time.perf_counter() - connection.sent_at)
    status = head[9:12]
    load.statuses[status] = load.statuses.get(status, 0) + 1
    connection.received = b""
    return True
