"""The REST proxy: records in and out over HTTP, on cores that it shares with broker, registry and load generator."""

import base64
import json
import random
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from confluent_kafka.admin import AdminClient, NewTopic

from tests.benchmarks.http_load import Load, request, send_all
from tests.benchmarks.measure import AS_DELIVERED, MB, Row, Sizes, Stopwatch, percentile
from tests.support.broker import BrokerProcess
from tests.support.memory import resident_bytes
from tests.support.proxy import ProxyProcess
from tests.support.registry import RegistryProcess, register

_CONNECTIONS = 32
_BATCH_CONNECTIONS = 8
_AIM_REQUESTS = 3_000
_AIM_RECORDS = 150_000
_FIELDS = ("id", "customer", "item", "city", "street", "currency", "channel", "status")
_AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            *({"name": name, "type": "string"} for name in _FIELDS),
            {"name": "amount", "type": "double"},
            {"name": "at", "type": "long"},
        ],
    }
)


def proxy(directory: Path, sizes: Sizes) -> Iterator[Row]:
    """Produce in every format, then read it back."""
    with (
        BrokerProcess(directory / "proxied", settings=AS_DELIVERED) as broker,
        RegistryProcess(directory / "proxied-registry") as registry,
        ProxyProcess(directory / "proxy", bootstrap=broker.bootstrap, registry=registry.url) as process,
    ):
        yield Row(
            what="REST proxy ready",
            result=f"{process.ready_after_s:.2f} s, {resident_bytes(process.pid) / MB:.0f} MB",
            aim="< 1 s",
            how="from starting the process to its ready line, and its memory then",
        )
        _create_topics(broker.bootstrap)
        schema_id = register(registry.url, "avro-value", _AVRO).id
        yield from _single(process, schema_id, sizes.proxy_requests)
        yield from _batches(process, schema_id, sizes.proxy_records)
        yield _streamed_in(process, sizes.proxy_records)
        yield from _read(process, sizes.proxy_records)
        yield Row(
            what="REST proxy memory",
            result=f"{resident_bytes(process.pid) / MB:.0f} MB",
            how="resident, after all of the above",
        )


def _create_topics(bootstrap: str) -> None:
    topics = [NewTopic(name, 3, 1) for name in ("json", "binary", "avro")] + [NewTopic("read", 1, 1)]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics(topics).values():
        future.result(10)


# --- produce ---


def _single(process: ProxyProcess, schema_id: int, count: int) -> Iterator[Row]:
    for kind in ("json", "binary", "avro"):
        requests = [_produce(kind, schema_id, [number]) for number in range(count)]
        send_all(process.url, requests[:50], connections=4)
        how = f"v2, one record of 200 bytes in {kind}, acks=all, idempotent"
        yield _requests_row(process, f"produce 1 record, {kind}", requests, f"> {_AIM_REQUESTS:,}/s", how)
    requests = [_produce_v3(process, number) for number in range(count)]
    yield _requests_row(process, "produce 1 record, v3", requests, f"> {_AIM_REQUESTS:,}/s", "v3, one record in JSON")
    yield _paced_row(process, "produce 1 record", [_produce("json", schema_id, [n]) for n in range(count)], 1)


