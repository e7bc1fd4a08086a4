"""The base classes of sinks whose records another engine reads, converts and writes; the worker moves none of them.

The task only controls the engine: it starts it, checks on it and stops it. To process records as a worker would, with
converters, transforms and dead letters, the engine gets `EngineContext.steps`, a text from which
`connect.remote.pipeline.RemotePipeline.open` makes the pipeline in any process with the same packages.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar, Protocol

import msgspec

from connect.api.config import Config
from connect.api.sink import SinkConnector, TopicPartition


class TopicChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Which topics a sink reads."""

    names: tuple[str, ...] = ()
    """The topics by name, whether they exist or not; empty with a pattern."""
    pattern: str | None = None
    """A regular expression (of Python's `re`) for whole names."""
    redriven: str = ""
    """The topic with redriven dead letters, which is read if it exists. Its records belong to other topics."""

    def chosen(self, known: Iterable[str]) -> list[str]:
        """The topics to read, given those that exist."""
        existing = set(known)
        own: Iterable[str] = self.names
        if self.pattern is not None:
            candidates = (name for name in existing if not name.startswith("__") and name != self.redriven)
            own = [name for name in candidates if re.fullmatch(self.pattern, name)]
        return [*sorted(own), *({self.redriven} & existing)]


class EngineFacts(Protocol):
    """What a worker knows about an engine's sink, whether its task runs or not."""

    @property
    def connector(self) -> str:
        """The connector's name."""

    @property
    def group(self) -> str:
        """The consumer group that the engine commits to without being a member; it shows users the offsets and lag."""

    @property
    def topics(self) -> TopicChoice:
        """The topics to read."""

    @property
    def consumer_properties(self) -> Mapping[str, str]:
        """The consumer's properties, with librdkafka's names and `bootstrap.servers`, from the settings of the worker
        and the connector. They contain secrets."""

    @property
    def producer_properties(self) -> Mapping[str, str]:
        """The same for the producer."""

    @property
    def admin_properties(self) -> Mapping[str, str]:
        """The same for the admin client."""

    @property
    def engine_properties(self) -> Mapping[str, str]:
        """The worker's settings for the engine: those that begin with `spark.`, with that prefix."""


class EngineContext(EngineFacts, Protocol):
    """The worker, as the task of such a sink sees it."""

    @property
    def task(self) -> int:
        """The number of this task, from 0."""

    @property
    def run(self) -> tuple[int, int]:
        """Grows with every run of this task, on any worker: of two that run at once, the lower one is outdated."""

    @property
    def steps(self) -> str:
        """The argument of `RemotePipeline.open`. It contains secrets: never log or show it."""

    @property
    def dead_letter_topic(self) -> str | None:
        """The dead-letter topic, which exists before `start` is called; None when there is none."""

    def ensure_dead_letter_topic(self) -> None:
        """Create that topic again if it was deleted; ConnectError when that fails."""

    @property
    def is_stopping(self) -> bool:
        """Whether the task was asked to stop."""

    @property
    def is_cancelled(self) -> bool:
        """Whether the task may run elsewhere by now: it must not write anything more."""

    def count(self, changes: Mapping[str, float]) -> None:
        """Add to the task's counters, by the names of metrics (`sink_record_read`, `sink_record_send`, …); gauges
        (`sink_record_lag_max`, `partition_count`) are replaced."""

    def used(self, topics: Iterable[str]) -> None:
        """Records of these topics were read: add them to the connector's active topics."""

    def wait(self, seconds: float) -> bool:
        """Sleep, but only until the task is asked to stop; True when it is."""


class EngineTask(ABC):
    """Controls the engine. All methods are called from one thread.

    ConnectError from any of them: the task fails with that trace. RetriableError, ConnectionError and TimeoutError: the
    engine or something that it needs is unreachable; the task is RESTARTING until the same call, repeated after a
    pause, succeeds. `start` is then called on a new object.
    """

    def __init__(self, config: Config, context: EngineContext) -> None:
        self.config = config
        self.context = context

    @abstractmethod
    def start(self) -> None:
        """Start the engine's work."""

    @abstractmethod
    def turn(self) -> None:
        """Check on the engine, and report its progress (`context.count`, `context.used`); raise if it has failed.
        Called again and again: each call should wait (`context.wait`) for up to 0.3 s."""

    @abstractmethod
    def rest(self) -> None:
        """The connector is paused: make the engine stop reading, and return when it has. Called once."""

    @abstractmethod
    def resume(self) -> None:
        """The pause is over: let the engine continue. Called once, before `turn`."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the engine's work and release everything; the last call, also when `start` failed. Records that were
        read may be finished unless `context.is_cancelled`."""


class EngineSinkConnector(SinkConnector):
    """A sink whose task is an EngineTask."""

    task_class: ClassVar[type[EngineTask]]  # type: ignore[assignment]  # not a SinkTask: another contract
    tasks_limit: ClassVar[int | None] = 1

    def alter_engine_offsets(self, facts: EngineFacts, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """A user changes offsets of the stopped connector: pass them to the engine, before the worker changes those of
        the group. May be repeated with the same offsets. ConnectError if they are invalid; True if the connector has
        done everything that is needed."""
        return self.alter_offsets(offsets)

    def reset_engine_offsets(self, facts: EngineFacts, offsets: Mapping[TopicPartition, int]) -> bool:
        """A user resets the offsets of the stopped connector; `offsets` are the group's. Otherwise the same."""
        return self.alter_engine_offsets(facts, dict.fromkeys(offsets))

    def removed(self, facts: EngineFacts) -> None:
        """The connector was deleted and its task has ended: clean up. Called on a new object, at most once; not at all
        if the worker dies in between. Errors are logged."""
