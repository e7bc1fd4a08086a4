"""Metrics of client quotas: what the measured clients use, and for how long they are throttled.

The names are those of the configuration for Kafka that Prometheus' JMX exporter brings along.
"""

from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import quote

from core_broker.security.quota_limits import QuotaKey
from core_broker.security.quotas import ClientQuotas, Measured
from core_broker.service.clock import Clock
from core_broker.service.metrics import Family, gauge

CLIENTS_MAX: Final = 1000
"""Clients with metrics, the most recently measured: clients can invent any number of names."""

_RESOURCES: Final = {
    QuotaKey.PRODUCER_BYTE_RATE: "Produce",
    QuotaKey.CONSUMER_BYTE_RATE: "Fetch",
    QuotaKey.REQUEST_PERCENTAGE: "Request",
    QuotaKey.CONTROLLER_MUTATION_RATE: "ControllerMutation",
}


def quota_families(quotas: ClientQuotas, clock: Clock) -> Iterator[Family]:
    """The use of each limit by its clients; a limit for all users or for all client ids has that label empty."""
    now = clock.monotonic()
    measured = list(quotas.recently_measured(CLIENTS_MAX))
    in_bytes = {QuotaKey.PRODUCER_BYTE_RATE, QuotaKey.CONSUMER_BYTE_RATE}
    yield _family("throttle_time", "Mean throttle time of throttled responses, in ms", measured, _mean_throttle(now))
    for name, help_text, keys in (
        ("byte_rate", "Bytes per second", in_bytes),
        ("request_time", "Time of the event loop, in percent", {QuotaKey.REQUEST_PERCENTAGE}),
        ("mutation_rate", "Partitions created and deleted per second", {QuotaKey.CONTROLLER_MUTATION_RATE}),
    ):
        of_kind = [each for each in measured if each.key in keys]
        yield _family(name, f"{help_text}, of clients with a quota", of_kind, lambda each: each.rate.rate(now))
    yield gauge(
        "kafka_server_request_exempt_request_time",
        "Time of the event loop for requests without quotas, in percent; measured only while there are quotas",
        quotas.exempt.rate(now),
    )


def _mean_throttle(now: float) -> Callable[[Measured], float]:
    return lambda measured: measured.mean_throttle_ms(now)


def _family(name: str, help_text: str, measured: list[Measured], value: Callable[[Measured], float]) -> Family:
    return Family(
        name=f"kafka_server_quota_{name}",
        help=help_text,
        labels=("resource", "user", "clientId"),
        samples=[(_labels(each), value(each)) for each in measured],
    )


def _labels(measured: Measured) -> tuple[str, str, str]:
    return _RESOURCES[QuotaKey(measured.key)], quote(measured.user or "", safe=""), measured.client_id or ""
