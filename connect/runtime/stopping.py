"""How a task learns that it shall end, and sleeps in a way that ends with it."""

import threading


class Stopped(Exception):
    """The task was told to stop while it waited: what it was about to do is left undone."""


class Stopping:
    """Set once from any thread. `cancelled`: nothing may be written or committed any more."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self.is_cancelled = False

    @property
    def is_asked(self) -> bool:
        """Whether the task shall end."""
        return self._asked.is_set()

    def ask(self) -> None:
        """End soon, in good order."""
        self._asked.set()

    def cancel(self) -> None:
        """End now: others may do this work already."""
        self.is_cancelled = True
        self._asked.set()

    def wait(self, seconds: float) -> bool:
        """Sleep; True when the task shall end."""
        return self._asked.wait(max(0.0, seconds))

    def wait_or_raise(self, seconds: float) -> None:
        """Sleep; raises Stopped when the task shall end."""
        if self.wait(seconds):
            raise Stopped
