"""Fairness between connections: one large piece of work per round of the event loop.

A round of asyncio's loop runs whatever was ready when it began, in the order in which the kernel lists it, and a
connection with bulk data is nearly always ready, and listed first. Were such work done on the spot, a small request
would wait for the piece under way, then for one piece of every bulk connection. In turns it waits for one at most:
whatever the next round finds ready goes before the next large piece.
"""

import asyncio
from collections import deque
from collections.abc import Callable


class Turns:
    """A queue of large pieces of work, at most one for each connection; each round of the loop does one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: deque[Callable[[], None]] = deque()

    def add(self, work: Callable[[], None]) -> None:
        """Have `work` done when its turn comes, never before the next round of the loop."""
        self._queue.append(work)
        if len(self._queue) == 1:
            self._schedule()

    def _do_one(self) -> None:
        # It stays in the queue while it is done, so that `add` does not schedule a second round beside ours.
        try:
            self._queue[0]()
        finally:
            self._queue.popleft()
            if self._queue:
                self._schedule()

    def _schedule(self) -> None:
        # A round runs what `call_soon` was given, then what the kernel says is ready, then the timers that are due.
        self._loop.call_later(0, self._do_one)
