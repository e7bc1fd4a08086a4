"""Metrics over HTTP: `/metrics` in Prometheus text and `/health`, served by a thread beside the event loop.

The service keeps plain counters and passes a function that turns them into families on demand, so counting costs no
more than an addition, and prometheus_client is not imported before the first scrape.
"""

import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import msgspec

log = logging.getLogger(__name__)

_REQUEST_MAX_BYTES = 8192
_CLIENT_TIMEOUT_SECONDS = 5.0
PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Family(msgspec.Struct, kw_only=True):
    """All samples of one metric. Counter names end in `_total`."""

    name: str
    help: str
    kind: Literal["counter", "gauge"] = "gauge"
    labels: Sequence[str] = ()
    samples: list[tuple[tuple[str, ...], float]] = []
    """Label values, in the order of `labels`, and the value."""


def gauge(name: str, help_text: str, value: float) -> Family:
    """A metric without labels that goes up and down."""
    return Family(name=name, help=help_text, samples=[((), value)])


def counter(name: str, help_text: str, value: float) -> Family:
    """A metric without labels that only grows."""
    return Family(name=name, help=help_text, kind="counter", samples=[((), value)])


Collect = Callable[[], Iterable[Family]]
Tls = Callable[[], ssl.SSLContext]
"""The context for the next connection: a renewed certificate is another context."""


class MetricsServer:
    """Serves the metrics and the health of one process; a context manager."""

    def __init__(
        self,
        listener: str,
        *,
        collect: Collect,
        is_healthy: Callable[[], bool] = lambda: True,
        required: bool = True,
        tls: Tls | None = None,
    ) -> None:
        """`tls` is for a listener with https, which needs it."""
        self._listener = listener
        self._tls = tls
        self._is_healthy = is_healthy
        self._required = required
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._render = renderer(collect)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str | None:
        """The address of the metrics with the port actually bound; None when they are not served."""
        if self._socket is None:
            return None
        port: int = self._socket.getsockname()[1]
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://{urlsplit(self._listener).hostname or 'localhost'}:{port}/metrics"

    def start(self) -> None:
        """Start listening. A port in use raises OSError if the listener is required, and logs a warning otherwise."""
        if not self._listener:
            return
        try:
            self._socket = _listen(self._listener, scheme="http" if self._tls is None else "https")
        except OSError as error:
            if self._required:
                raise
            extra = {"listener": self._listener, "error": str(error)}
            log.warning("metrics are not served: set metrics.listener to a free address", extra=extra)
            return
        self._thread = threading.Thread(target=self._serve, name="metrics", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop listening and wait for the thread to end."""
        if self._socket and self._thread:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread out of accept()
            self._thread.join(_CLIENT_TIMEOUT_SECONDS)
            self._socket.close()
        self._socket = self._thread = None

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Status, content type and body of the response for a path."""
        match path.partition("?")[0]:
            case "/metrics":
                return 200, PROMETHEUS_TEXT, self._render()
            case "/health" | "/":
                healthy = self._is_healthy()
                body = b'{"status":"ok"}\n' if healthy else b'{"status":"starting or stopping"}\n'
                return 200 if healthy else 503, "application/json", body
            case _:
                return 404, "text/plain", b"try /metrics or /health\n"

    def _serve(self) -> None:
        assert self._socket is not None
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            with closing(client), suppress(OSError):
                client.settimeout(_CLIENT_TIMEOUT_SECONDS)
                if self._tls is None:
                    self._handle(client)
                else:
                    with self._tls().wrap_socket(client, server_side=True) as encrypted:
                        self._handle(encrypted)

    def _handle(self, client: socket.socket) -> None:
        """One request, one response; an error while collecting must not end the thread."""
        path = _read_path(client)
        if path is None:
            return
        try:
            status, content_type, body = self.answer(path)
        except Exception:
            log.exception("metrics could not be collected")
            status, content_type, body = 500, "text/plain", b"metrics could not be collected\n"
        head = f"HTTP/1.1 {status} -\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        client.sendall(f"{head}Connection: close\r\n\r\n".encode() + body)


def _listen(listener: str, *, scheme: str) -> socket.socket:
    parts = urlsplit(listener)
    if parts.scheme != scheme or parts.port is None:
        raise OSError(f"{listener} does not look like {scheme}://host:port")
    family = socket.AF_INET6 if ":" in (parts.hostname or "") else socket.AF_INET
    server = socket.socket(family, socket.SOCK_STREAM)
    try:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((parts.hostname or "", parts.port))
        server.listen(16)
    except OSError:
        server.close()
        raise
    return server


def _read_path(client: socket.socket) -> str | None:
    request = b""
    while b"\r\n\r\n" not in request:
        received = client.recv(_REQUEST_MAX_BYTES)
        request += received
        if not received or len(request) > _REQUEST_MAX_BYTES:
            return None
    method, _, rest = request.partition(b" ")
    return rest.partition(b" ")[0].decode("latin-1") if method == b"GET" else None


def renderer(collect: Collect) -> Callable[[], bytes]:
    """A function that renders the families and process metrics as Prometheus text."""
    return _LazyRegistry(collect).render


class _LazyRegistry:
    """A prometheus_client registry, created (and the library imported) at the first scrape."""

    def __init__(self, collect: Collect) -> None:
        self._collect = collect
        self._generate: Callable[[], bytes] | None = None

    def render(self) -> bytes:
        """The current metrics as text."""
        if self._generate is None:
            self._generate = _generator(self._collect)
        return self._generate()


def _generator(collect: Collect) -> Callable[[], bytes]:
    from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    registry.register(_Collector(collect))
    return lambda: generate_latest(registry)


class _Collector:
    """Adapts our families to prometheus_client's collector interface."""

    def __init__(self, collect: Collect) -> None:
        self._families = collect

    def describe(self) -> Iterable[Any]:
        """Metrics are not known before they are collected."""
        return ()

    def collect(self) -> Iterable[Any]:
        """Turn our families into the library's."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for family in self._families():
            kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
            metric = kind(family.name, family.help, labels=list(family.labels))
            for labels, value in family.samples:
                metric.add_metric(list(labels), value)
            yield metric
