"""Records of topics on their way to a sink, in a process that is no worker: what fails is collected, not sent."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

from connect.api.record import SinkRecord
from connect.runtime.counters import TaskCounters
from core_broker.client.records import IncomingRecord, OutgoingRecord

PATIENCE_SECONDS = 60.0


class ConverterChoice(NamedTuple):
    """A converter by Kafka Connect's name, where it has one (`io.confluent.connect.avro.AvroConverter`), and its
    options without prefix."""

    name: str
    options: Mapping[str, str]


class RemotePipeline:
    """Converts, transforms, and settles what fails as the connector's `errors.*` say; for one thread."""

    key_converter: ConverterChoice
    value_converter: ConverterChoice
    header_converter: ConverterChoice
    has_transforms: bool
    dead_letter_topic: str | None
    counters: TaskCounters

    @classmethod
    def open(cls, steps: str, *, patience_seconds: float = PATIENCE_SECONDS) -> Self:
        """Make it from `EngineContext.steps`; ConfigError when it cannot be.

        A registry that is away is waited for no longer than `patience_seconds`: RetriableError then.
        """
        raise NotImplementedError

    def records(self, batch: Sequence[IncomingRecord]) -> list[SinkRecord]:
        """What of a batch is to be written: without what transforms drop, and what failed and may.

        ToleranceExceeded (a ConnectError, with its cause) when a record failed and `errors.tolerance` is none.
        """
        raise NotImplementedError

    def refused(self, raw: IncomingRecord, error: Exception) -> None:
        """The sink cannot write a record (stage TASK_PUT): a dead letter, or ToleranceExceeded."""
        raise NotImplementedError

    def unreadable(self, raw: IncomingRecord, error: Exception, *, is_key: bool = False) -> None:
        """A sink that decodes by itself cannot decode a value, or a key: settled as if the converter had failed."""
        raise NotImplementedError

    def taken_letters(self) -> list[OutgoingRecord]:
        """The dead letters since the last call, ready to be sent."""
        raise NotImplementedError

    def taken_counters(self) -> dict[str, float]:
        """What was counted since the last call, for `EngineContext.count`: failures, retries, dead letters, ... Records
        that were read and written are for the sink to count."""
        raise NotImplementedError

    def close(self) -> None:
        """Leave nothing open."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
