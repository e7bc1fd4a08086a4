"""Background tasks of a coordinator, all owned by one `run()`; a failure in one does not affect the others."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

log = logging.getLogger(__name__)

Job: TypeAlias = Callable[[], Awaitable[None]]


class Background:
    """Starts jobs under the `run()` of their owner; those added before it runs wait for it."""

    def __init__(self) -> None:
        self._tasks: asyncio.TaskGroup | None = None
        self._waiting: list[Job] = []

    def start(self, job: Job) -> None:
        """Run `job` concurrently, after the jobs that were started before it."""
        if self._tasks is None:
            self._waiting.append(job)
        else:
            self._tasks.create_task(_run_safely(job))

    async def run(self) -> None:
        """Own the tasks until cancelled; then they are cancelled, too."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                for job in self._waiting:
                    tasks.create_task(_run_safely(job))
                self._waiting.clear()
                await asyncio.get_running_loop().create_future()
            finally:
                self._tasks = None


async def _run_safely(job: Job) -> None:
    """A failure must not cancel the work of all other groups."""
    try:
        await job()
    except Exception:
        log.exception("background work of a coordinator failed")
