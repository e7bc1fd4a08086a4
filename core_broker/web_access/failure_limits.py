"""How often passwords may be tried: budgets of failures for each address and for each user name."""

import ipaddress
import math
from collections import OrderedDict
from functools import lru_cache
from typing import Final, TypeAlias

from core_broker.security.rates import TokenBucket
from core_broker.service.clock import Clock

_BUDGETS_MAX: Final = 10_000
_BURST_SECONDS: Final = 60.0
_IPV6_NETWORK_BITS: Final = 64
"""What one customer of a provider has."""

_Source: TypeAlias = tuple[str, str]


class FailureLimits:
    """Admits tries, and takes back those that did not fail."""

    def __init__(self, clock: Clock, *, per_minute: int) -> None:
        self._clock = clock
        self._per_second = per_minute / 60
        self._budgets: OrderedDict[_Source, TokenBucket] = OrderedDict()
        """Those that were used last at the end. A new one is full, so one that was forgotten forgives."""

    def wait_seconds(self, user: str, host: str) -> int:
        """After how many seconds the next try is allowed; 0 for now."""
        now = self._clock.monotonic()
        budgets = (self._budgets.get(source) for source in _sources(user, host))
        missing = max((1 - budget.tokens(self._per_second, now) for budget in budgets if budget is not None), default=0)
        return math.ceil(missing / self._per_second) if missing > 0 else 0

    def add(self, user: str, host: str) -> None:
        """Count a try as a failure before it is checked, so that tries at the same time count, too."""
        self._take(user, host, 1)

    def take_back(self, user: str, host: str) -> None:
        """The try was no failure."""
        self._take(user, host, -1)

    def _take(self, user: str, host: str, amount: int) -> None:
        now = self._clock.monotonic()
        for source in _sources(user, host):
            budget = self._budgets.pop(source, None) or TokenBucket(burst_seconds=_BURST_SECONDS)
            budget.take(amount, self._per_second, now)
            self._budgets[source] = budget
        while len(self._budgets) > _BUDGETS_MAX:
            self._budgets.popitem(last=False)


def _sources(user: str, host: str) -> tuple[_Source, _Source]:
    return ("address", _network_of(host)), ("user", user)


@lru_cache(maxsize=4096)
def _network_of(host: str) -> str:
    """The address, or the network of an IPv6 address, of which one client can have any number."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _IPV6_NETWORK_BITS), strict=False))
