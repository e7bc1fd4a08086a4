"""An event loop with virtual time: when nothing is ready it jumps to the next timer, so hours take seconds.

Every callback belongs to the life of a node, or to none (`LIFE`, a context variable that tasks and timers inherit).
A node that has crashed runs no callback any more, not even a `finally`; those of a paused node wait until it goes on.
"""

import asyncio
import heapq
import random
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from itertools import count
from typing import Any, TypeVar, cast

from typing_extensions import override

T = TypeVar("T")


class Life:
    """One run of a process, from its start to its end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.is_paused = False
        self.disk_seconds = 0.0005
        """How long work in a thread, which is work with the disk, takes on average."""
        self.held: list[asyncio.Handle] = []
        """Callbacks that wait for the end of the pause; after a crash, those that never ran."""
        self.context = copy_context()
        self.context.run(LIFE.set, self)


LIFE: ContextVar[Life | None] = ContextVar("LIFE", default=None)


class _Task(asyncio.Task[Any]):
    """A task whose place in a set does not depend on where it is in memory."""

    _numbers = count()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._number = next(self._numbers)
        super().__init__(*arguments, **options)

    @override
    def __hash__(self) -> int:
        return self._number

    @override
    def __eq__(self, other: object) -> bool:
        return self is other


class Stuck(Exception):
    """Nothing is left that could ever happen."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs callbacks in an order that depends on nothing but the seed."""

    _ready: deque[Any]
    _scheduled: list[Any]
    _stopping: bool

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.rng = rng
        self.steps = 0
        self._now = 1000.0
        self.set_task_factory(lambda loop, coroutine, **options: _Task(coroutine, loop=loop, **options))

    @override
    def time(self) -> float:
        return self._now

    @override
    def _run_once(self) -> None:  # type: ignore[misc]  # the one place where BaseEventLoop waits for something
        ready, scheduled = self._ready, self._scheduled
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
        if not ready:
            if not scheduled:
                raise Stuck
            self._now = max(self._now, scheduled[0]._when)
        while scheduled and scheduled[0]._when <= self._now:
            timer = heapq.heappop(scheduled)
            timer._scheduled = False
            if not timer._cancelled:
                ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            life = cast("Life | None", handle._context.get(LIFE))
            if life is not None and (life.is_dead or life.is_paused):
                life.held.append(handle)
                continue
            # Nothing takes no time at all: so what repeats itself without waiting does not stop the clock.
            self._now += 1e-6
            self.steps += 1
            handle._run()
            if self._stopping:
                return

    def resume(self, life: Life) -> None:
        """End the pause of a node: what it missed happens now, in the order in which it arrived."""
        if life.is_paused:
            life.is_paused = False
            if not life.is_dead:
                self._ready.extend(life.held)
                life.held = []

    @override
    def run_in_executor(  # type: ignore[override]  # there is no thread: the work is done in one go, but later
        self, executor: object, function: Callable[..., T], *arguments: Any
    ) -> "asyncio.Future[T]":
        future: asyncio.Future[T] = self.create_future()
        life = LIFE.get()
        seconds = self.rng.expovariate(1 / (0.0005 if life is None else life.disk_seconds))
        share = self.rng.random()

        def work() -> None:
            if future.cancelled():
                return
            try:
                finish = self._setter(future, function(*arguments), None)
            except Exception as error:  # noqa: BLE001 - belongs to the caller
                finish = self._setter(future, None, error)
            self.call_later(seconds * (1 - share), finish)

        self.call_later(seconds * share, work)
        return future

    def _setter(self, future: "asyncio.Future[T]", result: T | None, error: Exception | None) -> Callable[[], None]:
        def finish() -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(cast("T", result))

        return finish

    @override
    def _write_to_self(self) -> None:  # type: ignore[misc]  # no other thread has to wake this loop
        pass

    def call_in(self, context: Context, seconds: float, callback: Callable[..., object], *arguments: Any) -> None:
        """Run a callback of some node after a while."""
        self.call_later(seconds, callback, *arguments, context=context)
