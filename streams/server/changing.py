"""Carries out statements that change the catalog: on this server, or refused because another one was faster."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from core_broker.client.errors import ClientError
from streams.catalog.errors import TakenOver
from streams.catalog.log import DefinitionLog
from streams.catalog.records import CommandNote
from streams.catalog.state import Change, QueryDefinition, State
from streams.formats.registry import Schemas
from streams.model.plan import Query
from streams.server.entities import JSON, command, entity
from streams.server.errors import NotReady
from streams.server.preparing import Prepared
from streams.server.topics import Topics

log = logging.getLogger(__name__)

_ATTEMPTS: Final = 10
_TURN_SECONDS: Final = 120.0
_CLEANUP_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.05


class Changer:
    """One change at a time, whichever thread it comes from."""

    def __init__(self, definitions: DefinitionLog, state: State, topics: Topics, schemas: Schemas) -> None:
        self._definitions = definitions
        self._state = state
        self._topics = topics
        self._schemas = schemas
        self._turn = threading.Lock()

    def carry_out(self, prepare: Callable[[], Prepared], text: str, warnings: Sequence[str] = ()) -> JSON:
        """Prepare a statement against the complete catalog, make what it needs, write what it changes.

        `prepare` may be called several times.
        """
        sequence = -1
        with self._taken_turn():
            for _ in range(_ATTEMPTS):
                self._definitions.take_over()
                prepared = prepare()
                if not prepared.changes:
                    break
                self._make(prepared)
                note = CommandNote(id=prepared.command_id, message=prepared.message, query_id=prepared.query_id)
                try:
                    sequence = self._definitions.append(prepared.changes, note)
                except TakenOver:
                    log.info("another server has written; the statement is prepared again")
                    self._undo(prepared)
                    continue
                break
            else:
                raise NotReady("Other servers change the definitions at the same time. Try again", code=50301)
        self._wait_for_cleanups(prepared.awaited)
        noted = (*prepared.warnings, *warnings)
        if prepared.is_warning:
            return entity("warning_entity", text, noted, message=prepared.message)
        return command(
            text,
            command_id=prepared.command_id,
            message=prepared.message,
            sequence=sequence,
            query_id=prepared.query_id,
            warnings=noted,
        )

    def write(self, decide: Callable[[], Sequence[Change]]) -> None:
        """Write what a function decides, which is called once the catalog is known to be complete."""
        with self._taken_turn():
            for _ in range(_ATTEMPTS):
                self._definitions.take_over()
                changes = decide()
                if not changes:
                    return
                try:
                    self._definitions.append(changes)
                    return
                except TakenOver:
                    continue
        raise NotReady("Other servers change the definitions at the same time", code=50301)

    @contextmanager
    def _taken_turn(self) -> Iterator[None]:
        if not self._turn.acquire(timeout=_TURN_SECONDS):
            raise NotReady("The statements before this one take very long. Try again", code=50301)
        try:
            yield
        finally:
            self._turn.release()

    def _make(self, prepared: Prepared) -> None:
        """Schemas first: they are what is refused most often."""
        if prepared.register is not None:
            self._schemas.register(prepared.register)
        self._topics.ensure(prepared.topics)
        for query in self._new_queries(prepared):
            self._topics.pin(query)

    def _undo(self, prepared: Prepared) -> None:
        """The queries will have other ids."""
        groups = {plan.group for query in self._new_queries(prepared) for plan in query.plans}
        with suppress(ClientError):
            self._topics.delete_groups({group for group in groups if group is not None})

    def _new_queries(self, prepared: Prepared) -> list[Query]:
        defined = [one.definition.query for one in prepared.changes if isinstance(one.definition, QueryDefinition)]
        return [query for query in defined if self._state.query(query.id) is None]

    def _wait_for_cleanups(self, names: Sequence[str]) -> None:
        deadline = time.monotonic() + _CLEANUP_SECONDS
        while any(self._state.cleanup(name) is not None for name in names) and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
