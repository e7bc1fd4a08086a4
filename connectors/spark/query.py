"""The sink's query in the engine: begins where the manifest says, commits each batch, restarts after failures."""

import json
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
from connectors.spark.failures import SinkFailure, TaskFailure, find_failure, is_slow_start, is_transient
from connectors.spark.positions import check_retained, first_positions, plan_reload, recreated_partitions
from connectors.spark.spec import SinkFolders, SinkSpec
from connectors.spark.stream_reader import SinkStreamReader, sink_source
from core_broker.client.consumer import TopicPartition
from core_broker.client.errors import NotAllowed
from streams.errors import EngineError, StreamsError
from streams.spark.commits.entries import Entry, parse_entry
from streams.spark.commits.manifest import Manifest, Reload, Replaced, flatten
from streams.spark.engine.job import EngineContext, Job
from streams.spark.engine.messages import JSON
from streams.spark.topics.offsets import from_checkpoint, to_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

_UNEXPLAINED_MAX: Final = 5
"""The sink fails after this many failures in a row whose cause is unknown."""
_RESTARTS: Final = Backoff(0.5, 10.0)
_END_SECONDS: Final = 25.0
RUNNING: Final[dict[str, "SinkQuery"]] = {}
"""The sinks that run in this engine, by connector."""


