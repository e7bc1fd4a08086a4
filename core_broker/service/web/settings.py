"""Settings that every HTTP service has: listeners, TLS, limits and time-outs."""

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
    one_of,
    optional,
    setting,
)


class WebSettings(ServiceSettings):
    """What an operator may change about any HTTP service."""

    listeners: tuple[str, ...] = setting(LIST, default=())
    """Where HTTP is served: `http://host:port` or `https://host:port`, several separated by commas. An empty host
    means every address, port 0 any free port."""
    ssl_certificate_location: str | None = setting(optional(STRING), default=None)
    """PEM file with the certificate (and its chain) that https listeners present."""
    ssl_key_location: str | None = setting(optional(STRING), default=None)
    """PEM file with the certificate's private key. Not set: the key is in the certificate's file."""
    ssl_key_password: str | None = setting(optional(PASSWORD), default=None, sensitive=True)
    """Password of the private key."""
    ssl_ca_location: str | None = setting(optional(STRING), default=None)
    """PEM file with the authorities whose client certificates are accepted."""
    ssl_client_authentication: str | None = setting(
        optional(STRING), default=None, check=one_of("NONE", "REQUESTED", "REQUIRED")
    )
    """Whether clients of https listeners show a certificate: REQUIRED, REQUESTED (those without one may connect, too)
    or NONE. Not set: REQUIRED if ssl.ca.location is set, otherwise NONE."""
    request_max_bytes: int = setting(LONG, default=4 * 1024 * 1024, check=at_least(1024))
    """Largest body of a request; a larger one is refused with 413 before memory is allocated for it."""
    requests_max_bytes: int = setting(LONG, default=256 * 1024 * 1024, check=at_least(1024))
    """Most bytes of bodies in memory, over all requests being handled; requests beyond it are refused with 429."""
    request_header_max_bytes: int = setting(INT, default=64 * 1024, check=at_least(1024))
    """Largest size of a request's line and headers together."""
    request_read_timeout_ms: int = setting(INT, default=30_000, check=at_least(1))
    """How long a client may take to send the headers, to send the next part of a body, and to read on in a response."""
    request_queue_timeout_ms: int = setting(INT, default=30_000, check=at_least(1))
    """How long a request other than GET may wait for its turn before it is answered with 503."""
    idle_timeout_ms: int = setting(INT, default=30_000, check=at_least(1000))
    """How long a connection may stay idle before it is closed."""
    max_connections: int = setting(INT, default=10_000, check=at_least(1))
    """Most connections and requests at once; those beyond are answered with 503."""
    worker_threads: int = setting(INT, default=16, check=between(1, 1000))
    """Requests that may wait for storage or other services at once; the others queue. Requests other than GET take at
    most three quarters of the threads, so that reads go on."""
    shutdown_timeout_ms: int = setting(INT, default=10_000, check=at_least(0))
    """How long current requests may take to finish when the service stops."""

    @property
    def client_authentication(self) -> str:
        """Whether clients of https listeners show a certificate."""
        return self.ssl_client_authentication or ("REQUIRED" if self.ssl_ca_location else "NONE")

    @override
    def problems(self) -> Iterable[Problem]:
        """Listeners must be URLs, and https needs a certificate."""
        yield from super().problems()
        if self.client_authentication != "NONE" and not self.ssl_ca_location:
            missing = "needs ssl.ca.location: the authorities that clients' certificates come from"
            yield Problem(key="ssl.client.authentication", value=self.client_authentication, reason=missing)
        for listener in self.listeners:
            if reason := _problem(listener):
                yield Problem(key="listeners", value=listener, reason=reason)
            elif listener.startswith("https:") and not self.ssl_certificate_location:
                reason = "https needs a certificate: set ssl.certificate.location to a PEM file"
                yield Problem(key="listeners", value=listener, reason=reason)


def _problem(listener: str) -> str | None:
    """What is wrong with the address of a listener, if anything."""
    try:
        parts = urlsplit(listener)
        port = parts.port
    except ValueError as error:
        return f"must be http://host:port: {error}"
    if parts.scheme not in ("http", "https") or port is None or parts.path.strip("/") or parts.query:
        return "must be http://host:port or https://host:port"
    return None
