"""Which connections a node accepts, and when: limits of their number and of the pace of new ones (KIP-402, KIP-612).

Clients and other nodes have limits of their own: there is one `ConnectionLimits` for the listeners of each. Time is
handed in, in seconds of a monotonic clock.
"""

from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import Final

from core_broker.security.rates import WindowRate
from core_broker.service.settings import INT_MAX
from core_broker.settings import BrokerSettings

SLOT_SECONDS: Final = 0.1
"""How long to wait before looking again whether a connection has been closed."""
_ADDRESSES_MAX: Final = 10_000
"""Addresses with a quota that are measured; beyond it, the least recently seen are forgotten."""


class ConnectionLimits:
    """The limits of some listeners, and their connections as far as the limits need them."""

    def __init__(self, settings: BrokerSettings, listeners: Sequence[str]) -> None:
        self._listeners = tuple(listeners)
        self._window = (settings.quota_window_num, settings.quota_window_size_seconds)
        self._rate = self._new_rate()
        self._rates = {listener: self._new_rate() for listener in listeners}
        self._address_rates: OrderedDict[str, WindowRate] = OrderedDict()
        self._open: Counter[str] = Counter()
        """Connections by listener."""
        self._open_by_host: Counter[str] = Counter()
        self.configure(settings)

    def configure(self, settings: BrokerSettings) -> None:
        """Apply settings that changed at run time."""
        self._settings = settings
        unlimited = settings.replace(max_connections=INT_MAX, max_connection_creation_rate=INT_MAX)
        self._own = {listener: unlimited.for_listener(listener) for listener in self._listeners}
        """The settings with the limits of single listeners, without those of the broker."""
        self._limits_by_host = _overrides(settings.max_connections_per_ip_overrides)

    def wait_seconds(self, listener: str, now: float) -> float:
        """How long a listener has to wait before it accepts another connection; 0 if it need not."""
        own, window_seconds = self._own[listener], self._window[1]
        seconds = _wait(self._rates[listener], own.max_connection_creation_rate, now, window_seconds)
        if not self.is_protected(listener):
            of_broker = _wait(self._rate, self._settings.max_connection_creation_rate, now, window_seconds)
            seconds = max(seconds, of_broker)
        return seconds if seconds > 0 or self._has_slot(listener) else SLOT_SECONDS

    def address_wait_seconds(self, host: str, rate_max: float, now: float) -> float:
        """How long an address has to wait before it may open another connection, by its quota; 0 if it need not.

        A connection that need not wait is counted.
        """
        rate = self._address_rates.get(host)
        if rate is None:
            rate = self._address_rates[host] = self._new_rate()
            if len(self._address_rates) > _ADDRESSES_MAX:
                self._address_rates.popitem(last=False)
        else:
            self._address_rates.move_to_end(host)
        seconds = _wait(rate, rate_max, now, self._window[1])
        if seconds == 0:
            rate.record(1, now)
        return seconds

    def admits(self, host: str) -> bool:
        """Whether an address may have another connection."""
        return self._open_by_host[host] < self._limits_by_host.get(host, self._settings.max_connections_per_ip)

    def opened(self, listener: str, host: str, now: float) -> None:
        """Count an accepted connection."""
        self._rates[listener].record(1, now)
        if not self.is_protected(listener):
            self._rate.record(1, now)
        self._open[listener] += 1
        self._open_by_host[host] += 1

    def closed(self, listener: str, host: str) -> None:
        """Take back a connection."""
        self._open[listener] -= 1
        self._open_by_host[host] -= 1
        if self._open_by_host[host] <= 0:
            del self._open_by_host[host]

    def is_protected(self, listener: str) -> bool:
        """Whether the limits of the whole broker do not hold back this listener: other brokers must get through."""
        return listener == self._settings.inter_broker_listener and len(self._listeners) > 1

    @property
    def is_exceeded(self) -> bool:
        """Whether the broker has more connections than it may have, because other brokers got through."""
        return self._open.total() > self._settings.max_connections

    def _has_slot(self, listener: str) -> bool:
        if self._open[listener] >= self._own[listener].max_connections:
            return False
        return self.is_protected(listener) or self._open.total() < self._settings.max_connections

    def _new_rate(self) -> WindowRate:
        samples, seconds = self._window
        return WindowRate(samples_max=samples, sample_seconds=seconds)


def _wait(rate: WindowRate, rate_max: float, now: float, longest_seconds: float) -> float:
    """How long the next connection has to wait, at most one sample."""
    if rate_max >= INT_MAX:
        return 0.0
    if rate_max <= 0:
        return longest_seconds
    return min(rate.throttle_seconds(rate_max, now, more=1), longest_seconds)


def _overrides(entries: tuple[str, ...]) -> dict[str, int]:
    """Parse `address:count` entries."""
    return {host: int(count) for host, _, count in (entry.rpartition(":") for entry in entries)}
