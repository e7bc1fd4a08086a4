"""Records of topics on their way to a sink, in a process that is no worker: what fails is collected, not sent.

It is made from a text alone (`connect.api.engine.EngineContext.steps`), knows no store and no cluster, starts no thread
and treats records as a worker does: the same code converts, transforms, tries again and writes dead letters.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Final, Self

import msgspec
from typing_extensions import override

from connect.api.errors import ConfigError
from connect.api.record import SinkRecord
from connect.runtime import counters as counting
from connect.runtime.configuration.config_providers import conceal
from connect.runtime.configuration.connector_config import SinkConnectorConfig
from connect.runtime.configuration.plugins import Plugins
from connect.runtime.counters import TaskCounters
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
    """Converts, transforms, and settles what fails as the connector's `errors.*` say; for one thread."""

    def __init__(self, steps: Steps, *, plugins: Plugins, patience_seconds: float) -> None:
        """Use `open`; plugins are given here by those who have their own."""
        config, settings = SinkConnectorConfig.parse(steps.config), ConnectSettings.parse(steps.settings)
        self._conversion = conversion_of(config, plugins, settings)
        self._stopping = Stopping()
        self.counters = TaskCounters()
        """What was counted since it was opened: failures, retries, dead letters, ... Records that were read and written
        are for the sink to count."""
        self._told = TaskCounters()
        policy = ErrorPolicy(
            config,
            task=str(steps.task),
            counters=self.counters,
            stopping=self._stopping,
            patience_seconds=patience_seconds,
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
        """Where letters are to go; None when failed records become none."""
        self.redriven_topic = redrive_topic(steps.task.connector)
        """Records of this topic belong to others, which their headers tell; `records` knows how."""
        self.tolerates_errors = policy.tolerates
        """Whether a record that failed is skipped; the first one raises ToleranceExceeded otherwise."""
        self.has_transforms = bool(self._conversion.chain.steps)
        key, value, headers = converter_choices(config, settings)
        self.key_converter = ConverterChoice(class_name_of(self._conversion.key), key.options)
        """Kafka Connect's name of the class, where it has one (`io.confluent.connect.avro.AvroConverter`), and what was
        given as its options, without prefix."""
        self.value_converter = ConverterChoice(class_name_of(self._conversion.value), value.options)
        self.header_converter = ConverterChoice(class_name_of(self._conversion.headers), headers.options)

    @classmethod
    def open(cls, steps: str, *, patience_seconds: float = PATIENCE_SECONDS) -> Self:
        """Make it from `EngineContext.steps`; ConfigError when it cannot be.

        A registry that is away is waited for no longer than `patience_seconds`: RetriableError then.
        """
        try:
            read = Steps.read(steps)
        except msgspec.DecodeError as error:
            raise ConfigError(f"These are no steps of a connector: {error}") from None
        return cls(read, plugins=_plugins(), patience_seconds=patience_seconds)

    def records(self, batch: Sequence[IncomingRecord]) -> list[SinkRecord]:
        """What of a batch is to be written: without what transforms drop, and what failed and may.

        ToleranceExceeded (a ConnectError, with its cause) when a record failed and `errors.tolerance` is none.
        """
        return self._pipeline.records(batch)

    def refused(self, raw: IncomingRecord, error: Exception) -> None:
        """The sink cannot write a record (stage TASK_PUT): a dead letter, or ToleranceExceeded."""
        self._pipeline.reject(raw, Failure(stage=Stage.TASK_PUT, class_name=SINK_TASK, error=error))

    def unreadable(self, raw: IncomingRecord, error: Exception, *, is_key: bool = False) -> None:
        """A sink that decodes by itself cannot decode a value, or a key: settled as if the converter had failed for
        good. What may still be decoded, because a server was away for instance, is for `records`."""
        stage = Stage.KEY_CONVERTER if is_key else Stage.VALUE_CONVERTER
        converter = self._conversion.key if is_key else self._conversion.value
        self._pipeline.reject(raw, Failure(stage=stage, class_name=class_name_of(converter), error=error))

    def taken_letters(self) -> list[OutgoingRecord]:
        """The dead letters since the last call, ready to be sent; at most one of each record."""
        return [] if self._letters is None else self._letters.taken()

    def taken_counters(self) -> dict[str, float]:
        """What was counted since the last call, for `merged_counters` and `EngineContext.count`."""
        changes = self.counters.since(self._told)
        self._told = msgspec.structs.replace(self.counters)
        return changes

    def close(self) -> None:
        """Leave nothing open; who still waits in `records` raises, at once."""
        self._stopping.cancel()
        self._conversion.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def steps_text(connector: str, config: Mapping[str, str], *, worker: Mapping[str, str] | None = None) -> str:
    """The steps of a configuration without placeholders, where no worker makes them: for tools and tests.

    `worker` are settings of a worker, as far as they are about converters.
    """
    settings = ConnectSettings.parse(worker or {})
    given = {"name": connector, **config}
    return steps_of(TaskId(connector, 0), settings, resolved=given, secrets={}).text()


def merged_counters(counted: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """What several pipelines have counted, as if one had."""
    return counting.merged(counted)


class _CollectedLetters(DeadLetterWriter):
    """As many as records were given: who gives them takes the letters in time."""

    def __init__(self, letter_format: DeadLetterFormat) -> None:
        self._format = letter_format
        self._letters: list[OutgoingRecord] = []

    @override
    def write(self, record: FailedRecord, failure: Failure, counters: TaskCounters) -> None:
        counters.deadletterqueue_produce_requests += 1
        self._letters.append(self._format.format(record, failure))

    def taken(self) -> list[OutgoingRecord]:
        letters, self._letters = self._letters, []
        return letters


@cache
def _plugins() -> Plugins:
    """Looked for once in each process: packages do not come while it runs."""
    return Plugins.load()
