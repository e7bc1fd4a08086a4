"""What the proxy counts beside its requests."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable

from core_broker.service.metrics import Family


class ProxyMetrics:
    """Counts of records in this process, by format and outcome; safe to add to from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._produced: Counter[tuple[str, str]] = Counter()
        self._consumed: Counter[tuple[str, str]] = Counter()
        self._gauges: list[tuple[str, str, Callable[[], int]]] = []

    def watch(self, name: str, meaning: str, ask: Callable[[], int]) -> None:
        """Tell a number that goes up and down, `caudal_rest_proxy_{name}`, by asking for it."""
        self._gauges.append((name, meaning, ask))

    def produced(self, format: str, *, delivered: int, failed: int) -> None:  # noqa: A002 - the API's word
        """Records of a request met their fate."""
        with self._lock:
            self._produced[format, "delivered"] += delivered
            self._produced[format, "failed"] += failed

    def consumed(self, format: str, how: str, count: int) -> None:  # noqa: A002 - the API's word
        """Records were answered; `how` is instance, page or stream."""
        with self._lock:
            self._consumed[format, how] += count

    def families(self) -> Iterable[Family]:
        """The counts, for `/metrics`."""
        for name, meaning, ask in self._gauges:
            yield Family(name=f"caudal_rest_proxy_{name}", help=meaning, samples=[((), ask())])
        with self._lock:
            produced, consumed = dict(self._produced), dict(self._consumed)
        yield Family(
            name="caudal_rest_proxy_records_produced_total",
            help="Records that were sent, by format and outcome.",
            kind="counter",
            labels=("format", "outcome"),
            samples=list(produced.items()),
        )
        yield Family(
            name="caudal_rest_proxy_records_consumed_total",
            help="Records that were answered, by format and way of reading.",
            kind="counter",
            labels=("format", "how"),
            samples=list(consumed.items()),
        )
