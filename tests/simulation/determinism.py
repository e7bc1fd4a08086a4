"""Makes a process repeatable: all randomness comes from the seed, and nothing runs in threads."""

import os
import random
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

from typing_extensions import override

from core_broker.handlers import fetch
from core_broker.log import directory_moves, store, upkeep

P = ParamSpec("P")
T = TypeVar("T")


class _SameThread(Executor):
    """Runs everything at once, in the calling thread."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    @override
    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - belongs to the caller
            future.set_exception(error)
        return future


def make_repeatable(seed: int) -> None:
    """Take all randomness of this process from the seed; for a process that runs nothing else."""
    source = random.Random(seed)
    random.seed(seed)

    class Seeded(random.Random):
        def __init__(self, value: Any = None) -> None:
            super().__init__(source.getrandbits(64) if value is None else value)

    replace(os, "urandom", source.randbytes)
    replace(random, "_urandom", source.randbytes)  # what `secrets` uses
    replace(random, "Random", Seeded)  # `random.Random()` is seeded by the system
    for module in (directory_moves, store, upkeep):
        replace(module, "ThreadPoolExecutor", _SameThread)
    # Waiting fetches are kept in sets, whose order must not depend on where they are in memory. Here every request has
    # another correlation id.
    replace(fetch._Fetch, "__hash__", _correlation_id)


def _correlation_id(waiting: fetch._Fetch) -> int:
    return waiting._context.correlation_id


def replace(owner: object, name: str, replacement: object) -> None:
    """Replace a function, method or class of the product, for the rest of this process."""
    setattr(owner, name, replacement)
