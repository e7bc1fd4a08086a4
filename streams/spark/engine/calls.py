"""Operations of one connection: in a session of its own on the shared catalog, cancelled when the connection ends."""

import secrets
import threading
from typing import TYPE_CHECKING

from streams.spark.engine.job import EngineContext, Registry
from streams.spark.engine.messages import JSON

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streams.settings import SparkSettings


class ConnectionCalls:
    """The calls of one client: settings and views that it makes in SQL are its own."""

    def __init__(self, session: "SparkSession", settings: "SparkSettings", registry: Registry) -> None:
        self._shared = session
        self._settings = settings
        self._registry = registry
        self._group = f"connection-{secrets.token_hex(8)}"
        self._lock = threading.Lock()
        self._context: EngineContext | None = None
        self._running = 0
        self._is_cancelled = False

    def carry_out(self, operation: str, arguments: dict[str, JSON]) -> JSON:
        """Return the answer of an operation."""
        work = self._registry.operation(operation)
        with self._lock:
            if self._is_cancelled:
                raise ConnectionError("the client has disconnected")
            if self._context is None:
                self._context = EngineContext(self._shared.newSession(), self._settings)
            context = self._context
            self._running += 1
        # Interrupts threads as well: a task in Python would go on reading otherwise.
        context.session.sparkContext.setJobGroup(self._group, operation, interruptOnCancel=True)
        try:
            return work(context, arguments)
        finally:
            with self._lock:
                self._running -= 1

    def cancel(self) -> None:
        """Cancel the Spark jobs of a client that has disconnected."""
        with self._lock:
            self._is_cancelled = True
            is_busy = self._running > 0
        if is_busy:
            context = self._shared.sparkContext._jsc.sc()  # noqa: SLF001 - Python's API cannot cancel future jobs
            context.cancelJobGroupAndFutureJobs(self._group)
