"""How far the copy of a table is: reported by the thread that follows its topic; other threads wait for it."""

import threading
from collections.abc import Callable, Mapping

from streams.materialized.errors import CopyUnavailable
from streams.materialized.store import Store


class Progress:
    """The file of a copy and what it holds."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._changed = threading.Condition()
        self._store: Store | None = None
        self._positions: dict[int, int] = {}
        self._is_ready = False
        """Whether it has everything that was in the topic when following began."""
        self._is_complete = False
        """Whether it had everything at some time."""
        self._is_damaged = False
        self._is_stopped = False
        self.lag = -1
        """How many records are not in the copy yet; -1 while that is unknown."""
        self.problem: str | None = None
        """Why the topic cannot be followed at the moment."""
        self.skipped = 0
        """How many records were skipped since the start."""

    # --- for all threads ---

    def readable(self, timeout_seconds: float) -> Store:
        """The file, as soon as it has everything that was in the topic when following began; CopyUnavailable.

        While the topic cannot be read, or only slowly, a copy that was complete once is good enough.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped or self._is_readable, timeout_seconds)
            if self._store is not None and (self._is_ready or self._is_complete) and not self._is_stopped:
                return self._store
            reason = self.problem or "records of its topic have still to be read"
            if self._is_stopped:
                reason = "the table has been dropped, or the server is stopping"
        raise CopyUnavailable(f"The copy of {self._table} cannot be read yet: {reason}; try again later")

    def wait_until(self, offsets: Mapping[int, int], timeout_seconds: float) -> bool:
        """Wait until everything before these offsets is in the copy; False if it is not after this time."""

        def is_reached() -> bool:
            return all(self._positions.get(partition, 0) >= offset for partition, offset in offsets.items())

        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped or is_reached(), timeout_seconds)
            return is_reached()

    def pause(self, seconds: float) -> None:
        """Wait, unless it ends meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped, seconds)

    def report_damage(self, store: Store) -> None:
        """The file of the copy is damaged: it is made anew."""
        with self._changed:
            if store is self._store:
                self._is_damaged = True
                self._is_ready = self._is_complete = False

    def stop(self) -> None:
        """End all waiting."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    @property
    def is_stopped(self) -> bool:
        """Whether the copy is not followed any more."""
        return self._is_stopped

    @property
    def store(self) -> Store | None:
        """The file as it is; None while there is none."""
        return self._store

    @property
    def is_complete(self) -> bool:
        """Whether the copy had everything at some time."""
        return self._is_complete

    @property
    def is_damaged(self) -> bool:
        """Whether a reader has found the file damaged."""
        return self._is_damaged

    @property
    def _is_readable(self) -> bool:
        return self._is_ready or (self._is_complete and self.problem is not None)

    # --- for the thread that follows the topic ---

    def opened(self, store: Store, *, is_complete: bool) -> None:
        """There is a file, which was complete once or not."""

        def change() -> None:
            self._store, self._positions = store, dict(store.positions)
            self._is_ready, self._is_complete, self._is_damaged = False, is_complete, False

        self._change(change)

    def restarted(self, positions: Mapping[int, int]) -> None:
        """The topic is read from these positions on."""

        def change() -> None:
            self._positions, self._is_ready = dict(positions), False

        self._change(change)

    def advanced(self, positions: Mapping[int, int], *, lag: int, is_ready: bool) -> None:
        """The copy has everything before these positions."""

        def change() -> None:
            self._positions, self.lag, self._is_ready = dict(positions), lag, is_ready
            if is_ready:
                self._is_complete, self.problem = True, None

        self._change(change)

    def failed(self, problem: str, *, is_complete: bool) -> None:
        """The topic cannot be read; `is_complete` false if the copy is worth nothing without it."""

        def change() -> None:
            self.problem, self._is_ready = problem, False
            self._is_complete = self._is_complete and is_complete

        self._change(change)

    def closed(self) -> None:
        """There is no file."""

        def change() -> None:
            self._store, self._is_ready, self._is_complete = None, False, False

        self._change(change)

    def _change(self, change: Callable[[], None]) -> None:
        with self._changed:
            change()
            self._changed.notify_all()
