"""What TLS costs: the same requests through a plain and an encrypted listener of one broker, and new connections."""

import ssl
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.measure import AS_DELIVERED, GB, MB, Row, Sizes, Stopwatch, best_of_three
from tests.benchmarks.raw_client import RawClient, fetch_request, produce_request
from tests.benchmarks.throughput import BATCH_BYTES, RECORD_BYTES, RECORDS_PER_MEGABYTE
from tests.support.admin import create_topic
from tests.support.tls_broker import TlsBroker


def tls(directory: Path, sizes: Sizes) -> Iterator[Row]:
    """Streams, small requests and handshakes."""
    with TlsBroker(directory / "tls", settings=AS_DELIVERED) as broker:
        create_topic(broker, "bench-tls")
        for context in (None, broker.client_context()):
            yield from _streams(broker, sizes, context)
            yield _small_requests(broker, sizes, context)
        for version in (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2):
            yield _handshakes(broker, sizes, version)


def _client(broker: TlsBroker, context: ssl.SSLContext | None) -> RawClient:
    return RawClient(broker.bootstrap if context is None else broker.tls_address, context)


def _name(context: ssl.SSLContext | None) -> str:
    return "without TLS" if context is None else "with TLS"


def _streams(broker: TlsBroker, sizes: Sizes, context: ssl.SSLContext | None) -> Iterator[Row]:
    count = max(4, sizes.stream_bytes // 4 // BATCH_BYTES)
    request = produce_request("bench-tls", 0, records=RECORDS_PER_MEGABYTE, record_bytes=RECORD_BYTES)
    fetches = [fetch_request("bench-tls", 0, n * RECORDS_PER_MEGABYTE, max_bytes=BATCH_BYTES) for n in range(count)]
    with _client(broker, context) as client:
        client.repeat(request, 2, in_flight=1)
        produced = best_of_three(broker.pid, lambda: client.repeat(request, count, in_flight=2))
        fetched = best_of_three(broker.pid, lambda: client.run(iter(fetches), in_flight=2))
    for what, watch in (("produce, ~1 MB requests", produced), ("fetch, ~1 MB answers", fetched)):
        size = count * len(request)
        result = f"{size / watch.seconds / MB:,.0f} MB/s, {watch.cpu_seconds / size * GB:.2f} CPU-s/GB"
        how = f"raw socket, 2 in flight, best of 3; {watch.note()}"
        yield Row(what=f"{what}, {_name(context)}", result=result, how=how)


def _small_requests(broker: TlsBroker, sizes: Sizes, context: ssl.SSLContext | None) -> Row:
    count = sizes.small_requests // 3
    request = produce_request("bench-tls", 0, records=1, record_bytes=100)
    with _client(broker, context) as client:
        client.repeat(request, min(count, 500), in_flight=1)
        watch = best_of_three(broker.pid, lambda: client.repeat(request, count, in_flight=1))
    result = f"{watch.cpu_seconds / count * 1e6:.1f} µs of broker CPU, {count / watch.seconds / 1000:.1f} k requests/s"
    how = f"raw socket, 1 connection, 1 in flight, best of 3; {watch.note()}"
    return Row(what=f"small produce, {_name(context)}", result=result, how=how)


def _handshakes(broker: TlsBroker, sizes: Sizes, version: ssl.TLSVersion) -> Row:
    context = broker.client_context()
    context.minimum_version = context.maximum_version = version
    count = max(10, sizes.small_requests // 100)
    began = time.perf_counter()
    with Stopwatch(broker.pid) as watch:
        for _ in range(count):
            broker.connect(context).close()
    rate = count / (time.perf_counter() - began)
    result = f"{rate:,.0f} handshakes/s, {watch.cpu_seconds / count * 1e3:.2f} ms of broker CPU each"
    how = f"one after the other, P-256 certificate, no resumption, n={count}"
    return Row(what=f"new connections, {version.name.replace('_', '.')}", result=result, how=how)
