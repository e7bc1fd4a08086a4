"""Scans everything that processes listen on, as a stranger does: what answers someone who gives no name?"""

import re
import socket
import ssl
import struct
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Final

import grpc  # type: ignore[import-untyped] # its types are a package of their own
import psutil

_TIMEOUT_S: Final = 10.0
_SILENCE_S: Final = 2.0
"""So long may something think about a request that it is not going to answer."""
_PORTS_AT_ONCE: Final = 32
_BYTES: Final = 65_536
_METADATA_ID: Final = 8
_PATHS: Final = ("/", "/health", "/metrics", "/subjects", "/topics", "/connectors", "/docs", "/openapi.json")
_SPARK_CALL: Final = "/spark.connect.SparkConnectService/Config"


def _frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()


_API_VERSIONS: Final = struct.pack(">hhih", 18, 0, 7, -1)
_METADATA: Final = struct.pack(">hhihi", 3, 1, _METADATA_ID, -1, -1)
_PLAIN: Final = {
    "garbage": b"\x00\x00\x00\x05hello\r\n\r\n",
    "HTTP": _get("/"),
    "Kafka": _frame(_API_VERSIONS),
    "py4j": b"r\nu\njava.lang.System\nrj\ne\n",
    # Java's objects come in such frames: their length, RpcRequest, a number, a length and a body.
    "Spark": struct.pack(">qBqi", 25, 3, 1, 4) + b"\xac\xed\x00\x05",
}
_REFUSALS: Final = re.compile(
    rb"\x15\x03"  # an alert of TLS
    # py4j: wants its secret first, or knows no such command.
    rb"|!x|!zspy4j\.Py4JException: Unknown command received"
    # A worker of Spark: its process id, and that the secret is wrong.
    rb"|.{4}(\x00\x00\x00\x03err)?\Z"
    # Java's side of Spark: it wants a login first.
    rb"|.{8}\x05.{12}java\.lang\.IllegalStateException: Expected SaslMessage",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Port:
    """A port on which a process listens."""

    address: str
    number: int
    command: str


def ports_of(launcher: int, *others: int) -> list[Port]:
    """All ports of a process and its descendants, and of others with theirs."""
    found = {}
    for root in map(psutil.Process, (launcher, *others)):
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                for connection in process.net_connections("tcp"):
                    if connection.status == psutil.CONN_LISTEN:
                        place = (connection.laddr.ip, connection.laddr.port)
                        found[place] = Port(*place, " ".join(process.cmdline())[:200])
    return list(found.values())


def answers_to_strangers(ports: Sequence[Port], *, spark_connect: int | None = None) -> list[str]:
    """What was answered to someone without a name, beyond a refusal; empty if nothing was."""

    def look(port: Port) -> list[str]:
        answers = _spark_answers(port) if port.number == spark_connect else _answers(port)
        return [f"{port.address}:{port.number} ({port.command}): {answer}" for answer in answers]

    with ThreadPoolExecutor(_PORTS_AT_ONCE) as threads:
        return [answer for answers in threads.map(look, ports) for answer in answers]


def _answers(port: Port) -> Iterator[str]:
    for name, request in _PLAIN.items():
        answer = _exchange(port, request)
        if answer and not _REFUSALS.match(answer):
            yield f"plain {name} is answered with {answer[:80]!r}"
    if not _speaks_tls(port):
        return
    for path in _PATHS:
        answer = _exchange(port, _get(path), tls=True)
        if answer and not answer.startswith(b"HTTP/1.1 401 "):
            yield f"{path} over TLS is answered with {answer[:80]!r}"
        if not answer:
            break  # it speaks no HTTP, or asks for a certificate
    # ApiVersions is answered before the login, as Kafka does it; nothing else is.
    for before in (b"", _frame(_API_VERSIONS)):
        answer = _exchange(port, before + _frame(_METADATA), tls=True)
        if not answer.startswith(b"HTTP/") and _METADATA_ID in _correlation_ids(answer):
            yield f"Metadata over TLS is answered with {answer[:80]!r}"


def _spark_answers(port: Port) -> Iterator[str]:
    """Spark Connect speaks gRPC without TLS, on this machine alone, and wants its token with every call."""
    if port.address not in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
        yield "Spark Connect listens for other machines"
    with grpc.insecure_channel(f"localhost:{port.number}") as channel:
        call = channel.unary_unary(_SPARK_CALL, request_serializer=bytes, response_deserializer=bytes)
        try:
            answer = call(b"", timeout=_TIMEOUT_S)
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.UNAUTHENTICATED:
                yield f"Spark Connect refuses with {error.code()}, not for a missing token"
        else:
            yield f"Spark Connect answers {answer[:80]!r}"


def _speaks_tls(port: Port) -> bool:
    try:
        with socket.create_connection((port.address, port.number), _SILENCE_S) as plain, _context().wrap_socket(plain):
            return True
    except ssl.SSLError as error:
        return "alert" in str(error).lower()  # it refuses us, in the language of TLS
    except OSError:
        return False  # it has not said a word to our hello


def _exchange(port: Port, request: bytes, *, tls: bool = False) -> bytes:
    """What comes back until the other side closes or is silent; empty if it refuses the connection."""
    received = b""
    # What does not even accept a connection, because it already has all that it wants, answers nothing.
    seconds = _TIMEOUT_S if tls else _SILENCE_S
    with suppress(OSError), socket.create_connection((port.address, port.number), seconds) as plain:
        connection = _context().wrap_socket(plain) if tls else plain
        with closing(connection):
            connection.settimeout(_TIMEOUT_S if tls and request.startswith(b"GET ") else _SILENCE_S)
            connection.sendall(request)
            while len(received) < _BYTES and (part := connection.recv(_BYTES)):
                received += part
    return received


def _context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _correlation_ids(answer: bytes) -> Iterator[int]:
    while len(answer) >= 8:
        length, correlation_id = struct.unpack_from(">ii", answer)
        yield correlation_id
        answer = answer[4 + max(0, length) :]
