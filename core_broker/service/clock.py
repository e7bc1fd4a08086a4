"""Clocks: the only module that reads the machine's time.

Everything that depends on time takes a `Clock`, so that a test can move it by hand.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """Wall-clock and monotonic time."""

    def now_ms(self) -> int:
        """Milliseconds since 1970 by the wall clock, which may jump: for timestamps."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary start, which never go back: for time-outs."""
        ...


class SystemClock:
    """The machine's clocks."""

    __slots__ = ()

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds since the machine started."""
        return time.monotonic()


class ManualClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = 0

    def now_ms(self) -> int:
        """Milliseconds as last set."""
        return self._now_ms

    def monotonic(self) -> float:
        """Seconds by which this clock was advanced."""
        return self._monotonic_ms / 1000

    def advance(self, milliseconds: int) -> None:
        """Move both clocks forward."""
        self._now_ms += milliseconds
        self._monotonic_ms += milliseconds

    def jump(self, milliseconds: int) -> None:
        """Move the wall clock alone, as an operator or NTP would; may be negative."""
        self._now_ms += milliseconds
