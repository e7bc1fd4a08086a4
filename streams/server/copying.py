"""Keeps copies of the tables that can be asked by pull queries, as the catalog says."""

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Final

from core_broker.client.errors import ClientError
from streams.errors import StreamsError
from streams.materialized.copies import Copies
from streams.model.sources import Source

log = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 5.0


class CopyKeeper:
    """Follows the catalog in a thread of its own."""

    def __init__(self, copies: Copies, sources: Callable[[], Iterable[Source]]) -> None:
        self._copies = copies
        self._sources = sources
        self._kept: dict[str, Source] = {}
        self._awake = threading.Event()
        self._stopping = threading.Event()
        self._settled = threading.Condition()
        self._wanted = 0
        self._done = 0
        self._thread = threading.Thread(target=self._work, name="copies", daemon=True)

    def start(self) -> None:
        """Remove copies of tables that are gone, and begin."""
        self._copies.keep_only([source.name for source in self._wanted_sources().values()])
        self._thread.start()
        self.wake()

    def wake(self) -> None:
        """The catalog has changed."""
        self._wanted += 1
        self._awake.set()

    def wait(self, timeout_seconds: float) -> bool:
        """Wait until everything that the catalog says now is followed."""
        wanted = self._wanted
        with self._settled:
            return self._settled.wait_for(lambda: self._done >= wanted or self._stopping.is_set(), timeout_seconds)

    def close(self) -> None:
        """Stop following."""
        self._stopping.set()
        self._awake.set()
        if self._thread.ident is not None:
            self._thread.join(10)

    def _wanted_sources(self) -> dict[str, Source]:
        return {source.name: source for source in self._sources() if source.is_materialized}

    def _work(self) -> None:
        while not self._stopping.is_set():
            self._awake.wait(_RETRY_SECONDS)
            self._awake.clear()
            goal = self._wanted
            wanted = self._wanted_sources()
            outcomes = [self._follow(name, wanted.get(name)) for name in {*self._kept, *wanted}]
            if all(outcomes):
                with self._settled:
                    self._done = goal
                    self._settled.notify_all()

    def _follow(self, name: str, source: Source | None) -> bool:
        kept = self._kept.get(name)
        if kept == source:
            return True
        try:
            if kept is not None and (source is None or kept.topic != source.topic):
                self._copies.forget(name)
                del self._kept[name]
            if source is not None:
                self._copies.follow(source)
                self._kept[name] = source
            return True
        except (StreamsError, ClientError, OSError) as error:
            log.warning("a table cannot be copied", extra={"table": name, "error": str(error)})
            return False
