"""How long a test waits for work that must end."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

T = TypeVar("T")

PATIENCE_S: Final = 10.0
"""Far more than bounded work takes on a slow and busy machine, and nothing beside work that grows without bound.

What hostile input really costs is measured where it is found, and told in the notes of a change; no test asserts it.
"""


def eventually(
    ask: Callable[[], T], accept: Callable[[T], bool] = bool, *, timeout_s: float = 60.0, pause_s: float = 0.05
) -> T:
    """Ask again until the answer is accepted; fails with the last answer when time is up."""
    deadline = time.monotonic() + timeout_s
    while True:
        answer = ask()
        if accept(answer):
            return answer
        assert time.monotonic() < deadline, f"still {answer!r} after {timeout_s} s"
        time.sleep(pause_s)


async def eventually_async(
    ask: Callable[[], Awaitable[T]], accept: Callable[[T], bool] = bool, *, timeout_s: float = 60.0
) -> T:
    """`eventually` for a question that is awaited."""
    deadline = time.monotonic() + timeout_s
    while True:
        answer = await ask()
        if accept(answer):
            return answer
        assert time.monotonic() < deadline, f"still {answer!r} after {timeout_s} s"
        await asyncio.sleep(0.05)
