"""Group commit: concurrent requests for durability share one fdatasync.

A request waits for a flush that began after its records were written. While one flush runs in a worker thread, all new
requests share the next one, so there is one fdatasync per round for any number of requests.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor

from core_broker.errors import BrokerError, ErrorCode

DEFAULT_TIMEOUT_SECONDS = 30.0


class GroupCommit:
    """Shares the flushes of one log among its waiters; used on the event loop."""

    __slots__ = ("_executor", "_flush", "_is_running", "_next")

    def __init__(self, flush: Callable[[], None], executor: Executor) -> None:
        self._flush = flush
        self._executor = executor
        self._is_running = False
        self._next: asyncio.Future[None] | None = None

    async def wait(self, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> None:
        """Return once everything written before this call is on disk; raises KAFKA_STORAGE_ERROR."""
        waiting = self._next
        if waiting is None:
            waiting = self._next = asyncio.get_running_loop().create_future()
            if not self._is_running:
                self._start()
        try:
            async with asyncio.timeout(timeout_seconds):
                await asyncio.shield(waiting)
        except TimeoutError as error:
            message = f"the disk did not confirm a flush within {timeout_seconds} s"
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error

    def _start(self) -> None:
        waiting, self._next = self._next, None
        assert waiting is not None
        self._is_running = True
        running = asyncio.get_running_loop().run_in_executor(self._executor, self._flush)
        running.add_done_callback(lambda done: self._on_flushed(done, waiting))

    def _on_flushed(self, done: asyncio.Future[None], waiting: asyncio.Future[None]) -> None:
        self._is_running = False
        error = None if done.cancelled() else done.exception()
        if waiting.cancelled():
            pass
        elif error is None and not done.cancelled():
            waiting.set_result(None)
        else:
            waiting.set_exception(BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"the flush failed: {error}"))
            waiting.exception()  # marks it as retrieved: all waiters may have been cancelled
        if self._next is not None:
            self._start()
