"""The queries of clients that are open on this server: SELECTs and PRINTs, until they end or are closed."""

import threading
from typing import Protocol

import msgspec

from streams.server.errors import TooManyQueries


class Closable(Protocol):
    """What reads for a client."""

    def close(self) -> None:
        """End it, from any thread, any number of times."""
        ...


class OpenQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query that runs for a client."""

    id: str
    statement: str
    kind: str
    """push, pull or print."""
    rows: Closable


class OpenQueries:
    """All of them, by id. Threads may share it."""

    def __init__(self, *, push_max: int) -> None:
        self._push_max = push_max
        self._lock = threading.Lock()
        self._open: dict[str, OpenQuery] = {}

    def __len__(self) -> int:
        return len(self._open)

    def all(self) -> list[OpenQuery]:
        """Those that are open now."""
        with self._lock:
            return list(self._open.values())

    def count(self, *kinds: str) -> int:
        """How many queries of these kinds are open."""
        return sum(query.kind in kinds for query in self.all())

    def check_room(self, kind: str) -> None:
        """Raise TooManyQueries if there is no room for another push query or PRINT."""
        if kind != "pull" and self.count("push", "print") >= self._push_max:
            raise TooManyQueries(
                f"Not executing statement(s) as it would cause the number of push queries to exceed the limit of "
                f"{self._push_max} (ksql.max.push.queries): close one of the others first"
            )

    def add(self, query: OpenQuery) -> None:
        """Remember a query that has begun. Raises TooManyQueries."""
        self.check_room(query.kind)
        with self._lock:
            self._open[query.id] = query

    def remove(self, id: str) -> None:  # noqa: A002 - the word of the API
        """Forget a query that has ended."""
        with self._lock:
            self._open.pop(id, None)

    def close(self, id: str) -> bool:  # noqa: A002 - the word of the API
        """End a query; False if there is none of this id."""
        with self._lock:
            found = self._open.pop(id, None)
        if found is not None:
            found.rows.close()
        return found is not None

    def close_all(self) -> None:
        """End all of them."""
        for query in self.all():
            self.close(query.id)
