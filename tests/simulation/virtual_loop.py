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
from typing import Any, TypeVar, TypeVarTuple, cast

from typing_extensions import override

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Life:
    """One run of a process, from its start to its end."""

    def __init__(self, name: str, number: int = 0) -> None:
        self.name = name
        self.number = number
        """The node's number, or 0."""
        self.is_dead = False
        self.is_paused = False
        self.failing_writes = 0
        """How many of its next writes to logs fail."""
        self.has_failed_disk = False
        """Whether one of them has."""
        self.disk_seconds = 0.0005
        """How long work in a thread, which is work with the disk, takes on average."""
        self.held: list[_Callback] = []
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


class _Callback(asyncio.TimerHandle):
    """A callback and when it is due; as asyncio's, without what only its debug mode and threads need."""

    def __init__(
        self, when: float, callback: Callable[..., object], arguments: tuple[Any, ...], context: Context | None
    ) -> None:
        self._when = when
        self._callback = callback
        self._args = arguments
        self._context = copy_context() if context is None else context
        self._cancelled = False

    @override
    def cancel(self) -> None:
        self._cancelled = True
        self._args = ()  # what it would have used need not stay

    @override
    def __repr__(self) -> str:
        return f"<callback {self._callback!r} at {self._when}>"


class Stuck(Exception):
    """Nothing is left that could ever happen."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs callbacks in an order that depends on nothing but the seed."""

    _ready: deque[_Callback]
    _stopping: bool

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.rng = rng
        self.steps = 0
        self._now = 1000.0
        self._timers: list[tuple[float, int, _Callback]] = []
        self._numbers = count()
        self.set_task_factory(lambda loop, coroutine, **options: _Task(coroutine, loop=loop, **options))

    @override
    def time(self) -> float:
        return self._now

    @override
    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = _Callback(self._now, callback, args, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # there are no threads

    @override
    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = _Callback(when, callback, args, context)
        heapq.heappush(self._timers, (when, next(self._numbers), handle))
        return handle

    @override
    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    @override
    def _run_once(self) -> None:  # type: ignore[misc]  # the one place where BaseEventLoop waits for something
        ready, timers = self._ready, self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if not ready:
            if not timers:
                raise Stuck
            self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            ready.append(heapq.heappop(timers)[2])
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            life = handle._context.get(LIFE)
            if life is not None and (life.is_dead or life.is_paused):
                life.held.append(handle)
                continue
            # Nothing takes no time at all: so what repeats itself without waiting does not stop the clock.
            self._now += 1e-6
            self.steps += 1
            try:
                handle._context.run(handle._callback, *handle._args)
            except Exception as error:  # noqa: BLE001 - as BaseEventLoop does
                self.call_exception_handler({"message": f"{handle!r} failed", "exception": error})
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
