"""What the server that runs the queries does beside: it clears up after what has gone, and ends replacements."""

import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from core_broker.client.errors import ClientError
from core_broker.service.clock import Clock, SystemClock
from schema_registry.client.errors import ClientError as RegistryError
from streams.catalog.state import Change, Cleanup, Replacement, State, put, put_source
from streams.errors import StreamsError
from streams.formats.registry import Schemas
from streams.server.engine import EngineDoor
from streams.server.errors import ServiceError
from streams.server.preparing import cleanup_of
from streams.server.topics import Topics
from streams.spark.queries.spec import query_folder

log = logging.getLogger(__name__)

Write = Callable[[Callable[[], Sequence[Change]]], None]
"""Writes the changes that a function returns, which is called once the catalog is known to be complete."""
_ATTEMPTS: Final = 10
_RETRY_SECONDS: Final = 3.0
_COMPARE_SECONDS: Final = 1.0


class Chores:
    """For the thread of the runner."""

    def __init__(
        self,
        *,
        state: State,
        engine: EngineDoor,
        topics: Topics,
        schemas: Schemas,
        folder: str,
        write: Write,
        clock: Clock | None = None,
    ) -> None:
        self._state = state
        self._engine = engine
        self._topics = topics
        self._schemas = schemas
        self._folder = folder
        self._write = write
        self._clock = clock or SystemClock()
        self._attempts: dict[str, int] = {}
        self._again_at: dict[str, float] = {}
        self._ends: dict[str, Mapping[str, Mapping[int, tuple[int, int]]]] = {}
        """Of the inputs of queries that are catching up: where their topics ended when last asked."""

    def do(self) -> None:
        """Everything that is due."""
        for cleanup in self._state.cleanups():
            self._try(f"cleanup {cleanup.name}", partial(self._clean, cleanup))
        for replacement in self._state.replacements():
            if self._is_due(replacement.name):
                self._again_at[replacement.name] = self._clock.monotonic() + _COMPARE_SECONDS
                self._try(f"replacement {replacement.name}", partial(self._replace, replacement))

    def _is_due(self, name: str) -> bool:
        return self._clock.monotonic() >= self._again_at.get(name, 0.0)

    def _try(self, what: str, do: Callable[[], None]) -> None:
        if not self._is_due(what):
            return
        try:
            do()
            self._attempts.pop(what, None)
            self._again_at.pop(what, None)
        except (StreamsError, ClientError, RegistryError, ServiceError, OSError) as error:
            self._attempts[what] = self._attempts.get(what, 0) + 1
            self._again_at[what] = self._clock.monotonic() + _RETRY_SECONDS
            log.warning("a chore is left for later", extra={"chore": what, "error": str(error)[:500]})

    # --- clearing up ---

    def _clean(self, cleanup: Cleanup) -> None:
        is_last = self._attempts.get(f"cleanup {cleanup.name}", 0) >= _ATTEMPTS
        try:
            for job in cleanup.jobs:
                self._forget(job)
            self._topics.delete(cleanup.topics)
            if self._schemas.is_configured:
                for topic in cleanup.subjects:
                    self._schemas.forget(topic)
            self._topics.delete_groups(cleanup.groups)
        except (StreamsError, ClientError, RegistryError, OSError) as error:
            if not is_last:
                raise
            # It would be tried for ever, as when the service may not delete a topic.
            log.error("something is left behind", extra={"definition": cleanup.name, "error": str(error)[:500]})
        self._write(lambda: [Change("cleanup", cleanup.name)])

    def _forget(self, job: str) -> None:
        """Remove the checkpoints of a job; the engine is not started only for that."""
        folder = query_folder(self._folder, job)
        if self._engine.is_connected or "://" in folder or folder.startswith("file:"):
            self._engine.forget(self._folder, job)
        elif Path(folder).exists():
            shutil.rmtree(folder)

    # --- replacements ---

    def _replace(self, replacement: Replacement) -> None:
        if self._state.query(replacement.new_query) is None:
            self._write(lambda: [Change("replacement", replacement.name)])
        elif self._has_caught_up(replacement):
            self._ends.pop(replacement.new_query, None)
            self._write(lambda: self._exchange(replacement))
            log.info("query replaced", extra={"old": replacement.old_query, "new": replacement.new_query})

    def _exchange(self, replacement: Replacement) -> Sequence[Change]:
        """The new query and its topic take the place of the old; the old topic stays, for a way back."""
        old = self._state.query(replacement.old_query)
        if self._state.replacement(replacement.name) != replacement:
            return ()
        gone = () if old is None else (Change("query", old.id), put(cleanup_of(old)))
        return (put_source(replacement.source), *gone, Change("replacement", replacement.name))

    def _has_caught_up(self, replacement: Replacement) -> bool:
        """Whether it has read everything that was there when this was asked the last time, about a second ago."""
        query = self._state.query(replacement.new_query)
        if query is None:
            return False
        before = self._ends.get(query.id)
        names = {one.source.topic for plan in query.plans for one in plan.inputs}
        self._ends[query.id] = self._topics.ends(names)
        if before is None:
            return False
        for plan in query.plans:
            committed = {} if plan.group is None else self._topics.committed(plan.group)
            for one in plan.inputs:
                for number, (start, end) in before.get(one.source.topic, {}).items():
                    if committed.get(one.source.topic, {}).get(number, start) < end:
                        return False
        return True
