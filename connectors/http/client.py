"""Requests that end: in time, with an answer of a size we can hold, and errors by what to do about them."""

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

_TOLD_CHARACTERS: Final = 300
_UNAUTHORIZED: Final = 401


class TryLater(RetriableError):
    """The other side is away or wants to be left alone; `after_ms` is what it asks for."""

    def __init__(self, message: str, *, after_ms: int | None = None, status: int | None = None) -> None:
        super().__init__(message)
        self.after_ms = after_ms
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str

    @property
    def told(self) -> str:
        """The status and the beginning of the body, for errors."""
        text = " ".join(self.body[: _TOLD_CHARACTERS * 4].decode(errors="replace").split())[:_TOLD_CHARACTERS]
        return f"HTTP status {self.status}{': ' if text else ''}{text}"


class HttpClient:
    """Keeps connections open; may be used by several threads."""

    def __init__(
        self,
        config: HttpConfig,
        *,
        wait: Callable[[float], bool],
        answer_bytes_max: int,
        is_answer_needed: bool,
        connections: int = 1,
    ) -> None:
        self._config = config
        self._wait = wait
        self._answer_bytes_max = answer_bytes_max
        self._is_answer_needed = is_answer_needed
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
        """Leave no connection open."""
        self._client.close()

    def send(
        self, method: str, url: str, *, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send, and return the answer when the status is about the request; TryLater when it is an outage."""
        answer = self._send(method, url, body, headers or {})
        if answer.status == _UNAUTHORIZED and self._authorization.renew():
            answer = self._send(method, url, body, headers or {})
        if 300 <= answer.status < 400 or answer.status in self._retried:
            after_ms = retry_after_ms(answer.headers.get("retry-after"), self._clock)
            raise TryLater(f"{method} {_shown(url)}: {answer.told}", after_ms=after_ms, status=answer.status)
        return answer

    def is_given_up(self, error: TryLater, *, failures: int) -> bool:
        """Whether a status that only this configuration retries has been retried often enough."""
        return error.status is not None and not is_outage(error.status) and failures > self._config.max_retries

    def _send(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        if (pause := self._pace.pause()) > 0 and self._wait(pause):
            raise TryLater("the task is told to stop", after_ms=0)
        deadline = time.monotonic() + self._config.timeout_seconds
        try:
            sent = {**headers, **self._authorization.headers()}
            with self._client.stream(method, url, content=body, headers=sent) as response:
                return Answer(response.status_code, response.headers, self._read(response, deadline), str(response.url))
        except httpx2.InvalidURL as error:
            raise DataError(f"{_shown(url)} is no URL: {error}") from error
        except httpx2.HTTPError as error:
            told = str(error) or type(error).__name__
            raise TryLater(f"{method} {_shown(url)} is not answered: {told}") from error

    def _read(self, response: httpx2.Response, deadline: float) -> bytes:
        """The body; the library's own time-out is for each piece of it."""
        parts: list[bytes] = []
        size = 0
        for part in response.iter_bytes():
            parts.append(part)
            size += len(part)
            if size > self._answer_bytes_max:
                if self._is_answer_needed:
                    raise ConnectError(f"an answer is larger than {self._answer_bytes_max} bytes: ask for less at once")
                break
            if time.monotonic() > deadline:
                raise TryLater("the answer takes too long")
        return b"".join(parts)


class _Pace:
    """Gives every request its time, so that there are not too many in a second."""

    def __init__(self, per_second: float) -> None:
        self._interval = 1 / per_second if per_second else 0.0
        self._next = 0.0
        self._lock = threading.Lock()

    def pause(self) -> float:
        """How many seconds the next request has to wait."""
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
        return _certificates_of_the_system()
    try:
        context = ssl.create_default_context(cafile=config.https_ssl_truststore_location or None)
        if config.https_ssl_keystore_location:
            context.load_cert_chain(config.https_ssl_keystore_location, password=config.https_ssl_key_password or None)
    except (OSError, ValueError) as error:
        raise ConfigError(f"Invalid value for configuration https.ssl.…: must be files with PEM: {error}") from error
    if config.http_ssl_trust_all_certs:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


@cache
def _certificates_of_the_system() -> ssl.SSLContext:
    """Reading them takes longer than many a request."""
    return ssl.create_default_context()


def _proxy(config: HttpConfig) -> httpx2.Proxy | None:
    if not config.http_proxy_host:
        return None
    auth = (config.http_proxy_user, config.http_proxy_password) if config.http_proxy_user else None
    return httpx2.Proxy(f"http://{config.http_proxy_host}:{config.http_proxy_port}", auth=auth)


def _shown(url: str) -> str:
    """A URL without what may be secret: what stands behind the question mark, and names and passwords."""
    shown = url.partition("?")[0]
    scheme, separator, rest = shown.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}" if "@" in rest.partition("/")[0] else shown
