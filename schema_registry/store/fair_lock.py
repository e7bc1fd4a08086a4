"""A lock that threads get in the order in which they asked for it."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class FairLock:
    """One holder at a time, first come first served; every wait has a time-out."""

    def __init__(self) -> None:
        self._state = threading.Lock()
        self._is_held = False
        self._waiting: deque[threading.Event] = deque()

    @contextmanager
    def take(self, *, timeout_seconds: float) -> Iterator[None]:
        """Hold the lock for the duration of the block; raises TimeoutError when it is not free in time."""
        self._acquire(timeout_seconds)
        try:
            yield
        finally:
            self._release()

    def _acquire(self, timeout_seconds: float) -> None:
        with self._state:
            if not self._is_held:
                self._is_held = True
                return
            turn = threading.Event()
            self._waiting.append(turn)
        if turn.wait(timeout_seconds):
            return
        with self._state:
            # The lock may have been handed over between the time-out and here: then we hold it.
            if not turn.is_set():
                self._waiting.remove(turn)
                raise TimeoutError("timed out waiting for the write lock")

    def _release(self) -> None:
        with self._state:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._is_held = False
