"""Keeps persistent queries running in the engine, as long as this server is the one that has to.

One thread compares what the catalog wants with what runs, again and again: it starts, stops and restarts. So a query
goes on after the engine, or the server that ran it, has died.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import msgspec

from core_broker.client.errors import ClientError
from core_broker.service.clock import Clock, SystemClock
from streams.errors import EngineUnavailable, StreamsError
from streams.model.plan import Query, QueryPlan
from streams.server.chores import Chores
from streams.server.engine import EngineDoor
from streams.server.errors import ServiceError
from streams.server.topics import Topics
from streams.spark.queries.spec import QuerySpec

log = logging.getLogger(__name__)

State: TypeAlias = Literal["starting", "running", "failed"]
JOB: Final = "streams-query"
_ROUND_SECONDS: Final = 0.5
_CHECK_SECONDS: Final = 1.0
_PROGRESS_SECONDS: Final = 1.0
_STOP_SECONDS: Final = 60.0
_RETRY_SECONDS: Final = 1.0
_RETRY_SECONDS_MAX: Final = 60.0
_STABLE_SECONDS: Final = 120.0
_ERROR_CHARACTERS: Final = 2000


@dataclass(slots=True)
class Run:
    """One persistent query, from when this server first wants it to run until it no longer does."""

    query: Query
    state: State = "starting"
    error: str | None = None
    """Why it failed the last time."""
    connection: int = 0
    """The connection to the engine over which it was started."""
    failures: int = 0
    since: float = 0.0
    """When it was started, or when it is to be started again."""
    checked_at: float = 0.0


class QueryRunner:
    """Owns the thread. `is_owner` says whether this server runs the queries."""

    def __init__(
        self,
        *,
        queries: Callable[[], Iterable[Query]],
        is_owner: Callable[[], bool],
        engine: EngineDoor,
        topics: Topics,
        chores: Chores,
        spec: Callable[[Query, QueryPlan], QuerySpec],
        clock: Clock | None = None,
    ) -> None:
        self._queries = queries
        self._is_owner = is_owner
        self._engine = engine
        self._topics = topics
        self._chores = chores
        self._spec = spec
        self._clock = clock or SystemClock()
        self._runs: dict[str, Run] = {}
        self._progress: dict[str, Any] = {}
        self._stopping = threading.Event()
        self._awake = threading.Event()
        self._thread = threading.Thread(target=self._work, name="queries", daemon=True)
        self._teller = threading.Thread(target=self._collect_progress, name="progress", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()
        self._teller.start()

    def wake(self) -> None:
        """Something has changed: look at once."""
        self._awake.set()

    def close(self) -> None:
        """Stop all queries of this server."""
        self._stopping.set()
        self.wake()
        if self._thread.ident is not None:
            self._thread.join(_STOP_SECONDS)

    def run_of(self, query_id: str) -> Run | None:
        """How a query is doing; None if it does not run on this server."""
        return self._runs.get(query_id)

    @property
    def progress(self) -> Mapping[str, Any]:
        """The progress of all plans as the engine reported it last, by name."""
        return self._progress

    def _work(self) -> None:
        while not self._stopping.is_set():
            self._awake.wait(_ROUND_SECONDS)
            self._awake.clear()
            try:
                self._round()
            except Exception:
                # The thread lives as long as the server: the next round may succeed.
                log.exception("queries could not be looked after")
        # What still runs ends with the connection to the engine.

    def _round(self) -> None:
        is_owner = self._is_owner()
        wanted = {query.id: query for query in self._queries() if not query.is_paused} if is_owner else {}
        for run in list(self._runs.values()):
            query = wanted.get(run.query.id)
            if query is None or (query.plans, query.generation) != (run.query.plans, run.query.generation):
                self._stop(run)
                del self._runs[run.query.id]
        for query in wanted.values():
            if self._stopping.is_set():
                return
            run = self._runs.setdefault(query.id, Run(query))
            if not self._advance(run):
                break
        if is_owner:
            self._chores.do()

    def _advance(self, run: Run) -> bool:
        """Whether the engine can be reached; otherwise the others would only wait for it, too."""
        now = self._clock.monotonic()
        try:
            if run.state != "running":
                if now >= run.since:
                    self._start(run)
            elif run.connection != self._engine.generation or not self._engine.is_connected:
                self._fail(run, "The engine has ended; the query is started again")
            elif now - run.checked_at > _CHECK_SECONDS:
                run.checked_at = now
                self._check(run, now)
        except EngineUnavailable as error:
            self._fail(run, str(error))
            return False
        except (StreamsError, ClientError, ServiceError) as error:
            self._fail(run, str(error))
        return True

    def _start(self, run: Run) -> None:
        self._topics.ensure(run.query.topics)
        for plan in run.query.plans:
            self._engine.run(plan.name, JOB, msgspec.to_builtins(self._spec(run.query, plan)))
        run.connection = self._engine.generation
        run.state, run.since = "running", self._clock.monotonic()
        log.info("query started", extra={"query": run.query.id, "failures": run.failures})

    def _check(self, run: Run, now: float) -> None:
        for plan in run.query.plans:
            status = self._engine.status(plan.name)
            if status.state in ("failed", "ended"):
                self._fail(run, _reason(status.error) or "It has ended by itself")
                return
        if run.failures and now - run.since > _STABLE_SECONDS:
            run.failures, run.error = 0, None

    def _fail(self, run: Run, reason: str) -> None:
        """Stop what is left of it, and plan its next start: later after each failure."""
        self._stop(run)
        run.failures += 1
        pause = min(_RETRY_SECONDS * 2 ** min(run.failures - 1, 10), _RETRY_SECONDS_MAX)
        run.state, run.error = "failed", reason[:_ERROR_CHARACTERS]
        run.since = self._clock.monotonic() + pause
        log.warning("query failed", extra={"query": run.query.id, "error": run.error, "retry_seconds": pause})

    def _stop(self, run: Run) -> None:
        if run.connection != self._engine.generation or not self._engine.is_connected:
            return  # its jobs have ended with the connection
        for plan in reversed(run.query.plans):
            try:
                self._engine.stop(plan.name, timeout_seconds=_STOP_SECONDS)
            except StreamsError as error:
                # It may never have been started; whatever still runs is fenced when it is started again.
                log.info("a query could not be stopped", extra={"query": plan.name, "error": str(error)[:200]})

    def _collect_progress(self) -> None:
        """In a thread of its own: an engine that hangs is found out by those who look after the queries."""
        while not self._stopping.wait(_PROGRESS_SECONDS):
            try:
                self._progress = self._engine.progress() if self._runs else {}
            except StreamsError as error:
                log.info("the engine did not tell the progress of queries", extra={"error": str(error)[:200]})


def _reason(trace: str | None) -> str:
    """What a traceback says at its end."""
    lines = [line for line in (trace or "").splitlines() if line.strip()]
    start = next((number for number in range(len(lines) - 1, -1, -1) if lines[number].startswith("  ")), -1)
    return "\n".join(lines[start + 1 :])