class SinkQuery(Job):
    """Runs until it is stopped or fails for good."""

    def __init__(self, context: EngineContext, name: str, spec: JSON) -> None:
        super().__init__(context, name, spec)
        self._sink = SinkSpec.of_json(spec)
        self._folders = SinkFolders.of(context.settings.warehouse, self._sink.connector)
        self._outbox = self._sink.open_outbox()
        self._commits = Commits(
            self._sink, self._folders, files=context.files, tables=context.tables, outbox=self._outbox
        )
        self._committing = threading.Lock()
        self._is_stopping = False
        self._query: StreamingQuery | None = None
        self._failure: Exception | None = None
        self._failures = 0
        self._next_start = 0.0

    @override
    def start(self) -> None:
        self._try_begin()
        RUNNING[self._sink.connector] = self

    @override
    def check(self) -> None:
        query = self._query
        if query is None:
            if time.monotonic() >= self._next_start:
                self._try_begin()
        elif not query.isActive:
            exception, failure = query.exception(), self._failure
            self._halt()
            ended = StreamsError("The query ended by itself")
            self._handle_failure(failure or exception or ended, str(exception or failure))
        elif query.lastProgress is not None:
            self._failures = 0

    @override
    def counters(self) -> dict[str, float]:
        counts = dict(self._commits.counts)
        lag: int | None = None
        manifest = self._commits.manifest
        if manifest is not None:
            positions = flatten(manifest.positions)
            counts.update({f"topic:{topic}": 1.0 for topic in manifest.ends})
            counts["partition_count"] = float(len(positions))
            progress = None if self._query is None else self._query.lastProgress
            lag = None if progress is None else _max_lag(progress, positions)
        counts["sink_record_lag_max"] = -1.0 if lag is None else float(lag)
        return counts

    @override
    def stop(self) -> None:
        self._is_stopping = True
        if RUNNING.get(self._sink.connector) is self:
            del RUNNING[self._sink.connector]
        self._halt()
        self._outbox.close()
        shutil.rmtree(self._checkpoint, ignore_errors=True)

    def reload(self, topic: str, partition: int, *, start: int, end: int) -> int:
        """Read a range again and replace its rows; returns how many rows there are now."""
        with self._committing:
            manifest = self._commits.manifest
            if self._is_stopping or self._query is None or manifest is None:
                raise EngineError("NotRunning", f"Sink {self.name} is not running now: try again when it is")
            reload = plan_reload(self._sink, flatten(manifest.positions), topic, partition, start=start, end=end)
            check_retained(reload, self._first_offset(reload))
            return self._commits.reload(reload, lambda: self._write_again(reload))

    def _write_again(self, reload: Reload) -> list[Entry]:
        """Let executors write a range."""
        reader, partition = self._reader({}), (reload.topic, reload.partition)
        parts = reader.partitions(to_checkpoint({partition: reload.start}), to_checkpoint({partition: reload.end}))
        tasks = self.context.session.sparkContext.parallelize(parts, max(1, len(parts)))
        texts = tasks.flatMap(lambda part: [text for batch in reader.read(part) for text in batch[0].to_pylist()])
        entries = [parse_entry(text) for text in texts.collect()]
        # Retention may have deleted records while executors read.
        check_retained(reload, self._first_offset(reload))
        return entries

    def _first_offset(self, reload: Reload) -> int:
        partition = (reload.topic, reload.partition)
        return self._sink.open_admin().offsets([partition], "earliest")[partition]

    # --- the query ---

    def _try_begin(self) -> None:
        try:
            self._begin()
        except Exception as error:  # noqa: BLE001 - any error is judged
            self._handle_failure(error, str(error))

    def _begin(self) -> None:
        """Finish the last batch of the run before, and continue after it."""
        self._failure = None
        self._sink.check_logins()
        manifest = self._commits.recover()
        if manifest is None:
            positions = first_positions(self._sink, committed=self._outbox.committed())
        else:
            positions = self._continued_positions(manifest)
        self._commits.begin(positions)
        # The manifest knows everything, so Spark's checkpoint is only for the time between two starts of the query.
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

    def _continued_positions(self, manifest: Manifest) -> dict[TopicPartition, int]:
        """The positions of the last run, without those of topics that were recreated."""
        positions = flatten(manifest.positions)
        ids = self._outbox.topic_ids({topic for topic, _ in positions})
        recreated = recreated_partitions(self._sink, positions, before=manifest.ids, now=ids)
        if recreated:
            self._outbox.reset_offsets(recreated)
        return {partition: offset for partition, offset in positions.items() if partition not in recreated}

    def _reader(self, positions: Mapping[TopicPartition, int]) -> SinkStreamReader:
        parallelism = self.context.session.sparkContext.defaultParallelism
        return SinkStreamReader(self._sink, self._folders, positions, parallelism=parallelism)

    def _commit(self, batch: "DataFrame", number: int) -> None:
        """Called by Spark for each batch."""
        with self._committing:
            if self._is_stopping:
                raise Replaced(f"sink {self._sink.connector}")
            try:
                self._commits.commit(number, lambda: [parse_entry(row[0]) for row in batch.collect()])
            except Exception as error:
                self._failure = error
                raise

    def _halt(self) -> None:
        query, self._query = self._query, None
        if query is None:
            return
        try:
            query.stop()
        except Exception as error:  # noqa: BLE001 - Spark also raises what the query failed with
            log.info("stopping a query raised an error", extra={"sink": self.name, "error": str(error)[:500]})
        # Spark does not interrupt `_commit`, which must have returned before another run begins.
        if not self._committing.acquire(timeout=_END_SECONDS):
            raise StreamsError(f"Sink {self.name} does not stop: its last batch is still being committed")
        self._committing.release()

    def _handle_failure(self, error: Exception, text: str) -> None:
        """Restart after a while, or give up by raising."""
        failure = find_failure(text) or find_failure(str(error))
        if not self._may_succeed_later(error, failure, text):
            if failure is not None:
                raise SinkFailure(failure.trace) from None
            raise error
        self._failures += 1
        delay = _RESTARTS.delay(self._failures - 1)
        # At random, so that the sinks of an engine do not all restart at once and slow each other down again.
        self._next_start = time.monotonic() + delay * random.uniform(0.5, 1.5)
        reason = failure.message if failure is not None else str(error)[:2000]
        log.warning("the sink failed and will be restarted", extra={"sink": self.name, "reason": reason})

    def _may_succeed_later(self, error: Exception, failure: TaskFailure | None, text: str) -> bool:
        if failure is not None:
            return failure.is_transient
        if is_transient(error) or is_slow_start(text):
            return True
        return not isinstance(error, StreamsError | NotAllowed) and self._failures < _UNEXPLAINED_MAX

    @property
    def _checkpoint(self) -> Any:
        return self.context.settings.data_dir / "checkpoints" / quote(self._sink.connector, safe="")


def _max_lag(progress: Any, positions: Mapping[TopicPartition, int]) -> int | None:
    """How many records the sink is behind in the worst partition; None when Spark does not know the ends."""
    sources = progress["sources"] if isinstance(progress, Mapping) else progress.sources
    latest = sources[0]["latestOffset"] if isinstance(sources[0], Mapping) else sources[0].latestOffset
    if not latest:
        return None
    ends = from_checkpoint(json.loads(latest) if isinstance(latest, str) else latest)
    return max((max(0, end - positions.get(partition, 0)) for partition, end in ends.items()), default=None)
