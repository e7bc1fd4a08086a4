"""The registry's counters, beside those of its HTTP requests."""

import threading
from collections import Counter
from collections.abc import Iterable

from core_broker.service.metrics import Family


class RegistryMetrics:
    """Counts registrations, refusals and deletes in this process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._registered: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._deleted: Counter[str] = Counter()

    def count_registered(self, schema_type: str) -> None:
        """Count a new version."""
        with self._lock:
            self._registered[schema_type] += 1

    def count_refused(self, code: int) -> None:
        """Count a registration that failed with this error code."""
        with self._lock:
            self._refused[str(code)] += 1

    def count_deleted(self, *, versions: int, permanent: bool) -> None:
        """Count deleted versions."""
        with self._lock:
            self._deleted["permanent" if permanent else "soft"] += versions

    def families(self) -> Iterable[Family]:
        """The counters, for `/metrics`."""
        with self._lock:
            registered, refused, deleted = dict(self._registered), dict(self._refused), dict(self._deleted)
        yield _counter("schemas_registered", "Versions registered, by the format of their schema.", "type", registered)
        yield _counter("schemas_refused", "Registrations refused, by error code.", "code", refused)
        yield _counter("versions_deleted", "Versions deleted, by kind of delete.", "kind", deleted)


class AccessMetrics:
    """Counts what access rules refuse. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._denied: Counter[str] = Counter()

    def count_denied(self, operation: str) -> None:
        """Count a request that needs an operation its caller does not have."""
        with self._lock:
            self._denied[operation] += 1

    def families(self) -> Iterable[Family]:
        """The counters, for `/metrics`."""
        with self._lock:
            denied = dict(self._denied)
        yield _counter("access_denied", "Requests refused by access rules, by operation.", "operation", denied)


def _counter(name: str, description: str, label: str, counts: dict[str, int]) -> Family:
    samples: list[tuple[tuple[str, ...], float]] = [((value,), count) for value, count in counts.items()]
    return Family(
        name=f"caudal_registry_{name}_total", help=description, kind="counter", labels=(label,), samples=samples
    )
