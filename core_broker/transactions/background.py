"""Work that continues after a request was answered, owned by the coordinator's `run`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

Job = Callable[[], Coroutine[None, None, None]]


class BackgroundJobs:
    """Jobs that end with their owner; those started before it runs wait until it does."""

    def __init__(self) -> None:
        self._group: asyncio.TaskGroup | None = None
        self._waiting: list[Job] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, job: Job) -> None:
        """Run a job now, or as soon as `running` is entered."""
        if self._group is None:
            self._waiting.append(job)
            return
        task = self._group.create_task(job())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run jobs for as long as the block lasts; unfinished ones are cancelled at its end."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            waiting, self._waiting = self._waiting, []
            for job in waiting:
                self.start(job)
            try:
                yield
            finally:
                self._group = None
                for task in self._tasks:
                    task.cancel()

    async def wait_until_done(self, timeout_seconds: float) -> bool:
        """Wait until no job is left; False on time-out, or if jobs wait because nothing runs them."""
        try:
            async with asyncio.timeout(timeout_seconds):
                while self._tasks:
                    await asyncio.wait(self._tasks)
        except TimeoutError:
            return False
        return not self._waiting
