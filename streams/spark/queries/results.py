"""The rows of a push query on their way to its client: a bounded queue, which a batch waits for while it is full."""

import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

import msgspec
import pyarrow as pa

from streams.errors import EngineError

_ROWS_MAX: Final = 10_000
"""Rows that wait for a client."""
_WAIT_S: Final = 1.0
_IDLE_S: Final = 600.0
"""A client that takes nothing for so long is gone."""


class Cancelled(EngineError):
    """The query was stopped while a batch waited for its client."""

    def __init__(self) -> None:
        super().__init__("Cancelled", "the query has been stopped")


class ClientGone(EngineError):
    """The client takes no rows any more."""

    def __init__(self) -> None:
        super().__init__("ClientGone", f"the client has taken no rows for {_IDLE_S:.0f} s, so the query was stopped")


class Results:
    """The queue of one query: one thread adds rows, others take them out."""

    def __init__(self, limit: int | None) -> None:
        self._left = limit
        self._rows: deque[tuple[msgspec.Raw, bool]] = deque()
        self._changed = threading.Condition()
        self._is_over = limit == 0
        self._error: str | None = None
        self._asked_at = time.monotonic()
        self._batch = -1

    @property
    def is_complete(self) -> bool:
        """Whether there will be no more rows."""
        return self._is_over

    def add_batch(self, number: int, batches: Iterable[pa.RecordBatch]) -> int:
        """Add the rows of a batch, unless they were added before; returns how many. Waits while the queue is full."""
        if number <= self._batch:
            return 0
        count = 0
        for batch in batches:
            for row, deleted in zip(batch.column("row").to_pylist(), batch.column("deleted").to_pylist(), strict=True):
                if not self._add(msgspec.Raw(row), deleted):
                    return count
                count += 1
        self._batch = number
        return count

    def end(self, error: str | None = None) -> None:
        """There will be no more rows."""
        with self._changed:
            self._is_over = True
            self._error = self._error or error
            self._changed.notify_all()

    def take(self, *, wait_ms: int, limit: int) -> dict[str, Any]:
        """Take rows out; waits for the first one."""
        deadline = time.monotonic() + wait_ms / 1000
        with self._changed:
            self._asked_at = time.monotonic()
            while not self._rows and not self._is_over and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            self._asked_at = time.monotonic()
            taken = [self._rows.popleft() for _ in range(min(limit, len(self._rows)))]
            self._changed.notify_all()
            return {
                "rows": [row for row, _ in taken],
                "tombstones": [deleted for _, deleted in taken],
                "done": self._is_over and not self._rows,
                "error": self._error if not self._rows else None,
            }

    def _add(self, row: msgspec.Raw, deleted: bool) -> bool:
        """Whether it was added: after the last one of the limit, no more are wanted."""
        with self._changed:
            while len(self._rows) >= _ROWS_MAX and not self._is_over:
                if time.monotonic() - self._asked_at > _IDLE_S:
                    raise ClientGone
                self._changed.wait(_WAIT_S)
            if self._is_over:
                if self._left == 0:
                    return False
                raise Cancelled
            self._rows.append((row, deleted))
            if self._left is not None:
                self._left -= 1
                self._is_over = self._left == 0
            self._changed.notify_all()
            return True
