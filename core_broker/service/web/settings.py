"""Settings that every HTTP service has: where it listens, and how much of a client's patience and memory it takes."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from typing_extensions import override

from core_broker.service.settings import (
    INT,
    LIST,
    LONG,
    PASSWORD,
    STRING,
    Problem,
    ServiceSettings,
    at_least,
    between,
    optional,
    setting,
)


class WebSettings(ServiceSettings):
    """What an operator may change about any HTTP service."""

    listeners: tuple[str, ...] = setting(LIST, default=())
    """Where HTTP is served: `http://host:port` or `https://host:port`, several separated by commas. An empty host
    means every address, port 0 any free port."""
    ssl_certificate_location: str | None = setting(optional(STRING), default=None)
    """PEM file with the certificate (and its chain) that https listeners show."""
    ssl_key_location: str | None = setting(optional(STRING), default=None)
    """PEM file with the certificate's private key. Not set: it is in the certificate's file."""
    ssl_key_password: str | None = setting(optional(PASSWORD), default=None, sensitive=True)
    """Password of the private key."""
    ssl_ca_location: str | None = setting(optional(STRING), default=None)
    """PEM file with the authorities whose client certificates are accepted. Set: clients must show one."""
    request_max_bytes: int = setting(LONG, default=4 * 1024 * 1024, check=at_least(1024))
    """Largest body that is read; a longer one is answered with 413 before memory is taken."""
    requests_max_bytes: int = setting(LONG, default=256 * 1024 * 1024, check=at_least(1024))
    """Most bytes of bodies in memory, of all requests in work together; those beyond are answered with 429."""
    request_header_max_bytes: int = setting(INT, default=64 * 1024, check=at_least(1024))
    """Largest head of a request: its line and all headers."""
    request_read_timeout_ms: int = setting(INT, default=30_000, check=at_least(1))
    """How long a client may take to send a head, between two parts of a body, and to read on in an answer."""
    request_queue_timeout_ms: int = setting(INT, default=30_000, check=at_least(1))
    """How long a request that sends something may wait for its turn before it is answered with 503."""
    idle_timeout_ms: int = setting(INT, default=30_000, check=at_least(1000))
    """How long a connection may wait for its next request before it is closed."""
    max_connections: int = setting(INT, default=10_000, check=at_least(1))
    """Connections and requests in work at once; those beyond are answered with 503."""
    worker_threads: int = setting(INT, default=16, check=between(1, 1000))
    """Requests that may wait for storage or other services at once; the others queue. Those that send something take at
    most three quarters of them, so that reads go on."""
    shutdown_timeout_ms: int = setting(INT, default=10_000, check=at_least(0))
    """How long requests in work may take to end when the service stops."""

    @override
    def problems(self) -> Iterable[Problem]:
        """Listeners must be URLs, and https needs a certificate."""
        yield from super().problems()
        for listener in self.listeners:
            if reason := _fault(listener):
                yield Problem(key="listeners", value=listener, reason=reason)
            elif listener.startswith("https:") and not self.ssl_certificate_location:
                reason = "https needs a certificate: set ssl.certificate.location to a PEM file"
                yield Problem(key="listeners", value=listener, reason=reason)


def _fault(listener: str) -> str | None:
    """What is wrong with a listener's address."""
    try:
        parts = urlsplit(listener)
        port = parts.port
    except ValueError as error:
        return f"must be http://host:port: {error}"
    if parts.scheme not in ("http", "https") or port is None or parts.path.strip("/") or parts.query:
        return "must be http://host:port or https://host:port"
    return None
