"""SASL on a connection: frames in, responses out, until the client has logged in. It does no I/O.

A client may ask for the versions of APIs, then names a mechanism (SaslHandshake), and then exchanges messages of that
mechanism: as SaslAuthenticate requests, or without any header after version 0 of SaslHandshake. Anything else closes
the connection without an answer. The answer to a failure is delayed, so that passwords cannot be tried out quickly, and
it says no more than that the credentials are invalid. Clients whose session ends log in again alike (KIP-368).
"""

import logging
from collections.abc import Awaitable, Callable
from enum import Enum, auto
from typing import Final

import msgspec

from core_broker.errors import ErrorCode
from core_broker.handlers.session import Session
from core_broker.metrics import BrokerMetrics
from core_broker.protocol.fields import decode
from core_broker.protocol.frames import (
    HEADER_BYTES_MIN,
    SIZE_BYTES,
    encode_response,
    finish_response,
    parse_client_id,
    unpack_header,
)
from core_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from core_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from core_broker.protocol.primitives import DecodeError
from core_broker.security.sasl.listener import EnabledMechanism, SaslListener
from core_broker.security.sasl.mechanism import Challenge, Failure, Mechanism, Outcome, Pending, Success, Verdict
from core_broker.service.clock import Clock

log = logging.getLogger(__name__)

_REQUESTS_MAX: Final = 12
"""Requests of one login: no mechanism needs as many. A client may try several tokens, but not without end."""
_SHOWN_LENGTH_MAX: Final = 100
_ERROR_CODE: Final = slice(8, 10)
"""Where a response to ApiVersions has its error code: after the length of the frame and the correlation id."""

_HANDSHAKE: Final = 17
_API_VERSIONS: Final = 18
_AUTHENTICATE: Final = 36

Answered = Callable[[memoryview, tuple[int, int, int]], bytearray]
"""Answers a request for the versions of APIs, given its frame and its header; may raise DecodeError."""
InThread = Callable[[Callable[[], Outcome]], Awaitable[Outcome]]
"""Computes in a thread."""


class Reply(msgspec.Struct, frozen=True):
    """What to do about a frame."""

    response: bytearray | None = None
    """What to send; None for nothing."""
    closes: bool = False
    """Whether to close the connection after the response."""
    delay_seconds: float = 0.0
    """How long to wait, without reading, before the response is sent and the connection closed."""
    key: int = _AUTHENTICATE
    """The API that the frame was a request of."""
    reason: str = ""
    """Why the connection is closed without an answer."""


class _State(Enum):
    START = auto()
    """Nothing but a request for versions or a handshake is expected."""
    HANDSHAKE = auto()
    """The versions are known."""
    EXCHANGE = auto()
    """Messages of a mechanism are exchanged."""
    COMPLETE = auto()
    FAILED = auto()


