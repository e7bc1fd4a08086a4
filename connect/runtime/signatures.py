"""Requests that a worker forwards are signed, so that the leader can believe what they say about the caller.

The key is in the config topic, in Kafka Connect's own record: only workers can read it. A signature is for one request
(method, path, query and body), is accepted once, and only for a short time.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final

import msgspec

from connect.stores.config_records import SessionKey
from core_broker.service.clock import Clock, SystemClock
from core_broker.web_access.callers import Caller, caller_named
from core_broker.web_access.errors import Forbidden, Unavailable

HEADER: Final = "x-connect-authorization"
_ALGORITHM: Final = "HmacSHA256"
_KEY_BYTES: Final = 32
_VALID_MS: Final = 120_000
"""More than a request takes, and than the clocks of two workers should differ."""
_REMEMBERED_MAX: Final = 10_000


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says about a request that it forwards."""

    principal: str
    host: str
    method: str
    target: str
    """The path and the query, as they are sent."""
    body: str
    """Its SHA-256."""
    time_ms: int
    nonce: str

    @property
    def caller(self) -> Caller:
        """Who has sent the request to that worker."""
        return caller_named(self.principal, host=self.host)


def new_session_key(clock: Clock | None = None) -> SessionKey:
    """A new random key."""
    return SessionKey(
        key=base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode(),
        algorithm=_ALGORITHM,
        creation_timestamp=(clock or SystemClock()).now_ms(),
    )


class Signatures:
    """Signs and checks for one worker. Thread-safe."""

    def __init__(self, keys: Callable[[], Sequence[SessionKey]], *, clock: Clock | None = None) -> None:
        """`keys` returns those that are valid now, the newest first."""
        self._keys = keys
        self._clock = clock or SystemClock()
        self._seen: dict[str, int] = {}
        self._lock = Lock()

    def sign(self, caller: Caller, *, method: str, target: str, body: bytes) -> str | None:
        """The header for a request; None while there is no key."""
        key = next(iter(self._keys()), None)
        if key is None:
            return None
        statement = Statement(
            principal=str(caller.principal),
            host=caller.host,
            method=method,
            target=target,
            body=digest(body),
            time_ms=self._clock.now_ms(),
            nonce=secrets.token_hex(16),
        )
        text = base64.urlsafe_b64encode(msgspec.json.encode(statement))
        return f"{text.decode()}.{_signature(key, text)}"

    def check(self, header: str, *, method: str, target: str) -> Statement:
        """What a worker says about a request. Raises Forbidden, or Unavailable while there is no key.

        Whether the body is the one that was signed must be checked when it is read: `Statement.body`.
        """
        keys = self._keys()
        if not keys:
            raise Unavailable("This worker does not know the key of forwarded requests yet")
        text, _, signature = header.partition(".")
        given = signature.encode("latin-1", "replace")
        if not any(hmac.compare_digest(given, _signature(key, text.encode("latin-1")).encode()) for key in keys):
            raise Forbidden("The signature of a forwarded request is wrong")
        try:
            statement = msgspec.json.decode(base64.urlsafe_b64decode(text), type=Statement)
        except (ValueError, msgspec.MsgspecError):
            raise Forbidden("The signature of a forwarded request is of another version") from None
        if (statement.method, statement.target) != (method, target):
            raise Forbidden("The signature of a forwarded request is that of another request")
        now = self._clock.now_ms()
        if abs(now - statement.time_ms) > _VALID_MS:
            raise Forbidden("The signature of a forwarded request is too old: the clocks of the workers must agree")
        self._use(statement.nonce, now)
        return statement

    def _use(self, nonce: str, now: int) -> None:
        with self._lock:
            if nonce in self._seen:
                raise Forbidden("The signature of a forwarded request was used before")
            if len(self._seen) >= _REMEMBERED_MAX:
                self._seen = {known: at for known, at in self._seen.items() if now - at <= 2 * _VALID_MS}
            if len(self._seen) >= _REMEMBERED_MAX:
                raise Unavailable("Too many requests are being forwarded")
            self._seen[nonce] = now


def digest(body: bytes) -> str:
    """The body in a signature."""
    return hashlib.sha256(body).hexdigest()


def _signature(key: SessionKey, text: bytes) -> str:
    made = hmac.new(base64.b64decode(key.key), text, hashlib.sha256).digest()
    return base64.urlsafe_b64encode(made).decode()
