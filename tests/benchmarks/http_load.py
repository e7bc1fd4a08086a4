"""HTTP requests over a few connections, as fast as they are answered or at a pace; the server is what is measured."""

import re
import selectors
import socket
import ssl
import time
from collections import deque
from collections.abc import Sequence
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


def request(
    method: str,
    target: str,
    body: bytes = b"",
    *,
    content_type: str = "application/vnd.schemaregistry.v1+json",
    accept: str | None = None,
    authorization: str | None = None,
) -> bytes:
    """The bytes of one request, with the headers that Confluent's clients send."""
    head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept or content_type}\r\n"
    if authorization is not None:
        head += f"Authorization: {authorization}\r\n"
    if body:
        head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def send_all(
    url: str,
    requests: Sequence[bytes],
    *,
    connections: int,
    rate: float = float("inf"),
    tls: ssl.SSLContext | None = None,
) -> Load:
    """Send every request once over a few connections, at most `rate` a second; waits until all are answered.

    With a rate, a request waits from the moment when it was due, so that a server which stands still is not let off.
    """
    load, idle, sent = Load(), deque[_Connection](), 0
    with selectors.DefaultSelector() as selector:
        for _ in range(min(connections, len(requests))):
            opened = _Connection(_connect(url, tls))
            selector.register(opened.socket, selectors.EVENT_READ, opened)
            idle.append(opened)
        started = time.perf_counter()
        while len(load.waits) < len(requests):
            now = time.perf_counter()
            while idle and sent < len(requests) and (due := started + sent / rate) <= now:
                _send(idle.popleft(), requests[sent], now if rate == float("inf") else due)
                sent += 1
            pause = 30.0 if not idle or sent == len(requests) else max(0.0, started + sent / rate - now)
            idle.extend(key.data for key, _ in selector.select(timeout=pause) if _receive(key.data, load))
        load.seconds = time.perf_counter() - started
        for key in list(selector.get_map().values()):
            key.data.socket.close()
    return load


def _connect(url: str, tls: ssl.SSLContext | None) -> socket.socket:
    parts = urlsplit(url)
    connected = socket.create_connection((parts.hostname or "", parts.port or 80), timeout=30)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected if tls is None else tls.wrap_socket(connected, server_hostname=parts.hostname)


def _send(connection: _Connection, content: bytes, due: float) -> None:
    connection.sent_at = due
    connection.socket.sendall(content)


def _receive(connection: _Connection, load: Load) -> bool:
    """Take what came; true when the answer is whole."""
    data = connection.socket.recv(1 << 18)
    while isinstance(connection.socket, ssl.SSLSocket) and connection.socket.pending():
        data += connection.socket.recv(1 << 18)
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
