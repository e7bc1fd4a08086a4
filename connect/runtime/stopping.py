"""How a task learns that it shall end, and sleeps in a way that ends with it."""

import threading
from collections.abc import Callable
from typing import Final

CANCEL_GRACE_S: Final = 3.0
"""How long a cancelled task may take to return from a call; after that it hangs in its connector's code."""


class Stopped(Exception):
    """The task was told to stop while it waited: what it was about to do is left undone."""


class Stopping:
    """Set once from any thread."""

    def __init__(self, is_owner: Callable[[], bool] = lambda: True) -> None:
        """`is_owner`: whether the task is still this process's; one that stood still for a while may have lost it."""
        self._asked = threading.Event()
        self._is_cancelled = False
        self._is_owner = is_owner

    @property
    def is_cancelled(self) -> bool:
        """Whether nothing may be written or committed any more."""
        if not self._is_cancelled and not self._is_owner():
            self.cancel()
        return self._is_cancelled

    def check(self) -> None:
        """Raise Stopped when nothing may be written any more: asked before each batch."""
        if self.is_cancelled:
            raise Stopped

    @property
    def is_asked(self) -> bool:
        """Whether the task shall end."""
        return self._asked.is_set()

    def ask(self) -> None:
        """End soon, in good order."""
        self._asked.set()

    def cancel(self) -> None:
        """End now: others may do this work already."""
        self._is_cancelled = True
        self._asked.set()

    def wait(self, seconds: float) -> bool:
        """Sleep; True when the task shall end."""
        return self._asked.wait(max(0.0, seconds))

    def wait_or_raise(self, seconds: float) -> None:
        """Sleep; raises Stopped when the task shall end."""
        if self.wait(seconds):
            raise Stopped
