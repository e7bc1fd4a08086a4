"""Python's garbage collector, where many objects are made at once."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector, which would otherwise scan thousands of new objects again and again.

    Only for objects that form no cycles, such as messages and JSON documents, and that are freed within.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
