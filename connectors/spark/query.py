"""The sink's query in the engine: begins where the manifest says, commits each batch, begins again after trouble."""

import logging
import random
import shutil
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from typing_extensions import override

from connect.api.backoff import Backoff
from connectors.spark.commits import Commits
from connectors.spark.entries import Entry, unpacked
from connectors.spark.failures import SinkFailure, Told, is_passing, is_slow_start, told_in
from connectors.spark.letter_box import LetterBox, client_settings
from connectors.spark.manifest import Manifest, Reload, Replaced, TopicPartition, flat
from connectors.spark.progress import lag_of
from connectors.spark.reloading import check_there, reload_of
from connectors.spark.source import SinkStreamReader, sink_source
from connectors.spark.spec import SinkFolders, SinkSpec
from connectors.spark.starting import first_positions, made_anew
from core_broker.client.admin import Admin
from streams.errors import EngineError, StreamsError
from streams.spark.engine.job import EngineContext, Job
from streams.spark.engine.messages import JSON
from streams.spark.topics.offsets import to_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

_UNEXPLAINED_MAX: Final = 5
"""So many failures in a row that nobody can explain are the end: a human looks."""
_RESTARTS: Final = Backoff(0.5, 10.0)
_END_SECONDS: Final = 25.0
RUNNING: Final[dict[str, "SinkQuery"]] = {}
"""The sinks that run in this engine, by the names of their connectors."""


