"""SparkSink: the engine streams topics into tables, every record once, as a row or as a dead letter."""

import logging
import os
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from connect.api.config import Config, Problem
from connect.api.engine import EngineContext, EngineFacts, EngineSinkConnector, EngineTask
from connect.api.errors import ConfigError, ConnectError, RetriableError
from connect.api.sink import TopicPartition
from connectors.spark.config import SparkSinkConfig
from connectors.spark.failures import SinkFailure
from connectors.spark.spec import JOB, OFFSETS, SinkSpec
from core_broker.service.settings import SettingsError
from streams.errors import EngineError, EngineUnavailable, JavaMissing, StreamsError
from streams.settings import SparkSettings
from streams.spark.engine.client import Engine
from streams.spark.engine.messages import JobStatus
from streams.spark.java import find_java

log = logging.getLogger(__name__)

_CHECK_SECONDS: Final = 0.25
_STOP_SECONDS: Final = 30.0
_GAUGES: Final = ("sink_record_lag_max", "partition_count")
_TOPIC: Final = "topic:"
"""Prefix of counters that name a topic of which records were read."""
_JAVA_IS_GONE: Final = frozenset(
    {"Py4JError", "Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError", "BrokenPipeError"}
)
"""Errors of calls into a JVM that has just died; the engine ends too, but a job may report the error before."""


class SparkSinkTask(EngineTask):
    """Runs the sink's query in the engine, and watches it."""

    config: SparkSinkConfig

    def __init__(self, config: Config, context: EngineContext) -> None:
        assert isinstance(config, SparkSinkConfig)
        super().__init__(config, context)
        self._engine: Engine | None = None
        self._runs = False
        self._seen: dict[str, float] = {}

    @override
    def start(self) -> None:
        self._run()

    @override
    def turn(self) -> None:
        self.context.wait(_CHECK_SECONDS)
        if not self._runs:
            self._run()
        try:
            assert self._engine is not None
            status = self._engine.status(self._name)
        except (EngineUnavailable, EngineError) as error:
            self._disconnect()
            raise RetriableError(f"The Spark engine is gone: {error}") from error
        self._count(status)
        if status.state == "failed":
            self._runs = False
            if status.error_kind in _JAVA_IS_GONE:
                self._disconnect()
            raise failure_of(status)
        if status.state == "ended":
            self._runs = False
            raise RetriableError("The query was stopped from outside and is started again")

    @override
    def rest(self) -> None:
        self._halt()

    @override
    def resume(self) -> None:
        self._run()

    @override
    def stop(self) -> None:
        try:
            self._halt()
        finally:
            self._disconnect()

    @property
    def _name(self) -> str:
        return self.context.connector

    def _run(self) -> None:
        try:
            if self._engine is None:
                self._engine = Engine.connect(engine_settings(self.context), on_progress=self._log_line)
            self.context.ensure_dead_letter_topic()
            spec = SinkSpec.of_context(self.context, options=dict(self.config.given))
            self._seen = {}
            self._engine.run(self._name, JOB, spec.as_json())
            self._runs = True
        except JavaMissing as error:
            raise ConfigError(str(error)) from error
        except (EngineUnavailable, EngineError) as error:
            self._disconnect()
            raise RetriableError(str(error)) from error

    def _halt(self) -> None:
        """Stop the query; if it does not stop in time, closing the connection ends it."""
        if self._engine is None or not self._runs:
            return
        self._runs = False
        try:
            self._engine.stop(self._name, timeout_seconds=_STOP_SECONDS)
        except (EngineUnavailable, EngineError) as error:
            log.warning("the query did not stop in time", extra={"sink": self._name, "error": str(error)})
            self._disconnect()

    def _disconnect(self) -> None:
        engine, self._engine, self._runs = self._engine, None, False
        if engine is not None:
            engine.close()

    def _log_line(self, line: str) -> None:
        log.info("output of the Spark engine", extra={"sink": self._name, "line": line})

    def _count(self, status: JobStatus) -> None:
        """Report to the worker what has changed since the last report."""
        sums = {name: count for name, count in status.counters.items() if not name.startswith(_TOPIC)}
        changes = {
            name: count if name in _GAUGES else count - self._seen.get(name, 0.0) for name, count in sums.items()
        }
        self._seen = sums
        if any(changes.values()):
            self.context.count(changes)
        topics = [name.removeprefix(_TOPIC) for name in status.counters if name.startswith(_TOPIC)]
        if topics:
            self.context.used(topics)


def failure_of(status: JobStatus) -> ConnectError:
    """The error of a failed query: an outage if the JVM died, else the end of the task."""
    if status.error_kind in _JAVA_IS_GONE:
        last_line = (status.error or "").strip().rpartition("\n")[2]
        return RetriableError(f"Spark's Java has died: {last_line}")
    trace = status.error or "The query failed for an unknown reason"
    # Of a sink's own failure only the executor's trace, not how it came here.
    return ConnectError(trace.partition(f"{SinkFailure.__name__}: ")[2] or trace)


def engine_settings(facts: EngineFacts) -> SparkSettings:
    """The engine's settings, which are among the worker's."""
    try:
        return SparkSettings.among(dict(facts.engine_properties))
    except SettingsError as error:
        raise ConfigError(f"The worker's settings for Spark are invalid: {error}") from error


class SparkSinkConnector(EngineSinkConnector):
    """Streams topics into tables, in one task: Spark distributes the work."""

    config_class = SparkSinkConfig
    task_class = SparkSinkTask
    aliases: ClassVar[tuple[str, ...]] = ("io.caudal.connect.spark.SparkSinkConnector",)

    @classmethod
    @override
    def validate(cls, config: Config) -> Iterable[Problem]:
        try:
            find_java(os.environ)
        except JavaMissing as error:
            yield Problem("connector.class", str(error))

    @override
    def alter_engine_offsets(self, facts: EngineFacts, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Continue at these offsets, or at the beginning where there is none."""
        changes = [[topic, partition, offset] for (topic, partition), offset in offsets.items()]
        return self._call_engine(facts, offsets=changes, forget=False)

    @override
    def reset_engine_offsets(self, facts: EngineFacts, offsets: Mapping[TopicPartition, int]) -> bool:
        """Start over."""
        return self._call_engine(facts, offsets=[], forget=True)

    def _call_engine(self, facts: EngineFacts, **arguments: Any) -> bool:
        spec = SinkSpec.of_facts(facts, options=dict(self.config.given))
        try:
            with Engine.connect(engine_settings(facts)) as engine:
                engine.call(OFFSETS, spec=spec.as_json(), **arguments)
        except StreamsError as error:
            raise ConnectError(str(error)) from error
        return True
