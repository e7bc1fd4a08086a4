"""Answers that are asked for once, remembered for a while, and shared by everybody who asks meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import msgspec

from core_broker.service.clock import Clock

K = TypeVar("K")
V = TypeVar("V")


class Answer(msgspec.Struct, Generic[V], frozen=True):
    """What was answered; None: there is no such thing."""

    value: V | None


class Lifetimes(msgspec.Struct, frozen=True, kw_only=True):
    """How many answers are remembered, and for how long."""

    size_max: int
    found_s: float
    missing_s: float


class RememberedAnswers(Generic[K, V]):
    """A bounded memory in front of a question that takes time."""

    def __init__(self, ask: Callable[[K], Awaitable[V | None]], *, lifetimes: Lifetimes, clock: Clock) -> None:
        self._ask = ask
        self._lifetimes = lifetimes
        self._clock = clock
        self._answers: dict[K, tuple[Answer[V], float]] = {}
        self._asking: dict[K, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def recall(self, key: K) -> Answer[V] | None:
        """The answer, if it is remembered."""
        found = self._answers.get(key)
        if found is None or found[1] <= self._clock.monotonic():
            return None
        return found[0]

    def ask(self, key: K) -> asyncio.Task[None]:
        """Begin to ask, or join those who wait for the same answer; then `recall` has it. The task may fail."""
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.get_running_loop().create_task(self._learn(key))
            task.add_done_callback(_look_at_failure)
        return task

    async def close(self) -> None:
        """Give up what is being asked."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _learn(self, key: K) -> None:
        try:
            self._remember(key, await self._ask(key))
        finally:
            del self._asking[key]

    def _remember(self, key: K, value: V | None) -> None:
        lifetime_s = self._lifetimes.missing_s if value is None else self._lifetimes.found_s
        self._answers.pop(key, None)  # to the end: the oldest answers stand first
        while len(self._answers) >= self._lifetimes.size_max:
            del self._answers[next(iter(self._answers))]
        self._answers[key] = (Answer(value), self._clock.monotonic() + lifetime_s)


def _look_at_failure(task: asyncio.Task[None]) -> None:
    """Whoever waited was told; that nobody may be left to look must not be complained about."""
    if not task.cancelled():
        task.exception()
