"""A cache of lookups with a time to live; concurrent callers share one lookup."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import msgspec

from core_broker.service.clock import Clock

K = TypeVar("K")
V = TypeVar("V")


class Answer(msgspec.Struct, Generic[V], frozen=True):
    """The result of a lookup; None if it was not found."""

    value: V | None


class Lifetimes(msgspec.Struct, frozen=True, kw_only=True):
    """Size of the cache, and the time to live of its entries."""

    size_max: int
    found_s: float
    missing_s: float


class RememberedAnswers(Generic[K, V]):
    """A bounded cache in front of a slow lookup."""

    def __init__(self, ask: Callable[[K], Awaitable[V | None]], *, lifetimes: Lifetimes, clock: Clock) -> None:
        self._ask = ask
        self._lifetimes = lifetimes
        self._clock = clock
        self._answers: dict[K, tuple[Answer[V], float]] = {}
        self._asking: dict[K, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def recall(self, key: K) -> Answer[V] | None:
        """The cached result, if there is one."""
        found = self._answers.get(key)
        if found is None or found[1] <= self._clock.monotonic():
            return None
        return found[0]

    def ask(self, key: K) -> asyncio.Task[None]:
        """Start a lookup, or join a running one; then `recall` has the result. The task may fail."""
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.get_running_loop().create_task(self._look_up(key))
            task.add_done_callback(_mark_retrieved)
        return task

    async def close(self) -> None:
        """Cancel running lookups."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look_up(self, key: K) -> None:
        try:
            value = await self._ask(key)
        finally:
            del self._asking[key]
        lifetime_s = self._lifetimes.missing_s if value is None else self._lifetimes.found_s
        self._answers.pop(key, None)  # to move it to the end: the oldest entries come first
        while len(self._answers) >= self._lifetimes.size_max:
            del self._answers[next(iter(self._answers))]
        self._answers[key] = (Answer(value), self._clock.monotonic() + lifetime_s)


def _mark_retrieved(task: asyncio.Task[None]) -> None:
    """Retrieve the exception, so that asyncio does not log it if all callers have been cancelled."""
    if not task.cancelled():
        task.exception()
