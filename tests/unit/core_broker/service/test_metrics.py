import logging
import socket
import urllib.error
import urllib.request
from collections.abc import Iterable

import pytest

from core_broker.service.metrics import Family, MetricsServer

ANY = "http://127.0.0.1:0"


def families() -> Iterable[Family]:
    yield Family(
        name="kafka_messages_total", help="Messages.", kind="counter", labels=("topic",), samples=[(("orders",), 7)]
    )
    yield Family(name="kafka_connections", help="Connections.", samples=[((), 2)])


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_metrics_are_served_in_prometheus_text() -> None:
    with MetricsServer(ANY, collect=families) as server:
        assert server.url
        status, text = get(server.url)
    assert status == 200
    assert 'kafka_messages_total{topic="orders"} 7.0' in text
    assert "kafka_connections 2.0" in text
    assert "process_resident_memory_bytes" in text


def test_each_scrape_shows_the_current_values() -> None:
    values = iter([1.0, 2.0])

    def collect() -> Iterable[Family]:
        yield Family(name="level", help="Level.", samples=[((), next(values))])

    with MetricsServer(ANY, collect=collect) as server:
        assert server.url
        assert [line for _ in range(2) for line in get(server.url)[1].splitlines() if line.startswith("level")] == [
            "level 1.0",
            "level 2.0",
        ]


def test_health_follows_the_service() -> None:
    healthy = True
    with MetricsServer(ANY, collect=families, is_healthy=lambda: healthy) as server:
        assert server.url
        health = server.url.replace("/metrics", "/health")
        assert get(health)[0] == 200
        healthy = False
        assert get(health)[0] == 503


def test_unknown_path_tells_where_to_look() -> None:
    with MetricsServer(ANY, collect=families) as server:
        assert server.url
        assert get(server.url.replace("/metrics", "/nowhere")) == (404, "try /metrics or /health\n")


def test_failing_collection_is_answered_and_does_not_end_the_server(caplog: pytest.LogCaptureFixture) -> None:
    def collect() -> Iterable[Family]:
        raise RuntimeError("no")

    with MetricsServer(ANY, collect=collect) as server, caplog.at_level(logging.ERROR):
        assert server.url
        assert [get(server.url)[0] for _ in range(2)] == [500, 500]


def test_endless_request_is_cut_off() -> None:
    with MetricsServer(ANY, collect=families) as server:
        assert server.url
        port = int(server.url.split(":")[2].split("/")[0])
        with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
            client.sendall(b"GET /" + b"a" * 8188)
            client.sendall(b"b")
            assert _received(client) == b""
        assert get(server.url)[0] == 200


def _received(client: socket.socket) -> bytes:
    try:
        return client.recv(100)
    except ConnectionResetError:
        return b""


def test_taken_port_is_an_error_only_when_the_listener_was_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    with MetricsServer(ANY, collect=families) as first:
        assert first.url
        taken = first.url.removesuffix("/metrics")
        with pytest.raises(OSError, match="in use"):
            MetricsServer(taken, collect=families).start()
        with MetricsServer(taken, collect=families, required=False) as second:
            assert second.url is None
    assert "metrics are not served" in caplog.text


def test_empty_listener_serves_nothing() -> None:
    with MetricsServer("", collect=families) as server:
        assert server.url is None
