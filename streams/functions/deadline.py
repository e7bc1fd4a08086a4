"""An end for what users' functions do."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from streams.errors import StreamsError


class FunctionTooSlow(StreamsError):
    """A user's function took longer than it may."""


class _TimeIsOver(BaseException):
    """Raised in the middle of a user's function, which must not catch it as an error of its own."""


@contextmanager
def deadline(seconds: float, what: str) -> Iterator[None]:
    """Interrupt what takes longer; only in the main thread, which is where Spark's workers call functions."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise _TimeIsOver

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except _TimeIsOver:
        raise FunctionTooSlow(f"the {what} took longer than {seconds:g} seconds") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
