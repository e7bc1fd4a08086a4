"""An HTTP client with limits on time, size and rate, whose errors say what the worker does about them."""

import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

import httpx2

from connect.api.errors import ConfigError, ConnectError, DataError, RetriableError
from connectors.http.authorization import Authorization, authorization_of
from connectors.http.config import HttpConfig
from connectors.http.status_codes import StatusCodes, is_outage, retry_after_ms
from core_broker.service.clock import SystemClock

_SUMMARY_CHARACTERS: Final = 300
_UNAUTHORIZED: Final = 401


class TryLater(RetriableError):
    """The API is unavailable or limits the rate; `after_ms` is the pause that it asks for."""

    def __init__(self, message: str, *, after_ms: int | None = None, status: int | None = None) -> None:
        super().__init__(message)
        self.after_ms = after_ms
        self.status = status


@dataclass(frozen=True, slots=True)
class Response:
    """The response to a request."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str

    @property
    def summary(self) -> str:
        """The status and the beginning of the body, for messages."""
        text = " ".join(self.body[: _SUMMARY_CHARACTERS * 4].decode(errors="replace").split())[:_SUMMARY_CHARACTERS]
        return f"HTTP status {self.status}{': ' if text else ''}{text}"


class HttpClient:
    """Keeps connections open; may be used by several threads."""

    def __init__(
        self,
        config: HttpConfig,
        *,
        wait: Callable[[float], bool],
        response_bytes_max: int,
        is_body_needed: bool,
        connections: int = 1,
    ) -> None:
        self._config = config
        self._wait = wait
        self._response_bytes_max = response_bytes_max
        self._is_body_needed = is_body_needed
        self._retried = StatusCodes.parse("retry.on.status.codes", config.retry_on_status_codes)
        self._clock = SystemClock()
        self._pace = _Pace(config.http_requests_per_second)
        self._client = httpx2.Client(
            headers={"User-Agent": "caudal-connect", **config.more_headers()},
            timeout=httpx2.Timeout(config.timeout_seconds, connect=config.http_connect_timeout_ms / 1000),
            limits=httpx2.Limits(max_connections=connections + 1, max_keepalive_connections=connections + 1),
            verify=_verification(config),
            proxy=_proxy(config),
            trust_env=False,
        )
        self._authorization: Authorization = authorization_of(config, self._client)

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def send(
        self, method: str, url: str, *, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Send a request; TryLater in an outage, and for statuses that are retried."""
        response = self._send(method, url, body, headers or {})
        if response.status == _UNAUTHORIZED and self._authorization.renew():
            response = self._send(method, url, body, headers or {})
        if 300 <= response.status < 400 or response.status in self._retried:
            after_ms = retry_after_ms(response.headers.get("retry-after"), self._clock)
            text = f"{method} {_without_secrets(url)}: {response.summary}"
            raise TryLater(text, after_ms=after_ms, status=response.status)
        return response

    def is_given_up(self, error: TryLater, *, failures: int) -> bool:
        """Whether a status that is retried only by configuration has been retried often enough."""
        return error.status is not None and not is_outage(error.status) and failures > self._config.max_retries

    def _send(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        if (pause := self._pace.pause()) > 0 and self._wait(pause):
            raise TryLater("the task is stopping", after_ms=0)
        deadline = time.monotonic() + self._config.timeout_seconds
        try:
            sent = {**headers, **self._authorization.headers()}
            with self._client.stream(method, url, content=body, headers=sent) as stream:
                return Response(stream.status_code, stream.headers, self._read(stream, deadline), str(stream.url))
        except httpx2.InvalidURL as error:
            raise DataError(f"{_without_secrets(url)} is not a valid URL: {error}") from error
        except httpx2.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise TryLater(f"{method} {_without_secrets(url)} was not answered: {reason}") from error

    def _read(self, response: httpx2.Response, deadline: float) -> bytes:
        """The body, within the deadline: the library's own time-out is for each part of it."""
        parts: list[bytes] = []
        size = 0
        for part in response.iter_bytes():
            parts.append(part)
            size += len(part)
            if size > self._response_bytes_max:
                if self._is_body_needed:
                    most = self._response_bytes_max
                    raise ConnectError(f"the response is larger than {most} bytes: request smaller pages")
                break
            if time.monotonic() > deadline:
                raise TryLater("the response takes too long")
        return b"".join(parts)


class _Pace:
    """Spaces requests, so that there are not too many in a second."""

    def __init__(self, per_second: float) -> None:
        self._interval = 1 / per_second if per_second else 0.0
        self._next = 0.0
        self._lock = threading.Lock()

    def pause(self) -> float:
        """How many seconds to wait before the next request."""
        if not self._interval:
            return 0.0
        with self._lock:
            now = time.monotonic()
            turn = max(self._next, now)
            self._next = turn + self._interval
            return turn - now


def _verification(config: HttpConfig) -> ssl.SSLContext:
    own = (config.https_ssl_truststore_location, config.https_ssl_keystore_location, config.https_ssl_key_password)
    if not any(own) and not config.http_ssl_trust_all_certs:
        return _system_certificates()
    try:
        context = ssl.create_default_context(cafile=config.https_ssl_truststore_location or None)
        if config.https_ssl_keystore_location:
            context.load_cert_chain(config.https_ssl_keystore_location, password=config.https_ssl_key_password or None)
    except (OSError, ValueError) as error:
        raise ConfigError(f"Invalid value for configuration https.ssl.…: must be PEM files: {error}") from error
    if config.http_ssl_trust_all_certs:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


@cache
def _system_certificates() -> ssl.SSLContext:
    """Cached, because reading them takes longer than many requests."""
    return ssl.create_default_context()


def _proxy(config: HttpConfig) -> httpx2.Proxy | None:
    if not config.http_proxy_host:
        return None
    auth = (config.http_proxy_user, config.http_proxy_password) if config.http_proxy_user else None
    return httpx2.Proxy(f"http://{config.http_proxy_host}:{config.http_proxy_port}", auth=auth)


def _without_secrets(url: str) -> str:
    """A URL without its query, user and password."""
    shown = url.partition("?")[0]
    scheme, separator, rest = shown.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}" if "@" in rest.partition("/")[0] else shown
