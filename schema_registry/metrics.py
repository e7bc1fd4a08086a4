"""What the registry counts beside its requests."""

import threading
from collections import Counter
from collections.abc import Iterable

from core_broker.service.metrics import Family


class RegistryMetrics:
    """Counts of what happened to schemas; safe to add to from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()

    def count(self, event: str, schema_type: str, *, times: int = 1) -> None:
        """Something happened to schemas of a type: `registered`, `refused`, `deleted`."""
        with self._lock:
            self._counts[event, schema_type] += times

    def families(self) -> Iterable[Family]:
        """The counts, for `/metrics`."""
        with self._lock:
            counts = dict(self._counts)
        yield Family(
            name="caudal_registry_schemas_total",
            help="Schemas by what happened to them in this registry.",
            kind="counter",
            labels=("event", "type"),
            samples=list(counts.items()),
        )
