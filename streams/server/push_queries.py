"""Push queries: jobs of the engine whose rows go to one client."""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from typing_extensions import override

from core_broker.client.errors import ClientError
from streams.errors import EngineError, EngineUnavailable
from streams.model.plan import QueryPlan, TopicRequest
from streams.server.engine_rows import row_reader
from streams.server.errors import ServerFailed
from streams.server.row_streams import Batch, RowStream
from streams.server.service import Service
from streams.spark.queries.spec import QuerySpec
from streams.sql.planning.builder import internal_topic

log = logging.getLogger(__name__)

_JOB: Final = "streams-query"
_WAIT_MS: Final = 500
_STOP_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.05
_EARLY: Final = ("starting", "running")
_NOTHING: Final[Mapping[str, Any]] = {"rows": []}


class PushRows(RowStream):
    """The rows of a push query. All but the last of its plans fill topics that only it reads."""

    def __init__(self, service: Service, query_id: str, plans: Sequence[QueryPlan], *, trigger_ms: int) -> None:
        last = plans[-1]
        super().__init__(query_id, "push", last.columns)
        self._service = service
        self._plans = tuple(plans)
        self._trigger_ms = trigger_ms
        self._left = last.limit
        self._read = row_reader(column.sql_type for column in last.columns)
        self._is_started = False
        self._has_begun = False

    def start(self) -> None:
        """Make its topics and start its jobs. Raises ClientError, EngineUnavailable or EngineError."""
        self._is_started = True
        try:
            self._service.topics.ensure(self._topic_requests())
            for plan in self._plans:
                if self.is_closed():
                    return
                self._service.engine.run(plan.name, _JOB, msgspec.to_builtins(self._spec(plan)))
        except BaseException:
            self.close()
            raise

    @override
    def take(self) -> Batch | None:
        if self.is_closed() or self._left == 0:
            self.has_reached_limit = self._left == 0
            return None
        try:
            found = self._ask()
        except (EngineError, EngineUnavailable) as error:
            if self.is_closed():
                return None
            raise ServerFailed(str(error)) from error
        rows = [self._read(row) for row in found["rows"]]
        if self._left is not None:
            self._left -= len(rows)
        if rows:
            return Batch(rows, found.get("tombstones") or [])
        if reason := found.get("error"):
            raise ServerFailed(str(reason))
        if found.get("done"):
            self.has_reached_limit = self._left == 0
            return None
        return Batch([])

    def _ask(self) -> Mapping[str, Any]:
        engine, name = self._service.engine, self._plans[-1].name
        room = self._service.settings.ksql_push_queries_rows_max
        limit = room if self._left is None else min(room, self._left)
        try:
            found = engine.rows(name, wait_ms=_WAIT_MS, limit=limit)
        except EngineError as error:
            # The engine takes a moment to begin; the job itself knows why it cannot.
            if self._has_begun or error.kind != "NotRunning" or engine.status(name).state not in _EARLY:
                raise
            time.sleep(_PAUSE_SECONDS)
            return _NOTHING
        self._has_begun = True
        return found

    @override
    def release(self) -> None:
        if not self._is_started:
            return
        for plan in reversed(self._plans):
            self._try("stop", plan.name, lambda name=plan.name: self._stop(name))
        if topics := [request.name for request in self._topic_requests()]:
            self._try("delete topics", self.query_id, lambda: self._service.topics.delete(topics))

    def _stop(self, name: str) -> None:
        engine = self._service.engine
        engine.stop(name, timeout_seconds=_STOP_SECONDS)
        if engine.is_connected:
            engine.forget(self._folder, name)

    def _try(self, action: str, name: str, do: Any) -> None:
        try:
            do()
        except (ClientError, EngineError, EngineUnavailable) as error:
            log.warning(
                "what a push query has left behind stays",
                extra={"action": action, "query": name, "reason": str(error)},
            )

    @property
    def _folder(self) -> str:
        return f"{self._service.settings.checkpoints.rstrip('/')}/push-queries"

    def _spec(self, plan: QueryPlan) -> QuerySpec:
        settings = self._service.settings
        return QuerySpec(
            plan=plan,
            cluster=settings.cluster(),
            registry=self._service.schemas.settings,
            folder=self._folder,
            extensions=settings.extensions,
            trigger_ms=self._trigger_ms,
            transactional=False,
        )

    def _topic_requests(self) -> list[TopicRequest]:
        return [internal_topic(plan.sink) for plan in self._plans if plan.sink is not None]
