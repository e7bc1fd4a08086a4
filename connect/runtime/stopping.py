"""Asks a task to stop, and wakes it up if it sleeps."""

import threading
from collections.abc import Callable
from typing import Final

CANCEL_GRACE_S: Final = 3.0
"""How long a cancelled task may take to return from a call; after that it hangs in the connector's code."""


class Stopped(Exception):
    """The task was asked to stop while it waited."""


class Stopping:
    """Set once from any thread."""

    def __init__(self, is_owner: Callable[[], bool] = lambda: True) -> None:
        """`is_owner`: whether this process still owns the task; it may have lost it while it was suspended."""
        self._asked = threading.Event()
        self._is_cancelled = False
        self._is_owner = is_owner

    @property
    def is_cancelled(self) -> bool:
        """Whether the task must not write or commit anything more."""
        if not self._is_cancelled and not self._is_owner():
            self.cancel()
        return self._is_cancelled

    def check(self) -> None:
        """Raise Stopped when the task must not write anything more; called before each batch."""
        if self.is_cancelled:
            raise Stopped

    @property
    def is_asked(self) -> bool:
        """Whether the task was asked to stop."""
        return self._asked.is_set()

    def ask(self) -> None:
        """Ask for an orderly stop."""
        self._asked.set()

    def cancel(self) -> None:
        """Stop at once: the task may run elsewhere already."""
        self._is_cancelled = True
        self._asked.set()

    def wait(self, seconds: float) -> bool:
        """Sleep; True when the task was asked to stop."""
        return self._asked.wait(max(0.0, seconds))

    def wait_or_raise(self, seconds: float) -> None:
        """Sleep; raises Stopped when the task was asked to stop."""
        if self.wait(seconds):
            raise Stopped
