"""Operations of one connection: in a session of its own on the shared catalog, cancelled when the connection ends."""

import secrets
import threading
from typing import TYPE_CHECKING

from streams.spark.engine.job import EnginePlace
from streams.spark.engine.messages import JSON
from streams.spark.engine.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streams.settings import SparkSettings


class ConnectionCalls:
    """What one client has asked for: settings and views that it makes in SQL are its own."""

    def __init__(self, session: "SparkSession", settings: "SparkSettings", registry: Registry) -> None:
        self._shared = session
        self._settings = settings
        self._registry = registry
        self._group = f"connection-{secrets.token_hex(8)}"
        self._lock = threading.Lock()
        self._place: EnginePlace | None = None
        self._under_way = 0
        self._is_over = False

    def carry_out(self, operation: str, arguments: dict[str, JSON]) -> JSON:
        """Give the answer of an operation."""
        work = self._registry.operation(operation)
        place = self._opened()
        # Interrupts threads as well: a task in Python would go on reading otherwise.
        place.session.sparkContext.setJobGroup(self._group, operation, interruptOnCancel=True)
        try:
            return work(place, arguments)
        finally:
            with self._lock:
                self._under_way -= 1

    def cancel(self) -> None:
        """End the Spark jobs of calls that nobody waits for any more."""
        with self._lock:
            self._is_over = True
            is_busy = self._under_way > 0
        if is_busy:
            context = self._shared.sparkContext._jsc.sc()  # noqa: SLF001 - Python's own cannot cancel what is yet to come
            context.cancelJobGroupAndFutureJobs(self._group)

    def _opened(self) -> EnginePlace:
        with self._lock:
            if self._is_over:
                raise ConnectionError("the client is gone")
            if self._place is None:
                self._place = EnginePlace(self._shared.newSession(), self._settings)
            self._under_way += 1
            return self._place