def _batches(process: ProxyProcess, schema_id: int, records: int) -> Iterator[Row]:
    for kind in ("json", "binary", "avro"):
        for size in (100, 1_000):
            batches = max(2, records // size)
            request_ = _produce(kind, schema_id, list(range(size)))
            send_all(process.url, [request_] * 3, connections=1)
            yield _records_row(process, f"produce {size:,} records, {kind}", [request_] * batches, size)
    for size in (100, 1_000):
        requests = [_produce("json", schema_id, list(range(size)))] * max(2, records // size)
        yield _paced_row(process, f"produce {size:,} records", requests, size)


def _requests_row(process: ProxyProcess, what: str, requests: Sequence[bytes], aim: str, how: str) -> Row:
    with Stopwatch(process.pid) as watch:
        load = _sent(process, requests)
    cost = watch.cpu_seconds / len(requests) * 1e6
    result = f"{len(requests) / load.seconds:,.0f}/s, p99 {_p99_ms(load):.1f} ms"
    return Row(what=what, result=result, aim=aim, how=f"{how}; {_CONNECTIONS} connections, {cost:.0f} µs of CPU each")


def _records_row(process: ProxyProcess, what: str, requests: Sequence[bytes], size: int) -> Row:
    with Stopwatch(process.pid) as watch:
        load = _sent(process, requests, connections=_BATCH_CONNECTIONS)
    records = len(requests) * size
    cost = watch.cpu_seconds / records * 1e6
    return Row(
        what=what,
        result=f"{records / load.seconds:,.0f} records/s, p99 {_p99_ms(load):.1f} ms",
        aim=f"> {_AIM_RECORDS:,}/s",
        how=f"v2, 200 bytes each, {_BATCH_CONNECTIONS} connections; {cost:.1f} µs of the proxy's CPU per record",
    )


def _paced_row(process: ProxyProcess, what: str, requests: Sequence[bytes], size: int) -> Row:
    rate = (_AIM_REQUESTS if size == 1 else _AIM_RECORDS / size) / 2
    with Stopwatch(process.pid) as watch:
        load = _sent(process, requests, rate=rate)
    return Row(
        what=f"{what}, at half of the aim",
        result=f"p50 {percentile(load.waits, 0.5) * 1000:.1f} ms, p99 {_p99_ms(load):.1f} ms",
        aim="p99 < 20 ms",
        how=f"{rate:,.0f} requests/s in JSON, timed from when each was due; "
        f"the proxy used {watch.cpu_seconds / watch.seconds:.0%} of a core",
    )


def _sent(
    process: ProxyProcess, requests: Sequence[bytes], *, connections: int = _CONNECTIONS, rate: float = float("inf")
) -> Load:
    load = send_all(process.url, requests, connections=connections, rate=rate)
    assert set(load.statuses) == {b"200"}, load.statuses
    return load


def _streamed_in(process: ProxyProcess, records: int) -> Row:
    """One request whose body is a record after the other; as many answers."""
    line = json.dumps({"value": {"type": "JSON", "data": _order(1)}}).encode() + b"\n"
    chunk = line * 200
    whole = max(1, records // 200)
    head = f"POST {_v3(process, 'json')} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with Stopwatch(process.pid) as watch, _connected(process) as connection:
        connection.sendall(head.encode() + f"Content-Length: {len(chunk) * whole}\r\n\r\n".encode())
        sent = answered = 0
        connection.setblocking(False)
        waiting = memoryview(b"")
        tail = b""  # an answer may come in two pieces
        while answered < whole * 200:
            if not waiting and sent < whole:
                waiting, sent = memoryview(chunk), sent + 1
            try:
                waiting = waiting[connection.send(waiting) :] if waiting else waiting
            except BlockingIOError:
                pass
            try:
                data = connection.recv(1 << 18)
                assert data, f"the stream ended after {answered} answers"
                *lines, tail = (tail + data).split(b"\n")
                answered += sum(b'"error_code":200' in answer for answer in lines)
            except BlockingIOError:
                time.sleep(0.0005)
    cost = watch.cpu_seconds / answered * 1e6
    return Row(
        what="produce, one stream",
        result=f"{answered / watch.seconds:,.0f} records/s",
        how=f"v3, one request, each record answered by a line of its own; {cost:.1f} µs of the proxy's CPU per record",
    )


# --- consume ---


def _read(process: ProxyProcess, records: int) -> Iterator[Row]:
    requests = [_produce("json", 0, list(range(1_000)), topic="read")] * max(1, records // 1_000)
    _sent(process, requests, connections=1)
    total = 1_000 * len(requests)
    for kind in ("json", "binary"):
        pages = [_page(kind, offset) for offset in range(0, total, 1_000)]
        with Stopwatch(process.pid) as watch:
            load = _sent(process, pages, connections=1)
        yield Row(
            what=f"pages of 1,000 records, {kind}",
            result=f"{len(pages) / load.seconds:,.0f}/s, {total / load.seconds:,.0f} records/s, "
            f"p99 {_p99_ms(load):.1f} ms",
            how=f"v2, one after the other, one connection; {watch.cpu_seconds / total * 1e6:.1f} µs of CPU per record",
        )
    for kind in ("json", "binary"):
        with Stopwatch(process.pid) as watch:
            read = _stream(process, kind, total)
        yield Row(
            what=f"live stream, {kind}",
            result=f"{read / watch.seconds:,.0f} records/s",
            how=f"NDJSON, one connection; {watch.cpu_seconds / read * 1e6:.1f} µs of the proxy's CPU per record",
        )


def _page(kind: str, offset: int) -> bytes:
    target = f"/topics/read/partitions/0/records?offset={offset}&max_records=1000&max_bytes=10000000&timeout=5000"
    return request("GET", target, accept=f"application/vnd.kafka.{kind}.v2+json")


def _stream(process: ProxyProcess, kind: str, total: int) -> int:
    target = _v3(process, "read").removesuffix("/records") + "/partitions/0/records"
    query = f"?offset=0&max_records={total}&key_format={kind}&value_format={kind}"
    read = 0
    with _connected(process) as connection:
        connection.sendall(request("GET", target + query, accept="application/x-ndjson"))
        tail = b""
        while read < total:
            data = connection.recv(1 << 18)
            assert data, "the stream ended too early"
            read += (tail + data).count(b'"offset":')
            tail = data[-8:]
    return read


# --- requests ---


def _order(number: int) -> dict[str, object]:
    chooser = random.Random(number)
    fields: dict[str, object] = {name: f"{name}-{chooser.randrange(10**6)}" for name in _FIELDS}
    return {**fields, "amount": chooser.random() * 100, "at": 1_700_000_000_000 + number}


def _produce(kind: str, schema_id: int, numbers: Sequence[int], *, topic: str | None = None) -> bytes:
    records = [{"value": _value(kind, number)} for number in numbers]
    body: dict[str, object] = {"records": records}
    if kind == "avro":
        body["value_schema_id"] = schema_id
    content = json.dumps(body).encode()
    media_type = f"application/vnd.kafka.{kind}.v2+json"
    return request("POST", f"/topics/{topic or kind}", content, content_type=media_type, accept="*/*")


def _value(kind: str, number: int) -> object:
    order = _order(number)
    return base64.b64encode(json.dumps(order).encode()).decode() if kind == "binary" else order


def _produce_v3(process: ProxyProcess, number: int) -> bytes:
    content = json.dumps({"value": {"type": "JSON", "data": _order(number)}}).encode()
    return request("POST", _v3(process, "json"), content, content_type="application/json")


_cluster_ids: dict[str, str] = {}


def _v3(process: ProxyProcess, topic: str) -> str:
    if process.url not in _cluster_ids:
        import urllib.request

        with urllib.request.urlopen(f"{process.url}/v3/clusters", timeout=10) as answer:
            _cluster_ids[process.url] = json.load(answer)["data"][0]["cluster_id"]
    return f"/v3/clusters/{_cluster_ids[process.url]}/topics/{topic}/records"


def _connected(process: ProxyProcess) -> socket.socket:
    parts = urlsplit(process.url)
    return socket.create_connection((parts.hostname or "", parts.port or 80), timeout=30)


def _p99_ms(load: Load) -> float:
    return percentile(load.waits, 0.99) * 1000
