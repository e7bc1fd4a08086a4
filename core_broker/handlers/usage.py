"""What one request uses of its client's quotas (KIP-13, KIP-124, KIP-219).

It exists only while the cluster has quotas. A response is charged at the moment it is encoded, so that it can say for
how long its client is throttled; the connection then sends it at once, and reads nothing for that time. That way the
client learns about it, and one that does not obey gains nothing.
"""

from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Any, TypeVar

from typing_extensions import override

from core_broker.handlers.session import Session
from core_broker.protocol.fields import Message
from core_broker.security.quota_limits import QuotaKey
from core_broker.security.quotas import ClientQuotas, MutationQuota
from core_broker.service.clock import Clock

T = TypeVar("T")


class Stopwatch:
    """The time that the event loop spends on one request, without the time that the request waits."""

    __slots__ = ("_clock", "_is_running", "_seconds", "_since")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seconds = 0.0
        self._since = clock.monotonic()
        self._is_running = True

    def resume(self) -> None:
        """The loop works on the request again."""
        self._since = self._clock.monotonic()
        self._is_running = True

    def pause(self) -> None:
        """The request waits."""
        self._seconds = self.seconds
        self._is_running = False

    @property
    def seconds(self) -> float:
        """The time until now."""
        return self._seconds + (self._clock.monotonic() - self._since if self._is_running else 0.0)


class RequestUsage:
    """The use of one request, charged to its client once."""

    __slots__ = ("_client_id", "_is_exempt", "_quotas", "_session", "_user", "stopwatch")

    def __init__(
        self, quotas: ClientQuotas, session: Session, client_id: str | None, *, stopwatch: Stopwatch, is_exempt: bool
    ) -> None:
        self._quotas = quotas
        self._session = session
        self._user = session.principal.name
        self._client_id = client_id or ""
        self._is_exempt = is_exempt
        self.stopwatch = stopwatch

    def of_forwarded(self, session: Session, client_id: str | None) -> "RequestUsage":
        """The use of a request within this one, charged to the client that another broker forwards it for."""
        return RequestUsage(self._quotas, session, client_id, stopwatch=self.stopwatch, is_exempt=False)

    def respond(self, response: Message) -> None:
        """Charge the time spent so far, and write into the response for how long the client is throttled."""
        asked_ms: int = getattr(response, "throttle_time_ms", 0)
        throttle_ms = self.charge_time(asked_ms)
        if throttle_ms > asked_ms and "throttle_time_ms" in response.__struct_fields__:
            response.throttle_time_ms = throttle_ms  # type: ignore[attr-defined]  # as just checked

    def charge_time(self, throttle_ms: int = 0) -> int:
        """Charge the time spent so far; returns for how many milliseconds the client is throttled.

        `throttle_ms` is what another quota asks for: the longer of the two counts.
        """
        return self._throttle(max(throttle_ms, self._charge_time()))

    def charge_produce(self, size_bytes: int, *, is_answered: bool) -> int:
        """Charge a request with records; returns for how many milliseconds the client is throttled."""
        bytes_ms = self._quotas.record_bytes(QuotaKey.PRODUCER_BYTE_RATE, self._user, self._client_id, size_bytes)
        time_ms = self._charge_time() if is_answered else 0
        return self._throttle(max(bytes_ms, time_ms))

    def charge_fetch(self, size_bytes: int) -> tuple[int, bool]:
        """Charge a response with records; returns the throttle time, and whether to send this response.

        If not, an empty one has to be sent instead.
        """
        time_ms = self._charge_time()
        bytes_ms, is_sent = self._quotas.record_response(
            self._user, self._client_id, size_bytes, is_throttled=time_ms > 0
        )
        return self._throttle(max(bytes_ms, time_ms)), is_sent

    def exempt(self) -> None:
        """Let no quota apply to this request."""
        self._is_exempt = True
        self._charge_time()

    @property
    def fetch_bytes_max(self) -> int:
        """The largest response to a fetch that is within the client's limit."""
        return self._quotas.fetch_bytes_max(self._user, self._client_id)

    def mutations(self, *, is_strict: bool) -> MutationQuota:
        """What the request may change in the metadata."""
        return self._quotas.mutations(self._user, self._client_id, is_strict=is_strict)

    def _charge_time(self) -> int:
        seconds = self.stopwatch.seconds
        if self._is_exempt:
            self._quotas.record_exempt_time(seconds)
            return 0
        return self._quotas.record_time(self._user, self._client_id, seconds)

    def _throttle(self, throttle_ms: int) -> int:
        if throttle_ms > self._session.throttle_ms:
            self._session.throttle_ms = throttle_ms
        return throttle_ms


class MeasuredCoroutine(Coroutine[Any, Any, T]):
    """A coroutine whose steps are measured; what happens between them is not."""

    __slots__ = ("_inner", "_stopwatch")

    def __init__(self, inner: Coroutine[Any, Any, T], stopwatch: Stopwatch) -> None:
        self._inner = inner
        self._stopwatch = stopwatch

    @override
    def send(self, value: Any) -> Any:
        """Run the next step."""
        self._stopwatch.resume()
        try:
            return self._inner.send(value)
        finally:
            self._stopwatch.pause()

    @override
    def throw(self, error: Any, value: Any = None, traceback: TracebackType | None = None, /) -> Any:
        """Run the next step, which begins with an exception."""
        self._stopwatch.resume()
        try:
            return self._inner.throw(error if value is None else value)
        finally:
            self._stopwatch.pause()

    @override
    def close(self) -> None:
        """End the coroutine."""
        self._inner.close()

    @override
    def __await__(self) -> Generator[Any, Any, T]:
        value = None
        while True:
            try:
                value = yield self.send(value)
            except StopIteration as end:
                result: T = end.value
                return result