class Authentication:
    """One login of one connection."""

    def __init__(
        self,
        listener: SaslListener,
        session: Session,
        *,
        clock: Clock,
        metrics: BrokerMetrics,
        api_versions: Answered,
        in_thread: InThread,
        former_mechanism: str | None = None,
    ) -> None:
        """`former_mechanism` is the one of the session, if a client that has logged in does so again."""
        self._listener = listener
        self._session = session
        self._clock = clock
        self._metrics = metrics
        self._api_versions = api_versions
        self._in_thread = in_thread
        self._former_mechanism = former_mechanism
        self._state = _State.START if former_mechanism is None else _State.HANDSHAKE
        self._mechanism: Mechanism | None = None
        self._enabled: EnabledMechanism | None = None
        self._is_framed = False
        """Whether messages of the mechanism are SaslAuthenticate requests."""
        self._requests = 0

    @property
    def is_complete(self) -> bool:
        """Whether the client has logged in."""
        return self._state is _State.COMPLETE

    @property
    def mechanism_name(self) -> str:
        """By which mechanism it did."""
        return "" if self._mechanism is None else self._mechanism.name

    @property
    def frame_bytes_min(self) -> int:
        """The smallest frame that is expected: messages without a header may be empty."""
        return 0 if self._state is _State.EXCHANGE and not self._is_framed else HEADER_BYTES_MIN

    @property
    def frame_bytes_max(self) -> int:
        """The largest frame that is read."""
        return self._listener.receive_bytes_max

    def receive(self, frame: memoryview) -> Reply | Awaitable[Reply]:
        """Judge a frame. Raises nothing, whatever the frame is."""
        self._requests += 1
        if self._requests > _REQUESTS_MAX:
            return self._fail(Failure("too many requests"), None)
        try:
            return self._judge(frame)
        except (DecodeError, ValueError) as error:
            return self._stop(f"the request cannot be decoded: {error}")

    def refuse_size(self, size: int) -> Reply:
        """What to do about a frame of a size that is not allowed."""
        return self._fail(Failure(f"a frame has {size} bytes"), None)

    def _judge(self, frame: memoryview) -> Reply | Awaitable[Reply]:
        if self._state is _State.EXCHANGE and not self._is_framed:
            return self._step(bytes(frame), None)
        if len(frame) < HEADER_BYTES_MIN:
            return self._stop("a request without a header")
        header = unpack_header(frame, 0)
        key, version, _ = header
        if self._state is _State.EXCHANGE:
            return self._exchange(frame, header)
        if key == _API_VERSIONS and self._state is _State.START:
            response = self._api_versions(frame, header)
            if not any(response[_ERROR_CODE]):
                self._state = _State.HANDSHAKE
            return Reply(response, key=key)
        if key == _HANDSHAKE and self._state in (_State.START, _State.HANDSHAKE):
            return self._shake_hands(frame, header)
        return self._stop(f"a request with key {key} version {version} before the client has logged in")

    # -- handshake -----------------------------------------------------------------------------------------------------

    def _shake_hands(self, frame: memoryview, header: tuple[int, int, int]) -> Reply:
        _, version, correlation_id = header
        if not 0 <= version <= SaslHandshakeRequest.VERSIONS[1]:
            return self._stop(f"SaslHandshake has no version {version}")
        request = decode(SaslHandshakeRequest, version, frame, parse_client_id(frame, flexible=False)[1])
        names = list(self._listener.mechanisms)
        self._enabled = self._listener.mechanisms.get(request.mechanism)
        if self._enabled is None:
            refused = SaslHandshakeResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM, names)
            response = encode_response(refused, version, correlation_id, flexible_header=False)
            reason = f"mechanism {printable(request.mechanism)} is not enabled"
            return self._fail(Failure(reason), response, key=_HANDSHAKE)
        self._mechanism = self._enabled.begin()
        self._is_framed = version > 0
        self._state = _State.EXCHANGE
        answer = encode_response(SaslHandshakeResponse(0, names), version, correlation_id, flexible_header=False)
        return Reply(answer, key=_HANDSHAKE)

    # -- messages of the mechanism -------------------------------------------------------------------------------------

    def _exchange(self, frame: memoryview, header: tuple[int, int, int]) -> Reply | Awaitable[Reply]:
        key, version, correlation_id = header
        if key != _AUTHENTICATE:
            response = self._illegal_state(header)
            return self._fail(Failure(f"a request with key {key} instead of SaslAuthenticate"), response, key=key)
        if not 0 <= version <= SaslAuthenticateRequest.VERSIONS[1]:
            return self._stop(f"SaslAuthenticate has no version {version}")
        _, body = parse_client_id(frame, flexible=version >= SaslAuthenticateRequest.FLEXIBLE_SINCE)
        request = decode(SaslAuthenticateRequest, version, frame, body)
        return self._step(bytes(request.auth_bytes), (version, correlation_id))

    def _illegal_state(self, header: tuple[int, int, int]) -> bytearray | None:
        """The answer to a request out of turn; those of other APIs are not decoded to answer them in their form."""
        key, version, correlation_id = header
        if key != _HANDSHAKE or not 0 <= version <= SaslHandshakeRequest.VERSIONS[1]:
            return None
        refused = SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE)
        return encode_response(refused, version, correlation_id, flexible_header=False)

    def _step(self, data: bytes, request: tuple[int, int] | None) -> Reply | Awaitable[Reply]:
        """Pass a message to the mechanism; `request` are version and correlation id, None for one without a header."""
        mechanism = self._mechanism
        assert mechanism is not None, "an exchange has a mechanism"
        if self._former_mechanism not in (None, mechanism.name):
            return self._fail(Failure(f"the mechanism was {self._former_mechanism} before"), None)
        if mechanism.is_slow(data):
            return self._step_in_thread(mechanism, data, request)
        outcome = mechanism.step(data)
        if isinstance(outcome, Pending):
            return self._settle(outcome, mechanism, data, request)
        return self._reply(outcome, request)

    async def _step_in_thread(self, mechanism: Mechanism, data: bytes, request: tuple[int, int] | None) -> Reply:
        return await self._settle(await self._in_thread(lambda: mechanism.step(data)), mechanism, data, request)

    async def _settle(
        self, outcome: Outcome, mechanism: Mechanism, data: bytes, request: tuple[int, int] | None
    ) -> Reply:
        """Pass the message to the mechanism again, until it can be judged."""
        while isinstance(outcome, Pending):
            await outcome.wait()
            outcome = mechanism.step(data)
        return self._reply(outcome, request)

    def _reply(self, outcome: Verdict, request: tuple[int, int] | None) -> Reply:
        match outcome:
            case Challenge(data=data):
                return Reply(self._message(SaslAuthenticateResponse(auth_bytes=data), request))
            case Success():
                return self._succeed(outcome, request)
            case Failure():
                return self._refuse(outcome, request)

    def _refuse(self, failure: Failure, request: tuple[int, int] | None) -> Reply:
        if request is None:
            return self._fail(failure, None)
        during = "authentication" if self._former_mechanism is None else "re-authentication"
        general = f"Authentication failed during {during} due to invalid credentials with SASL mechanism"
        message = failure.message or f"{general} {self.mechanism_name}"
        answer = SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, message)
        return self._fail(failure, self._message(answer, request))

    def _succeed(self, success: Success, request: tuple[int, int] | None) -> Reply:
        before = self._session.principal
        if self._former_mechanism is not None and success.principal != before:
            text = f"Cannot change principals during re-authentication from {before} to {success.principal}"
            return self._refuse(Failure("the principal was another one before", str(success.principal), text), request)
        lifetime_ms = self._lifetime_ms(success)
        self._state = _State.COMPLETE
        self._session.principal = success.principal
        self._session.expires_at = None if lifetime_ms is None else self._clock.monotonic() + lifetime_ms / 1000
        stats = self._metrics.login(self._session.listener_name, self.mechanism_name)
        if self._former_mechanism is None:
            stats.succeeded += 1
        else:
            stats.renewals_succeeded += 1
        answer = SaslAuthenticateResponse(
            error_message=None, auth_bytes=success.data, session_lifetime_ms=lifetime_ms or 0
        )
        return Reply(self._message(answer, request))

    def _lifetime_ms(self, success: Success) -> int | None:
        """How long the session lasts; None if without end."""
        assert self._enabled is not None, "an exchange has a mechanism"
        limits = [self._enabled.session_ms_max] if self._enabled.session_ms_max > 0 else []
        if success.expires_at_ms is not None:
            limits.append(success.expires_at_ms - self._clock.now_ms())
        return max(0, min(limits)) if limits else None

    def _message(self, answer: SaslAuthenticateResponse, request: tuple[int, int] | None) -> bytearray:
        if request is None:
            return finish_response(bytearray(SIZE_BYTES) + answer.auth_bytes)
        version, correlation_id = request
        is_flexible = version >= SaslAuthenticateRequest.FLEXIBLE_SINCE
        return encode_response(answer, version, correlation_id, flexible_header=is_flexible)

    # -- failures ------------------------------------------------------------------------------------------------------

    def _stop(self, reason: str) -> Reply:
        """Close at once and say nothing: this is no client that tries to log in."""
        self._state = _State.FAILED
        return Reply(closes=True, reason=reason)

    def _fail(self, failure: Failure, response: bytearray | None, *, key: int = _AUTHENTICATE) -> Reply:
        self._state = _State.FAILED
        stats = self._metrics.login(self._session.listener_name, self.mechanism_name)
        if self._former_mechanism is None:
            stats.failed += 1
        else:
            stats.renewals_failed += 1
        log.info(
            "authentication failed",
            extra={
                "client": f"{self._session.host}:{self._session.port}",
                "listener": self._session.listener_name,
                "mechanism": self.mechanism_name,
                "user": printable(failure.user),
                "reason": failure.reason,
            },
        )
        return Reply(response, closes=True, delay_seconds=self._listener.failure_delay_seconds, key=key)


def printable(text: str) -> str:
    """Text of a client as it may be logged: short, and without characters that could look like further lines."""
    shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:_SHOWN_LENGTH_MAX])
    return shown if len(text) <= _SHOWN_LENGTH_MAX else f"{shown}..."
