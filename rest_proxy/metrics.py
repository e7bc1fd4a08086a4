"""The proxy's metrics, besides those of its HTTP requests."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable

from core_broker.service.metrics import Family


class ProxyMetrics:
    """Counts records by format and outcome; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._produced: Counter[tuple[str, str]] = Counter()
        self._consumed: Counter[tuple[str, str]] = Counter()
        self._gauges: list[tuple[str, str, Callable[[], int]]] = []

    def add_gauge(self, name: str, meaning: str, read: Callable[[], int]) -> None:
        """Export the gauge `caudal_rest_proxy_{name}`, whose value is read for each scrape."""
        self._gauges.append((name, meaning, read))

    def add_produced(self, format: str, *, delivered: int, failed: int) -> None:  # noqa: A002 - the API's word
        """Count the records of a produce request."""
        with self._lock:
            self._produced[format, "delivered"] += delivered
            self._produced[format, "failed"] += failed

    def add_consumed(self, format: str, how: str, count: int) -> None:  # noqa: A002 - the API's word
        """Count records in responses; `how` is instance, page or stream."""
        with self._lock:
            self._consumed[format, how] += count

    def families(self) -> Iterable[Family]:
        """The counts, for `/metrics`."""
        for name, meaning, read in self._gauges:
            yield Family(name=f"caudal_rest_proxy_{name}", help=meaning, samples=[((), read())])
        with self._lock:
            produced, consumed = dict(self._produced), dict(self._consumed)
        yield Family(
            name="caudal_rest_proxy_records_produced_total",
            help="Records produced, by format and outcome.",
            kind="counter",
            labels=("format", "outcome"),
            samples=list(produced.items()),
        )
        yield Family(
            name="caudal_rest_proxy_records_consumed_total",
            help="Records consumed, by format and way of reading.",
            kind="counter",
            labels=("format", "how"),
            samples=list(consumed.items()),
        )
