"""The job of a query: begins where it ended, writes each batch, starts again after failures."""

import logging
import random
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec
from typing_extensions import override

from streams.errors import StreamsError
from streams.spark.engine.job import EngineContext, Job
from streams.spark.engine.messages import JSON
from streams.spark.queries.batches import Batches, Tallies
from streams.spark.queries.checkpoints import Checkpoint, StateLost
from streams.spark.queries.failures import QueryFailed, is_final, may_pass, message_of
from streams.spark.queries.frames import output_frame, staged_frame, waits_itself
from streams.spark.queries.inputs import continued_offsets, first_offsets
from streams.spark.queries.progress import describe
from streams.spark.queries.results import Results
from streams.spark.queries.sending import Sender
from streams.spark.queries.spec import BEGIN_ANEW, QuerySpec, cluster_of
from streams.spark.queries.staging import RecordStage, RowStage, Stage
from streams.spark.topics.offsets import from_checkpoint
from streams.spark.topics.positions import Positions

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

RUNNING: Final[dict[str, "StreamsQuery"]] = {}
"""The queries of this engine, by name."""
_UNEXPLAINED_MAX: Final = 5
"""A query fails after so many failures in a row whose cause is unknown."""
_FIRST_DELAY_S: Final = 0.5
_DELAY_MAX_S: Final = 30.0
_STALLED_S: Final = 600.0
"""Spark reports every batch, and every ten seconds if there is none. A query that is silent for so long hangs."""
_END_S: Final = 25.0
_LOOK_S: Final = 1.0
_KEPT_S: Final = 300.0
_PURGE_S: Final = 30.0
"""How often processed records of repartition topics are deleted, as Kafka Streams does."""
_POOL: Final = "spark.scheduler.pool"


