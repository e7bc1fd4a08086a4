"""Rows on their way to a client, taken batch by batch by a thread that may wait for them."""

import threading
from abc import ABC, abstractmethod
from typing import Any, Literal

import msgspec

from streams.model.sources import Column

Kind = Literal["push", "pull", "print"]


class Batch(msgspec.Struct, frozen=True):
    """Some rows; none at all when nothing has come for a moment."""

    rows: list[list[Any]]
    """As JSON; of a printed topic, each row is one line of text."""
    tombstones: list[bool] = []
    """For each row whether it deletes; empty if none does."""


class RowStream(ABC):
    """The rows of one query. For one thread at a time, except `close`, which any thread may call, and again."""

    def __init__(self, query_id: str, kind: Kind, columns: tuple[Column, ...] = (), *, key_columns: int = 0) -> None:
        self.query_id = query_id
        self.kind = kind
        self.columns = columns
        self.key_columns = key_columns
        """How many of the columns, from the first on, are keys."""
        self.has_reached_limit = False
        """Whether it has ended because of LIMIT."""
        self._is_closed = threading.Event()

    def is_closed(self) -> bool:
        """Whether it was closed before its end."""
        return self._is_closed.is_set()

    @abstractmethod
    def take(self) -> Batch | None:
        """The next rows, after waiting for at most about a second; None at the end. Raises ServiceError."""

    def close(self) -> None:
        """End it; what it has begun elsewhere is stopped, and left-overs are removed."""
        if not self._is_closed.is_set():
            self._is_closed.set()
            self.release()

    @abstractmethod
    def release(self) -> None:
        """Give up what belongs to it; called once. May wait, and must not raise."""
