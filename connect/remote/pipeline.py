"""The sink pipeline for processes outside of a worker: it collects dead letters instead of sending them.

It is made from a text (`connect.api.engine.EngineContext.steps`), needs no store and no cluster, starts no thread and
treats records as a worker does: the same code converts, transforms, retries and writes dead letters.
"""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Final, Self

import msgspec
from typing_extensions import override

from connect.api.errors import ConfigError
from connect.api.record import SinkRecord
from connect.runtime.configuration.config_providers import conceal
from connect.runtime.configuration.connector_config import SinkConnectorConfig
from connect.runtime.configuration.plugins import Plugins
from connect.runtime.counters import TaskCounters, merged_counters
from connect.runtime.failures.error_policy import ErrorPolicy, Failure, Stage, ToleranceExceeded
from connect.runtime.failures.failed_record import DeadLetterFormat, DeadLetterWriter, FailedRecord
from connect.runtime.failures.redrive_topic import redrive_topic
from connect.runtime.models import TaskId
from connect.runtime.stopping import Stopping
from connect.runtime.tasks.conversion import ConverterChoice, class_name_of, conversion_of, converter_choices
from connect.runtime.tasks.sink_pipeline import SINK_TASK, SinkPipeline
from connect.runtime.tasks.steps import Steps, steps_of
from connect.settings import ConnectSettings
from core_broker.client.records import IncomingRecord, OutgoingRecord

__all__ = [
    "PATIENCE_SECONDS",
    "ConverterChoice",
    "RemotePipeline",
    "ToleranceExceeded",
    "merged_counters",
    "steps_text",
]

PATIENCE_SECONDS: Final = 60.0


class RemotePipeline:
    """Converts and transforms records, and handles failures by the connector's `errors.*` options; for one thread."""

    def __init__(self, steps: Steps, *, plugins: Plugins, patience_seconds: float) -> None:
        """Use `open`, unless you have your own plugins."""
        config, settings = SinkConnectorConfig.parse(steps.config), ConnectSettings.parse(steps.settings)
        self._conversion = conversion_of(config, plugins, settings)
        self._stopping = Stopping()
        self.counters = TaskCounters()
        """Failures, retries, dead letters, ... since it was opened. The sink itself counts records that it reads or
        writes."""
        self._reported = TaskCounters()
        policy = ErrorPolicy(
            config,
            task=str(steps.task),
            counters=self.counters,
            stopping=self._stopping,
            patience_seconds=patience_seconds,
            conceal=partial(conceal, secrets=steps.secrets),
        )
        letter_format = DeadLetterFormat(config, task=steps.task, conceal=partial(conceal, secrets=steps.secrets))
        self._letters = _CollectedLetters(letter_format) if letter_format.topic else None
        self._pipeline = SinkPipeline(
            self._conversion,
            policy,
            counters=self.counters,
            dead_letters=self._letters,
            redriven=redrive_topic(steps.task.connector),
        )
        self.dead_letter_topic = letter_format.topic or None
        """The topic for dead letters; None when there are none."""
        self.redriven_topic = redrive_topic(steps.task.connector)
        """Records of this topic belong to other topics, which their headers name; `records` takes care of that."""
        self.tolerates_errors = policy.tolerates
        """Whether failed records are skipped; otherwise the first one raises ToleranceExceeded."""
        self.has_transforms = bool(self._conversion.chain.steps)
        key, value, headers = converter_choices(config, settings)
        self.key_converter = ConverterChoice(class_name_of(self._conversion.key), key.options)
        """The options of the converter without prefix, and the name of its class: Kafka Connect's, if it has one
        (`io.confluent.connect.avro.AvroConverter`)."""
        self.value_converter = ConverterChoice(class_name_of(self._conversion.value), value.options)
        self.header_converter = ConverterChoice(class_name_of(self._conversion.headers), headers.options)

    @classmethod
    def open(cls, steps: str, *, patience_seconds: float = PATIENCE_SECONDS) -> Self:
        """Make a pipeline from `EngineContext.steps`; ConfigError when that fails.

        It waits for an unreachable registry for `patience_seconds`, and then raises RetriableError.
        """
        try:
            read = Steps.read(steps)
        except msgspec.DecodeError as error:
            raise ConfigError(f"not a valid pipeline description: {error}") from None
        return cls(read, plugins=_plugins(), patience_seconds=patience_seconds)

    def records(self, batch: Sequence[IncomingRecord]) -> list[SinkRecord]:
        """The records of a batch to write, without those that transforms drop or that failed and are tolerated.

        ToleranceExceeded (a ConnectError, with its cause) when a record failed and `errors.tolerance` is none.
        """
        return self._pipeline.records(batch)

    def refused(self, raw: IncomingRecord, error: Exception) -> None:
        """The sink cannot write a record (stage TASK_PUT): write a dead letter, or raise ToleranceExceeded."""
        self._pipeline.reject(raw, Failure(stage=Stage.TASK_PUT, class_name=SINK_TASK, error=error))

    def unreadable(self, raw: IncomingRecord, error: Exception, *, is_key: bool = False) -> None:
        """A sink that decodes by itself cannot decode a value, or a key: handled like a final failure of the converter.
        Pass records that might still be decoded, because a server was down for instance, to `records`."""
        stage = Stage.KEY_CONVERTER if is_key else Stage.VALUE_CONVERTER
        converter = self._conversion.key if is_key else self._conversion.value
        self._pipeline.reject(raw, Failure(stage=stage, class_name=class_name_of(converter), error=error))

    def taken_letters(self) -> list[OutgoingRecord]:
        """The dead letters since the last call, ready to be sent; at most one for each record."""
        return [] if self._letters is None else self._letters.take()

    def taken_counters(self) -> dict[str, float]:
        """The changes of the counters since the last call, for `merged_counters` and `EngineContext.count`."""
        changes = self.counters.since(self._reported)
        self._reported = msgspec.structs.replace(self.counters)
        return changes

    def close(self) -> None:
        """Release everything; a call of `records` that still waits raises at once."""
        self._stopping.cancel()
        self._conversion.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def steps_text(connector: str, config: Mapping[str, str], *, worker: Mapping[str, str] | None = None) -> str:
    """The steps of a configuration without placeholders, for tools and tests that have no worker.

    `worker` are a worker's settings for converters.
    """
    settings = ConnectSettings.parse(worker or {})
    given = {"name": connector, **config}
    return steps_of(TaskId(connector, 0), settings, resolved=given, secrets={}).text()


class _CollectedLetters(DeadLetterWriter):
    """Dead letters in memory; the caller takes them in time."""

    def __init__(self, letter_format: DeadLetterFormat) -> None:
        self._format = letter_format
        self._letters: list[OutgoingRecord] = []

    @override
    def write(self, record: FailedRecord, failure: Failure, counters: TaskCounters) -> None:
        counters.deadletterqueue_produce_requests += 1
        self._letters.append(self._format.format(record, failure))

    def take(self) -> list[OutgoingRecord]:
        letters, self._letters = self._letters, []
        return letters


@cache
def _plugins() -> Plugins:
    """Loaded once per process."""
    return Plugins.load()