class SinkQuery(Job):
    """Runs until it is stopped, or fails for good."""

    def __init__(self, context: EngineContext, name: str, spec: JSON) -> None:
        super().__init__(context, name, spec)
        self._sink = SinkSpec.of_json(spec)
        self._folders = SinkFolders.of(context.settings.warehouse, self._sink.connector)
        self._box = LetterBox(self._sink)
        self._commits = Commits(self._sink, self._folders, files=context.files, tables=context.tables, box=self._box)
        self._committing = threading.Lock()
        self._is_stopping = False
        self._query: StreamingQuery | None = None
        self._failure: Exception | None = None
        self._failures = 0
        self._next_start = 0.0

    @override
    def start(self) -> None:
        self._begin_again()
        RUNNING[self._sink.connector] = self

    @override
    def check(self) -> None:
        query = self._query
        if query is None:
            if time.monotonic() >= self._next_start:
                self._begin_again()
        elif not query.isActive:
            self._after_failure(query)
        elif query.lastProgress is not None:
            self._failures = 0

    @override
    def counters(self) -> dict[str, float]:
        counts = dict(self._commits.counts)
        manifest = self._commits.manifest
        if manifest is not None:
            counts.update({f"topic:{topic}": 1.0 for topic in manifest.ends})
            counts["partition_count"] = float(len(flat(manifest.positions)))
        progress = None if self._query is None else self._query.lastProgress
        lag = None if progress is None or manifest is None else lag_of(progress, flat(manifest.positions))
        counts["sink_record_lag_max"] = -1.0 if lag is None else float(lag)
        return counts

    @override
    def stop(self) -> None:
        self._is_stopping = True
        if RUNNING.get(self._sink.connector) is self:
            del RUNNING[self._sink.connector]
        self._halt()
        self._box.close()
        shutil.rmtree(self._checkpoint, ignore_errors=True)

    def reload(self, topic: str, partition: int, *, start: int, end: int) -> int:
        """Read a range once more, and replace its rows; how many there are now."""
        with self._committing:
            manifest = self._commits.manifest
            if self._is_stopping or self._query is None or manifest is None:
                raise EngineError("NotRunning", f"Sink {self.name} does not run now: try again when it does")
            again = reload_of(self._sink, flat(manifest.positions), topic, partition, start=start, end=end)
            check_there(again, self._first_offset(again))
            return self._commits.reload(again, lambda: self._written_again(again))

    def _written_again(self, again: Reload) -> list[Entry]:
        """Let executors write a range."""
        reader, place = self._reader({}), (again.topic, again.partition)
        parts = reader.partitions(to_checkpoint({place: again.start}), to_checkpoint({place: again.end}))
        tasks = self.context.session.sparkContext.parallelize(parts, max(1, len(parts)))
        told = tasks.flatMap(lambda part: [text for batch in reader.read(part) for text in batch[0].to_pylist()])
        entries = [unpacked(text) for text in told.collect()]
        # Retention may have been faster than the executors.
        check_there(again, self._first_offset(again))
        return entries

    def _first_offset(self, again: Reload) -> int:
        place = (again.topic, again.partition)
        return Admin(client_settings(self._sink.admin)).offsets([place], "earliest")[place]

    # --- the query ---

    def _begin(self) -> None:
        """Finish what was decided before, and read on behind it."""
        self._failure = None
        manifest = self._commits.recover()
        if manifest is None:
            positions = first_positions(self._sink, committed=self._box.committed())
        else:
            positions = self._still_there(manifest)
        self._commits.begin(positions)
        # The manifest knows all: what Spark remembers of a query is for the time between two starts of it.
        shutil.rmtree(self._checkpoint, ignore_errors=True)
        session, source = self.context.session, sink_source(self._reader(positions), self._sink.connector)
        session.dataSource.register(source)
        self._query = (
            session.readStream.format(source.name())
            .load()
            .writeStream.queryName(f"sink-{self._sink.connector}")
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(processingTime=f"{self._sink.config.trigger_interval_ms} milliseconds")
            .foreachBatch(self._commit)
            .start()
        )

    def _still_there(self, manifest: Manifest) -> dict[TopicPartition, int]:
        """The positions to go on from: none of topics that are others by now."""
        positions = flat(manifest.positions)
        now = self._box.topic_ids({topic for topic, _ in positions})
        anew = made_anew(self._sink, positions, before=manifest.ids, now=now)
        if anew:
            self._box.begin_anew(anew)
        return {place: offset for place, offset in positions.items() if place not in anew}

    def _reader(self, positions: Mapping[TopicPartition, int]) -> SinkStreamReader:
        """Who reads for the query."""
        parallelism = self.context.session.sparkContext.defaultParallelism
        return SinkStreamReader(self._sink, self._folders, positions, parallelism=parallelism)

    def _begin_again(self) -> None:
        try:
            self._begin()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is weighed
            self._weigh(error, str(error))

    def _commit(self, batch: "DataFrame", number: int) -> None:
        """Called by Spark for each batch."""
        with self._committing:
            if self._is_stopping:
                raise Replaced(self._sink.connector)
            try:
                self._commits.commit(number, lambda: [unpacked(row[0]) for row in batch.collect()])
            except Exception as error:
                self._failure = error
                raise

    def _halt(self) -> None:
        query, self._query = self._query, None
        if query is None:
            return
        try:
            query.stop()
        except Exception as error:  # noqa: BLE001 - Spark raises what the query failed with, too
            log.info("a query did not stop as it should", extra={"sink": self.name, "error": str(error)[:500]})
        # What Spark calls for a batch is not interrupted: it must be over before another run begins.
        if not self._committing.acquire(timeout=_END_SECONDS):
            raise StreamsError(f"Sink {self.name} does not end")
        self._committing.release()

    # --- trouble ---

    def _after_failure(self, query: "StreamingQuery") -> None:
        exception = query.exception()
        failure = self._failure
        self._halt()
        self._weigh(failure or exception or StreamsError("The query ended by itself"), str(exception or failure))

    def _weigh(self, error: Exception, text: str) -> None:
        """Try again after a while, or give up."""
        told = told_in(text) or told_in(str(error))
        if not self._may_pass(error, told, text):
            if told is not None:
                raise SinkFailure(told.trace) from None
            raise error
        self._failures += 1
        delay = _RESTARTS.delay(self._failures - 1)
        # Not in step with the others of this engine, which would be in each other's way again.
        self._next_start = time.monotonic() + delay * random.uniform(0.5, 1.5)
        reason = told.message if told is not None else str(error)[:2000]
        log.warning("a sink is interrupted, and begins again", extra={"sink": self.name, "reason": reason})

    def _may_pass(self, error: Exception, told: Told | None, text: str) -> bool:
        if told is not None:
            return told.is_passing
        if is_passing(error) or is_slow_start(text):
            return True
        if isinstance(error, StreamsError):
            return False
        return self._failures < _UNEXPLAINED_MAX

    @property
    def _checkpoint(self) -> Any:
        return self.context.settings.data_dir / "checkpoints" / quote(self._sink.connector, safe="")
