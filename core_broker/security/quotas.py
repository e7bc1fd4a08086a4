"""The use of a broker by its clients, measured against the quotas of the metadata.

Only clients that have a quota are measured. Each broker measures on its own, so a limit holds for each broker and not
for the cluster. What has not been used for an hour is forgotten, and so is the least recently used if clients invent
ever new names.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.stored.metadata import ClientQuotaRecord
from core_broker.security.quota_limits import Limit, QuotaKey, QuotaLimits
from core_broker.security.rates import SampledSum, TokenBucket, WindowRate
from core_broker.service.clock import Clock, SystemClock
from core_broker.service.settings import INT_MAX

MEASURED_MAX: Final = 10_000
"""Measured clients; beyond it, the least recently used are forgotten."""
_IDLE_SECONDS: Final = 3600.0


class Window(msgspec.Struct, frozen=True):
    """The samples that a rate is computed from."""

    samples: int = 11
    sample_seconds: int = 1

    @property
    def seconds(self) -> int:
        """All samples."""
        return self.samples * self.sample_seconds

    def rate(self) -> WindowRate:
        """A rate over this window."""
        return WindowRate(samples_max=self.samples, sample_seconds=self.sample_seconds)

    def sum(self) -> SampledSum:
        """A sum over this window."""
        return SampledSum(samples_max=self.samples, sample_seconds=self.sample_seconds)


class Measured:
    """What the clients of one limit have used, and for how long they were throttled."""

    __slots__ = ("_throttles", "_throttles_ms", "bound", "bucket", "client_id", "key", "last_used", "rate", "user")

    def __init__(self, key: str, limit: Limit, window: Window) -> None:
        self.key = key
        self.user = limit.user
        self.client_id = limit.client_id
        self.bound = limit.bound
        self.last_used = 0.0
        self.rate = window.rate()
        self.bucket = TokenBucket(burst_seconds=window.seconds)
        """Only of use for changes of the metadata, which may come in bursts."""
        self._throttles = window.sum()
        self._throttles_ms = window.sum()

    def note_throttle(self, throttle_ms: int, now: float) -> None:
        """Count a response that throttled its client."""
        self._throttles.add(1, now)
        self._throttles_ms.add(throttle_ms, now)

    def mean_throttle_ms(self, now: float) -> float:
        """By how much clients were throttled lately, for metrics."""
        counts, times = list(self._throttles.samples), list(self._throttles_ms.samples)
        live = [
            (count.amount, time.amount)
            for count, time in zip(counts, times, strict=False)
            if now - count.started_at < self._throttles.window_seconds
        ]
        return sum(ms for _, ms in live) / max(sum(count for count, _ in live), 1)


class ClientQuotas:
    """The quotas of users and client ids on one node."""

    def __init__(self, clock: Clock, *, window: Window | None = None, controller_window: Window | None = None) -> None:
        self._clock = clock
        self._window = window or Window()
        self._controller_window = controller_window or Window()
        self._found: dict[tuple[str, str, str], Limit | None] = {}
        self._measured: OrderedDict[tuple[str, str | None, str | None], Measured] = OrderedDict()
        self.limits = QuotaLimits()
        self.is_active = False
        """Whether there is any limit at all; without one, requests are not measured."""
        self.exempt = self._window.rate()
        """Seconds spent on requests that no quota applies to, mainly those of other nodes."""

    def follow(self, carried: Mapping[tuple[object, ...], Message], changes: Iterable[Message] | None = None) -> None:
        """Take the quotas from the records that the metadata keeps for security.

        `changes` are the records that led to them: without a quota among them there is nothing to do. What has been
        measured stays: the same clients may have a new limit.
        """
        if changes is not None and not any(isinstance(record, ClientQuotaRecord) for record in changes):
            return
        self.limits = QuotaLimits.of_metadata(carried)
        self.is_active = self.limits.has_clients
        self._found = {}

    def measured(self, key: QuotaKey, user: str, client_id: str) -> Measured | None:
        """The use that counts for the limit of a client; None if it has none."""
        limit = self._find(key, user, client_id)
        if limit is None:
            return None
        now = self._clock.monotonic()
        name = (key, limit.user, limit.client_id)
        found = self._measured.get(name)
        if found is None:
            self._forget(now)
            window = self._controller_window if key is QuotaKey.CONTROLLER_MUTATION_RATE else self._window
            found = self._measured[name] = Measured(key, limit, window)
        else:
            self._measured.move_to_end(name)
        found.bound = limit.bound
        found.last_used = now
        return found

    def recently_measured(self, count_max: int) -> Iterator[Measured]:
        """The most recently measured clients, the last first; another thread may ask."""
        return iter(list(self._measured.values())[: -count_max - 1 : -1])

    def record_bytes(self, key: QuotaKey, user: str, client_id: str, size_bytes: int) -> int:
        """Count bytes; returns for how many milliseconds the client has to be throttled."""
        measured = self.measured(key, user, client_id)
        if measured is None:
            return 0
        return self._record(measured, size_bytes)

    def record_response(self, user: str, client_id: str, size_bytes: int, *, is_throttled: bool) -> tuple[int, bool]:
        """Count a response to a fetch; returns the throttle time in milliseconds, and whether to send the response.

        If not, it does not count. `is_throttled` says that another quota of the client is violated.
        """
        measured = self.measured(QuotaKey.CONSUMER_BYTE_RATE, user, client_id)
        if measured is None:
            return 0, not is_throttled
        now = self._clock.monotonic()
        was_empty = measured.rate.is_empty
        throttle_ms = self._record(measured, size_bytes)
        # A single batch larger than the limit of a whole window is sent all the same, or else it never could be.
        is_sent = not is_throttled and (throttle_ms == 0 or was_empty)
        if not is_sent:
            measured.rate.record(-size_bytes, now)
        return throttle_ms, is_sent

    def fetch_bytes_max(self, user: str, client_id: str) -> int:
        """The largest response to a fetch that is within the limit of a whole window."""
        measured = self.measured(QuotaKey.CONSUMER_BYTE_RATE, user, client_id)
        if measured is None:
            return INT_MAX
        window = self._window
        return int(min(measured.bound * max(window.samples - 1, 1) * window.sample_seconds, INT_MAX))

    def record_time(self, user: str, client_id: str, seconds: float) -> int:
        """Count the time spent on a request; returns the throttle time, at most one sample of the window."""
        measured = self.measured(QuotaKey.REQUEST_PERCENTAGE, user, client_id)
        if measured is None:
            return 0
        return self._record(measured, seconds * 100, longest_ms=self._window.sample_seconds * 1000)

    def record_exempt_time(self, seconds: float) -> None:
        """Count the time spent on a request that no quota applies to."""
        self.exempt.record(seconds * 100, self._clock.monotonic())

    def mutations(self, user: str, client_id: str, *, is_strict: bool) -> "MutationQuota":
        """What a request may change in the metadata."""
        measured = self.measured(QuotaKey.CONTROLLER_MUTATION_RATE, user, client_id)
        return MutationQuota(measured, self._clock, is_strict=is_strict)

    def _record(self, measured: Measured, amount: float, *, longest_ms: int = INT_MAX) -> int:
        now = self._clock.monotonic()
        measured.rate.record(amount, now)
        throttle_ms = min(round(measured.rate.throttle_seconds(measured.bound, now) * 1000), longest_ms)
        if throttle_ms > 0:
            measured.note_throttle(throttle_ms, now)
        return throttle_ms

    def _find(self, key: str, user: str, client_id: str) -> Limit | None:
        name = (key, user, client_id)
        try:
            return self._found[name]
        except KeyError:
            if len(self._found) >= MEASURED_MAX:
                self._found.clear()
            found = self._found[name] = self.limits.find(key, user, client_id)
            return found

    def _forget(self, now: float) -> None:
        """Make room for another measured client."""
        measured = self._measured
        while measured:
            oldest = next(iter(measured.values()))
            if len(measured) < MEASURED_MAX and now - oldest.last_used < _IDLE_SECONDS:
                return
            measured.popitem(last=False)


class MutationQuota:
    """How many partitions one request may still create or delete, judged topic by topic (KIP-599).

    Clients that know the error are refused while their bucket is below zero. Older ones are only throttled.
    """

    def __init__(self, measured: Measured | None, clock: Clock, *, is_strict: bool) -> None:
        self._measured = measured
        self._clock = clock
        self._is_strict = is_strict
        self._outcomes: dict[Hashable, bool] = {}
        self._throttle_seconds = 0.0
        self._judged_at = 0.0

    def charge(self, topic: Hashable, partitions: int) -> None:
        """Count the partitions of a topic, only once for each request. Raises THROTTLING_QUOTA_EXCEEDED."""
        if self._measured is None:
            return
        if topic not in self._outcomes:
            self._outcomes[topic] = self._judge(self._measured, partitions)
        if not self._outcomes[topic]:
            text = f"The quota of changes is used up; try again in {self.throttle_ms} ms."
            raise BrokerError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, text)

    @property
    def throttle_ms(self) -> int:
        """For how many milliseconds the client has to be throttled."""
        if self._throttle_seconds <= 0:
            return 0
        seconds = self._throttle_seconds - (self._clock.monotonic() - self._judged_at)
        return min(max(round(seconds * 1000), 0), INT_MAX)

    def _judge(self, measured: Measured, partitions: int) -> bool:
        now = self._clock.monotonic()
        bound, bucket = measured.bound, measured.bucket
        if self._is_strict and bucket.throttle_seconds(bound, now) > 0:
            self._throttle(measured, now)
            return False
        bucket.take(partitions, bound, now)
        measured.rate.record(partitions, now)
        if not self._is_strict:
            self._throttle(measured, now)
        return True

    def _throttle(self, measured: Measured, now: float) -> None:
        self._throttle_seconds = measured.bucket.throttle_seconds(measured.bound, now)
        self._judged_at = now
        if self._throttle_seconds > 0:
            measured.note_throttle(self.throttle_ms, now)


UNLIMITED: Final = MutationQuota(None, SystemClock(), is_strict=False)
"""For requests that no quota applies to."""
