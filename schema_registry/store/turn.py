"""A lock that is handed on in the order of asking."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """One holder at a time, first come first served; a wait is bounded."""

    def __init__(self) -> None:
        self._state = threading.Lock()
        self._is_held = False
        self._waiting: deque[threading.Event] = deque()

    @contextmanager
    def take(self, *, timeout_seconds: float) -> Iterator[None]:
        """Hold the lock for the block; TimeoutError when the turn does not come in time."""
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
            if not turn.is_set():
                self._waiting.remove(turn)
                raise TimeoutError("no turn to write came in time")

    def _release(self) -> None:
        with self._state:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._is_held = False
