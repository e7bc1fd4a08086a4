"""Threads for what blocks: statements, and rows of queries, each with a limit of its own."""

from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread
from anyio import CapacityLimiter

from streams.settings import StreamsSettings

T = TypeVar("T")


class Threads:
    """Must be made inside the event loop."""

    def __init__(self, settings: StreamsSettings) -> None:
        self._statements = CapacityLimiter(settings.worker_threads)
        # A push query that waits for rows occupies a thread: as many as there may be, and those of pull queries.
        rows = settings.ksql_max_push_queries + settings.ksql_query_pull_max_concurrent_requests
        self._rows = CapacityLimiter(rows + settings.worker_threads)

    async def for_statements(self, call: Callable[[], T]) -> T:
        """Run something short on a thread."""
        return await anyio.to_thread.run_sync(call, limiter=self._statements)

    async def for_rows(self, call: Callable[[], T]) -> T:
        """Run something on a thread that waits for rows."""
        return await anyio.to_thread.run_sync(call, limiter=self._rows)
