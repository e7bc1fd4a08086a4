"""What TLS and logins cost: the same requests without and with TLS, and new connections of each kind.

With KAFKA_JARS set, Apache Kafka is measured beside ours: same client, same certificate, same requests.
"""

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from core_broker.client.connection import Connection
from core_broker.client.settings import ClientSettings
from core_broker.protocol.messages.api_versions import ApiVersionsRequest
from tests.benchmarks.kafka_tls import SecuredBroker, SecuredKafka
from tests.benchmarks.measure import AS_DELIVERED, GB, MB, Row, Sizes, best_of_three
from tests.benchmarks.raw_client import RawClient, fetch_request, produce_request
from tests.benchmarks.throughput import BATCH_BYTES, RECORD_BYTES, RECORDS_PER_MEGABYTE
from tests.support.admin import create_topic
from tests.support.kafka import KAFKA_JARS
from tests.support.wire import frame

_MECHANISM: Final = "SCRAM-SHA-256"
_USER, _PASSWORD = "bench", "bench-secret"
_ITERATIONS: Final = 4096
_SETTINGS: Final = {**AS_DELIVERED, "log.retention.ms": "-1"}
"""The raw client's records have old timestamps: full segments would be deleted before they are fetched."""


def tls(directory: Path, sizes: Sizes) -> Iterator[Row]:
    """Streams, small requests, handshakes and logins."""
    brokers = [SecuredBroker(directory / "tls", settings=_SETTINGS)]
    if KAFKA_JARS is not None:
        brokers.append(SecuredKafka(directory / "kafka", settings=_SETTINGS))
    for secured in brokers:
        with secured as broker:
            create_topic(broker, "bench-tls")
            for context in (None, broker.client_context()):
                yield from _streams(broker, sizes, context)
                yield _small_requests(broker, sizes, context)
            yield from _connections(broker, max(10, sizes.small_requests // 100))


def _client(broker: SecuredBroker, context: ssl.SSLContext | None) -> RawClient:
    return RawClient(broker.bootstrap if context is None else broker.tls_address, context)


def _name(what: str, context: ssl.SSLContext | None, broker: SecuredBroker) -> str:
    return f"{what}, {'without' if context is None else 'with'} TLS{broker.label}"


def _streams(broker: SecuredBroker, sizes: Sizes, context: ssl.SSLContext | None) -> Iterator[Row]:
    count = max(4, sizes.stream_bytes // 4 // BATCH_BYTES)
    request = produce_request("bench-tls", 0, records=RECORDS_PER_MEGABYTE, record_bytes=RECORD_BYTES)
    fetches = [fetch_request("bench-tls", 0, n * RECORDS_PER_MEGABYTE, max_bytes=BATCH_BYTES) for n in range(count)]
    with _client(broker, context) as client:
        client.repeat(request, broker.warm_up(count), in_flight=2)
        produced = best_of_three(broker.pid, lambda: client.repeat(request, count, in_flight=2))
        client.run(iter(fetches[: broker.warm_up(count)]), in_flight=2)
        before = client.bytes_received
        fetched = best_of_three(broker.pid, lambda: client.run(iter(fetches), in_flight=2))
        received = (client.bytes_received - before) // 3
    assert received >= count * RECORDS_PER_MEGABYTE * RECORD_BYTES, "the broker has not sent everything"
    written = count * len(request)
    for what, watch, size in (
        ("produce, ~1 MB requests", produced, written),
        ("fetch, ~1 MB answers", fetched, received),
    ):
        result = f"{size / watch.seconds / MB:,.0f} MB/s, {watch.cpu_seconds / size * GB:.2f} CPU-s/GB"
        how = f"raw socket, 2 in flight, best of 3; {watch.note()}"
        yield Row(what=_name(what, context, broker), result=result, how=how)


def _small_requests(broker: SecuredBroker, sizes: Sizes, context: ssl.SSLContext | None) -> Row:
    count = sizes.small_requests // 3
    request = produce_request("bench-tls", 0, records=1, record_bytes=100)
    with _client(broker, context) as client:
        client.repeat(request, max(broker.warm_up(count), min(count, 500)), in_flight=1)
        watch = best_of_three(broker.pid, lambda: client.repeat(request, count, in_flight=1))
    result = f"{watch.cpu_seconds / count * 1e6:.1f} µs of broker CPU, {count / watch.seconds / 1000:.1f} k requests/s"
    how = f"raw socket, 1 connection, 1 in flight, best of 3; {watch.note()}"
    return Row(what=_name("small produce", context, broker), result=result, how=how)


# --- new connections --------------------------------------------------------------------------------------------------


def _connections(broker: SecuredBroker, count: int) -> Iterator[Row]:
    """Connections one after the other, each with one request."""
    yield _connecting(broker, "without TLS", partial(_ask_and_close, broker, None), count)
    for version in (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2):
        context = broker.client_context()
        context.minimum_version = context.maximum_version = version
        name = version.name.replace("_", ".")
        yield _connecting(broker, name, partial(_ask_and_close, broker, context), count)
        resuming = _Resuming(broker, context)
        row = _connecting(broker, f"{name}, with the session of the one before", resuming, count)
        yield replace(row, result=f"{row.result}; {resuming.resumed} of {resuming.count} resumed")
    _create_user(broker)
    host, _, port = broker.login_address.rpartition(":")
    settings = ClientSettings(
        properties={
            "security.protocol": "sasl_plaintext",
            "sasl.mechanisms": _MECHANISM,
            "sasl.username": _USER,
            "sasl.password": _PASSWORD,
        }
    )

    def log_in() -> None:
        with Connection(settings, host, int(port)):
            pass

    note = f"a login instead of a request; the rate includes the client's {_ITERATIONS} iterations"
    yield _connecting(broker, f"{_MECHANISM} without TLS", log_in, count, note=note)


def _connecting(broker: SecuredBroker, what: str, connect: Callable[[], None], count: int, *, note: str = "") -> Row:
    def connect_all() -> None:
        for _ in range(count):
            connect()

    connect()
    for _ in range(broker.warm_up(count)):
        connect()
    watch = best_of_three(broker.pid, connect_all)
    result = f"{count / watch.seconds:,.0f} connections/s, {watch.cpu_seconds / count * 1e3:.2f} ms of broker CPU each"
    how = f"one after the other, {note or 'with one request each'}, P-256 certificate, n={count}, best of 3"
    return Row(what=f"new connections, {what}{broker.label}", result=result, how=how)


class _Resuming:
    """Connects with the session of the connection before."""

    def __init__(self, broker: SecuredBroker, context: ssl.SSLContext) -> None:
        self._broker = broker
        self._context = context
        self._session: ssl.SSLSession | None = None
        self.count = self.resumed = 0

    def __call__(self) -> None:
        found = _ask(self._broker, self._context, self._session)
        assert isinstance(found, ssl.SSLSocket)
        self.count += self._session is not None
        self.resumed += bool(found.session_reused)
        self._session = found.session
        found.close()


def _ask_and_close(broker: SecuredBroker, context: ssl.SSLContext | None) -> None:
    _ask(broker, context).close()


def _ask(broker: SecuredBroker, context: ssl.SSLContext | None, session: ssl.SSLSession | None = None) -> socket.socket:
    """A new connection after its first answer, with which the tickets of TLS 1.3 have come, too."""
    host, _, port = (broker.bootstrap if context is None else broker.tls_address).rpartition(":")
    sock = socket.create_connection((host, int(port)), timeout=20)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if context is not None:
        sock = context.wrap_socket(sock, server_hostname=host, session=session)
    sock.sendall(_QUESTION)
    assert sock.recv(1 << 16), "the broker closed the connection"
    return sock


def _create_user(broker: SecuredBroker) -> None:
    """Create a user, and wait until the broker knows it."""
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, _ITERATIONS)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    wanted = UserScramCredentialUpsertion(_USER, credential, _PASSWORD.encode())
    futures: dict[str, Future[None]] = admin.alter_user_scram_credentials([wanted])
    futures[_USER].result(60)
    deadline = time.monotonic() + 30
    while not _knows_user(admin) and time.monotonic() < deadline:
        time.sleep(0.05)


def _knows_user(admin: AdminClient) -> bool:
    found = admin.describe_user_scram_credentials()
    assert isinstance(found, Future), "one answer for all users"
    return _USER in found.result(60)


_QUESTION: Final = frame(ApiVersionsRequest(), 0)
