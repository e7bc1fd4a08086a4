"""The tasks that a coordinator starts by itself: all owned by one `run()`, none of which can take the others down."""

import asyncio
import logging
from collections.abc import Coroutine

log = logging.getLogger(__name__)


class Background:
    """Starts coroutines under the `run()` of their owner; those given before it runs wait for it."""

    def __init__(self) -> None:
        self._tasks: asyncio.TaskGroup | None = None
        self._waiting: list[Coroutine[None, None, None]] = []

    def start(self, work: Coroutine[None, None, None]) -> None:
        """Run `work` beside the caller."""
        if self._tasks is None:
            self._waiting.append(work)
        else:
            self._tasks.create_task(_survive(work))

    async def run(self) -> None:
        """Own the tasks until cancelled; then they are cancelled too."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                for work in self._waiting:
                    tasks.create_task(_survive(work))
                self._waiting.clear()
                await asyncio.get_running_loop().create_future()
            finally:
                self._tasks = None

    def close(self) -> None:
        """Drop what was never run."""
        for work in self._waiting:
            work.close()
        self._waiting.clear()


async def _survive(work: Coroutine[None, None, None]) -> None:
    """One failure must not cancel the work of all other groups."""
    try:
        await work
    except Exception:
        log.exception("background work of a coordinator failed")
