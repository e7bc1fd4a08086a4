"""The worker's half of the Spark sink: it lets the engine run the sink's query, and watches it."""

import logging
from typing import Final

from typing_extensions import override

from connect.api.config import Config
from connect.api.engine import EngineContext, EngineFacts, EngineTask
from connect.api.errors import ConfigError, ConnectError, RetriableError
from connectors.spark.config import SparkSinkConfig
from connectors.spark.failures import SinkFailure
from connectors.spark.spec import JOB, SinkSpec
from core_broker.service.settings import SettingsError
from streams.errors import EngineError, EngineUnavailable, JavaMissing
from streams.settings import SparkSettings
from streams.spark.engine.client import Engine
from streams.spark.engine.messages import JobStatus

log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.25
_STOP_SECONDS: Final = 30.0
_GAUGES: Final = ("sink_record_lag_max", "partition_count")
_TOPIC: Final = "topic:"
"""Counters with this prefix name a topic of which records were read."""
_JAVA_IS_GONE: Final = frozenset(
    {"Py4JError", "Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError", "BrokenPipeError"}
)
"""What a call into a Java that has just died raises; the engine follows it, but a job may tell before."""


class SparkSinkTask(EngineTask):
    """Drives one query."""

    config: SparkSinkConfig

    def __init__(self, config: Config, context: EngineContext) -> None:
        assert isinstance(config, SparkSinkConfig)
        super().__init__(config, context)
        self.config = config
        self._engine: Engine | None = None
        self._runs = False
        self._seen: dict[str, float] = {}

    @override
    def start(self) -> None:
        self._run()

    @override
    def turn(self) -> None:
        self.context.wait(_LOOK_SECONDS)
        if not self._runs:
            self._run()
        try:
            assert self._engine is not None
            status = self._engine.status(self._name)
        except (EngineUnavailable, EngineError) as error:
            self._lose()
            raise RetriableError(f"The Spark engine is gone: {error}") from error
        self._count(status)
        if status.state == "failed":
            self._runs = False
            if status.error_kind in _JAVA_IS_GONE:
                self._lose()
            raise failure_of(status)
        if status.state == "ended":
            self._runs = False
            raise RetriableError("The query was ended by somebody else: it is started again")

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
            self._lose()

    @property
    def _name(self) -> str:
        return self.context.connector

    def _run(self) -> None:
        try:
            if self._engine is None:
                self._engine = Engine.connect(engine_settings(self.context), on_progress=self._told)
            self.context.ensure_dead_letter_topic()
            spec = SinkSpec.of_context(self.context, options=dict(self.config.given))
            self._seen = {}
            self._engine.run(self._name, JOB, spec.as_json())
            self._runs = True
        except JavaMissing as error:
            raise ConfigError(str(error)) from error
        except (EngineUnavailable, EngineError) as error:
            self._lose()
            raise RetriableError(str(error)) from error

    def _halt(self) -> None:
        """End the query; one that does not end within its time ends with the connection."""
        if self._engine is None or not self._runs:
            return
        self._runs = False
        try:
            self._engine.stop(self._name, timeout_seconds=_STOP_SECONDS)
        except (EngineUnavailable, EngineError) as error:
            log.warning("a query did not end in time", extra={"sink": self._name, "error": str(error)})
            self._lose()

    def _lose(self) -> None:
        engine, self._engine, self._runs = self._engine, None, False
        if engine is not None:
            engine.close()

    def _told(self, line: str) -> None:
        log.info("the Spark engine", extra={"sink": self._name, "told": line})

    def _count(self, status: JobStatus) -> None:
        """Tell the worker what was done since it was told last."""
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
    """What it means for the task that its query has failed: a Java that died is an outage, anything else the end."""
    if status.error_kind in _JAVA_IS_GONE:
        last_line = (status.error or "").strip().rpartition("\n")[2]
        return RetriableError(f"Spark's Java has died: {last_line}")
    return ConnectError(_readable(status))


def _readable(status: JobStatus) -> str:
    """What a job failed with: of a sink's own failure only that, not the way by which it came here."""
    trace = status.error or "The query failed, and nobody told why"
    return trace.partition(f"{SinkFailure.__name__}: ")[2] or trace


def engine_settings(facts: EngineFacts) -> SparkSettings:
    """The settings of the engine, among the worker's."""
    try:
        return SparkSettings.among(dict(facts.engine_properties))
    except SettingsError as error:
        raise ConfigError(f"The worker's settings of Spark are wrong: {error}") from error