class StreamsQuery(Job):
    """Runs until it is stopped or fails for good."""

    def __init__(self, context: EngineContext, name: str, spec: JSON) -> None:
        super().__init__(context, name, spec)
        self.query_spec = QuerySpec.of_json(spec)
        self._checkpoint = Checkpoint(context.files, self.query_spec.home)
        self.tallies = Tallies()
        plan = self.query_spec.plan
        self.results = Results(plan.limit) if plan.sink is None else None
        self._sender = None if plan.sink is None else Sender(self.query_spec)
        self._batches: Batches | None = None
        self._late = context.session.sparkContext.accumulator(0)
        self._query: StreamingQuery | None = None
        self._failure: Exception | None = None
        self._failures = 0
        self._next_start = 0.0
        self._next_look = 0.0
        self._next_purge = time.monotonic() + _PURGE_S
        self._last_sign: tuple[object, float] = (None, 0.0)
        self.last_error: str | None = None
        self.has_failed = False
        self.ended_at: float | None = None
        self.last_progress: dict[str, Any] = {}

    @override
    def start(self) -> None:
        _forget_old_clients()
        RUNNING[self.name] = self
        self._try_begin()

    @override
    def check(self) -> None:
        query = self._query
        if self.results is not None and self.results.is_complete:
            self._halt()
        elif query is None:
            if time.monotonic() >= self._next_start:
                self._try_begin()
        elif not query.isActive:
            exception, failure = query.exception(), self._failure
            self._halt()
            error = failure or exception or RuntimeError("The query ended by itself")
            self._handle_failure(error, f"{exception}\n{failure}")
        else:
            self._look(query)

    @override
    def counters(self) -> dict[str, float]:
        tallies = self.tallies
        return {
            "batch": float(tallies.batch),
            "records_out": float(tallies.records_out),
            "late": float(tallies.late + self._late.value),
            "undecodable": float(tallies.undecodable),
        }

    @override
    def stop(self) -> None:
        self.ended_at = time.monotonic()
        if self.results is not None:
            self.results.end(self.last_error if self.has_failed else None)
        try:
            self._halt()
        finally:
            if self._sender is not None:
                self._sender.close()
            else:
                self._checkpoint.forget()
            if RUNNING.get(self.name) is self and not self.has_failed:
                del RUNNING[self.name]

    @property
    def state(self) -> str:
        """What it does: `running`, `waiting` for its next start, or `failed`."""
        if self.has_failed:
            return "failed"
        return "waiting" if self._query is None and not (self.results and self.results.is_complete) else "running"

    def progress(self) -> dict[str, Any]:
        """How far it is."""
        tallies = msgspec.structs.replace(self.tallies, late=self.tallies.late + self._late.value)
        return describe(self.state, tallies, self.last_progress, last_error=self.last_error)

    # --- the query ---

    def _try_begin(self) -> None:
        try:
            self._begin()
        except Exception as error:  # noqa: BLE001 - any error is judged
            self._halt()
            self._handle_failure(error, str(error))

    def _begin(self) -> None:
        self._failure = None
        spec, session = self.query_spec, self.context.session
        start = self._positions()
        self._checkpoint.clear_staging()
        target: Sender | Results | None = self._sender or self.results
        assert target is not None, "there is a topic or a client"
        self._batches = Batches(spec, self._checkpoint, target, self.tallies)
        # Jobs of one pool wait for each other.
        session.sparkContext.setLocalProperty(_POOL, self.name)
        staged = staged_frame(output_frame(session, spec, start, self._late), self._stage())
        self._query = (
            staged.writeStream.queryName(self.name)
            .outputMode(spec.plan.mode)
            .option("checkpointLocation", self._checkpoint.location)
            .trigger(processingTime=f"{0 if waits_itself(spec.plan) else spec.trigger_ms} milliseconds")
            .foreachBatch(self._take)
            .start()
        )
        self._last_sign = (None, time.monotonic())
        log.info("query started", extra={"query": self.name, "generation": spec.generation})

    def _stage(self) -> Stage:
        spec, folder = self.query_spec, self._checkpoint.staging
        if self._sender is None or spec.plan.sink is None:
            return RowStage(spec.plan.columns, folder)
        return RecordStage(spec.plan.sink, spec.registry, folder, self._sender.sink_partitions())

    def _positions(self) -> dict[str, dict[str, Any]]:
        """Where the inputs began; decided when the query runs for the first time."""
        spec = self.query_spec
        topics = {given.source.topic for given in spec.plan.inputs}
        committed = None if self._sender is None else self._sender.begin(topics)
        start = self._checkpoint.start()
        if start is not None and {given.view for given in spec.plan.inputs} <= start.keys():
            self._check_kept()
            return start
        if self._sender is not None and self._sender.sent >= 0 and spec.plan.has_state:
            raise StateLost(f"The state of query {self.name} in {spec.home} is gone: {BEGIN_ANEW}")
        positions = Positions(cluster_of(spec.cluster))
        start = {given.view: first_offsets(positions, given) for given in spec.plan.inputs}
        if committed:
            start = {view: continued_offsets(document, _among(document, committed)) for view, document in start.items()}
        if self._sender is not None:
            first = [from_checkpoint(document) for document in start.values()]
            self._sender.begin_at({place: offset for places in first for place, offset in places.items()})
        self._checkpoint.begin(start)
        return start

    def _check_kept(self) -> None:
        """Refuse to go on with a checkpoint that is older than what was written."""
        last = self._checkpoint.last_batch()
        if self._sender is not None and self._sender.sent > last:
            where = f"its checkpoint in {self.query_spec.home} ends with batch {last}"
            raise StateLost(f"Query {self.name} has written batch {self._sender.sent}, but {where}: {BEGIN_ANEW}")

    def _take(self, frame: Any, number: int) -> None:
        """Called by Spark for each batch."""
        batches = self._batches
        assert batches is not None, "it is made before the query starts"
        try:
            batches.take(frame, number)
        except Exception as error:
            self._failure = error
            raise
        self._failures = 0

    def _halt(self) -> None:
        query, self._query = self._query, None
        if query is None:
            return
        try:
            query.stop()
        except Exception as error:  # noqa: BLE001 - Spark also raises what the query failed with
            log.info("stopping a query raised an error", extra={"query": self.name, "error": str(error)[:500]})
        # Spark does not interrupt `_take`, which must have returned before another run begins.
        batches = self._batches
        if batches is not None:
            if not batches.turn.acquire(timeout=_END_S):
                raise StreamsError(f"Query {self.name} does not stop: its last batch is still being written")
            batches.turn.release()

    def _look(self, query: "StreamingQuery") -> None:
        """Once a second, read Spark's reports, and check that they still come."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_S
        if now >= self._next_purge and self._sender is not None and self._batches is not None:
            self._next_purge = now + _PURGE_S
            self._sender.delete_needless(self._batches.take_needless())
        last = query.lastProgress
        if last is not None:
            self.last_progress = dict(last)
        sign = (self.tallies.batch, self.last_progress.get("timestamp"))
        if sign != self._last_sign[0]:
            self._last_sign = (sign, now)
        elif now - self._last_sign[1] > _STALLED_S:
            log.error("a query is stalled and will be restarted", extra={"query": self.name, "seconds": _STALLED_S})
            self._halt()
            self._handle_failure(TimeoutError(f"Spark has done nothing for {_STALLED_S:.0f} s"), "")

    def _handle_failure(self, error: BaseException, text: str) -> None:
        """Start again after a while, or give up by raising."""
        self.last_error = message_of(error, text)
        passing = may_pass(error, text)
        if is_final(error, text) or (not passing and self._failures >= _UNEXPLAINED_MAX):
            self.has_failed = True
            raise QueryFailed(type(error).__name__, self.last_error) from error
        delay = min(_FIRST_DELAY_S * 2 ** min(self._failures, 10), _DELAY_MAX_S)
        self._failures += 1
        # At random, so that the queries of an engine do not all restart at once and slow each other down again.
        self._next_start = time.monotonic() + delay * random.uniform(0.5, 1.5)
        log.warning("a query failed and will be restarted", extra={"query": self.name, "reason": self.last_error})


def _forget_old_clients() -> None:
    """Push queries that have failed are kept for a while, so that their clients get the reason."""
    for name, job in list(RUNNING.items()):
        if job.ended_at is not None and job.results is not None and time.monotonic() - job.ended_at > _KEPT_S:
            RUNNING.pop(name, None)


def _among(document: dict[str, Any], committed: dict[tuple[str, int], int]) -> dict[tuple[str, int], int]:
    """What is committed of the partitions of an input."""
    return {place: committed[place] for place in from_checkpoint(document) if place in committed}
