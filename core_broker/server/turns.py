"""Fairness between connections: one large piece of work per round of the event loop.

A round of asyncio's loop runs whatever was ready when it began, in the order in which the kernel lists it, and a
connection with bulk data is nearly always ready, and listed first. If such work were done immediately, a small request
would wait for the current piece, then for one piece of every bulk connection. With turns it waits for one at most:
whatever the next round finds ready goes before the next large piece.
"""

import asyncio
from collections import deque
from collections.abc import Callable


class Turns:
    """A queue of large pieces of work, at most one per connection; each round of the loop runs one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: deque[Callable[[], None]] = deque()

    def add(self, work: Callable[[], None]) -> None:
        """Run `work` when its turn comes, never before the next round of the loop."""
        self._queue.append(work)
        if len(self._queue) == 1:
            self._schedule()

    def _run_one(self) -> None:
        # The work stays in the queue while it runs, so that `add` does not schedule a second round.
        try:
            self._queue[0]()
        finally:
            self._queue.popleft()
            if self._queue:
                self._schedule()

    def _schedule(self) -> None:
        # A round runs the callbacks of `call_soon`, then those of ready file descriptors, then the timers that are due.
        self._loop.call_later(0, self._run_one)
