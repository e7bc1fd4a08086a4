"""Logins of connections: who has to log in, for how long that lasts, and when a client must do so again (KIP-368)."""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from core_broker.handlers.context import Services
from core_broker.handlers.session import Session
from core_broker.security.sasl.listener import DELAYED_MAX, SaslListener, SaslListeners
from core_broker.security.sasl.mechanism import Outcome
from core_broker.server.authentication import Authentication, Reply
from core_broker.server.dispatch import dispatch

SECONDS_MAX: Final = 10.0
"""A client that logs in has to send its next request within this time."""
_THREADS: Final = 2
_RENEWAL_SECONDS_MIN: Final = 1.0
"""A client may begin to log in again this long after it did so before."""
_HANDSHAKE: Final = 17

_unpack_key = struct.Struct(">h").unpack_from


class Logins:
    """What the logins of all connections share."""

    def __init__(self, listeners: SaslListeners, services: Services) -> None:
        self._listeners = listeners
        self._services = services
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="login")
        self._delayed = 0

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def of(self, session: Session) -> "Login | None":
        """The login of a new connection; None if its listener has none."""
        listener = self._listeners.get(session.listener_name)
        return None if listener is None else Login(self, listener, session, self._services)

    async def delay(self, seconds: float) -> None:
        """Wait before a failure is answered; when very many connections wait already, this one does not."""
        if seconds <= 0 or self._delayed >= DELAYED_MAX:
            return
        self._delayed += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            self._delayed -= 1

    def in_thread(self, compute: Callable[[], Outcome]) -> Awaitable[Outcome]:
        """Compute in one of few threads."""
        return asyncio.get_running_loop().run_in_executor(self._threads, compute)


class Login:
    """The login of one connection, and those that follow on it."""

    def __init__(self, logins: Logins, listener: SaslListener, session: Session, services: Services) -> None:
        self._logins = logins
        self._listener = listener
        self._session = session
        self._services = services
        self._mechanism: str | None = None
        self._began_at = 0.0
        self._current: Authentication | None = self._begin()

    @property
    def is_in_progress(self) -> bool:
        """Whether the client is logging in, for the first time or again."""
        return self._current is not None

    @property
    def frame_bytes(self) -> tuple[int, int] | None:
        """The sizes of frames that may come next; None for those of any request."""
        current = self._current
        return None if current is None else (current.frame_bytes_min, current.frame_bytes_max)

    def receive(self, frame: memoryview) -> Reply | Awaitable[Reply] | None:
        """Judge a frame; None if it is a request of a client that has logged in."""
        if self._current is None and not self._begins_again(frame):
            return self._judge_session()
        assert self._current is not None
        reply = self._current.receive(frame)
        if isinstance(reply, Reply):
            self._end_if_complete()
            return reply
        return self._receive_later(reply)

    def refuse_size(self, size: int) -> Reply:
        """What to do about a frame of a size that is not allowed."""
        assert self._current is not None, "other frames are refused like those of any connection"
        return self._current.refuse_size(size)

    async def delay(self, reply: Reply) -> None:
        """Wait before an answer."""
        await self._logins.delay(reply.delay_seconds)

    async def _receive_later(self, reply: Awaitable[Reply]) -> Reply:
        found = await reply
        self._end_if_complete()
        return found

    def _begins_again(self, frame: memoryview) -> bool:
        """Whether this is the handshake of a client whose session ends, which then logs in again."""
        if self._session.expires_at is None or _unpack_key(frame)[0] != _HANDSHAKE:
            return False
        if self._services.clock.monotonic() - self._began_at < _RENEWAL_SECONDS_MIN:
            return False
        self._current = self._begin()
        return True

    def _judge_session(self) -> Reply | None:
        """Close the connection when the session has ended."""
        expires_at = self._session.expires_at
        if expires_at is None or self._services.clock.monotonic() < expires_at:
            return None
        self._services.metrics.sessions_expired += 1
        return Reply(closes=True, reason="the session has expired and the client did not log in again")

    def _begin(self) -> Authentication:
        services = self._services
        if self._mechanism is not None:
            self._began_at = services.clock.monotonic()
        return Authentication(
            self._listener,
            self._session,
            clock=services.clock,
            metrics=services.metrics,
            api_versions=self._api_versions,
            in_thread=self._logins.in_thread,
            former_mechanism=self._mechanism,
        )

    def _end_if_complete(self) -> None:
        if self._current is not None and self._current.is_complete:
            self._mechanism = self._current.mechanism_name
            self._current = None

    def _api_versions(self, frame: memoryview, header: tuple[int, int, int]) -> bytearray:
        answer = dispatch(frame, header, self._session, self._services)
        assert isinstance(answer, bytearray), "ApiVersions is answered at once"
        return answer
