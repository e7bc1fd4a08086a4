"""How sinks are written whose records another engine reads, converts and writes: the worker carries none of them.

The task only drives: it tells the engine to begin, asks how it fares, and ends it. What the engine needs to do to
records what a worker would do (converters, transforms, dead letters) is `EngineContext.steps`, a text that
`connect.remote.pipeline.RemotePipeline.open` takes in any process, on any machine that has the same packages.
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
    """Those that are named, be they there or not; none with a pattern."""
    pattern: str | None = None
    """A regular expression (of Python's `re`) that whole names match."""
    redriven: str = ""
    """The topic by which dead letters come back; it is read when it is there. Its records belong to other topics."""

    def chosen(self, known: Iterable[str]) -> list[str]:
        """The topics to read, given those that there are."""
        there = set(known)
        own = self.names if self.pattern is None else self._matching(there, self.pattern)
        return [*sorted(own), *({self.redriven} & there)]

    def _matching(self, there: Iterable[str], pattern: str) -> list[str]:
        own = (name for name in there if not name.startswith("__") and name != self.redriven)
        return [name for name in own if re.fullmatch(pattern, name)]


class EngineFacts(Protocol):
    """What a worker knows of a sink of an engine, be its task running or not."""

    @property
    def connector(self) -> str:
        """The connector's name."""

    @property
    def group(self) -> str:
        """The consumer group that the engine commits to, without being a member; users see its offsets and lag."""

    @property
    def topics(self) -> TopicChoice:
        """What to read."""

    @property
    def consumer_properties(self) -> Mapping[str, str]:
        """How consumers reach the cluster: librdkafka's names, `bootstrap.servers` among them, with what worker and
        connector say. It holds secrets."""

    @property
    def producer_properties(self) -> Mapping[str, str]:
        """The same for producers."""

    @property
    def admin_properties(self) -> Mapping[str, str]:
        """The same for looking at topics and groups, and for changing them."""

    @property
    def engine_properties(self) -> Mapping[str, str]:
        """What the worker's operator says about the engine: its settings that begin with `spark.`, in full."""


class EngineContext(EngineFacts, Protocol):
    """What the task of such a sink may ask of the worker."""

    @property
    def task(self) -> int:
        """The number of this task, from 0."""

    @property
    def run(self) -> tuple[int, int]:
        """Grows with every run of this task, wherever it is: of two that run at once, the one with less has lost it."""

    @property
    def steps(self) -> str:
        """For `RemotePipeline.open`, wherever that is called. It holds secrets: never log or show it."""

    @property
    def dead_letter_topic(self) -> str | None:
        """The topic that dead letters go to, which is there before `start` is called; None when there is none."""

    def ensure_dead_letter_topic(self) -> None:
        """Create that topic, should it have been deleted; ConnectError when it cannot be."""

    @property
    def is_stopping(self) -> bool:
        """Whether the task shall end."""

    @property
    def is_cancelled(self) -> bool:
        """Whether another one may have the task: nothing may be written any more."""

    def count(self, changes: Mapping[str, float]) -> None:
        """Add to what is counted of the task since it started, by the names of metrics (`sink_record_read`,
        `sink_record_send`, …); what is no sum (`sink_record_lag_max`, `partition_count`) is replaced."""

    def used(self, topics: Iterable[str]) -> None:
        """Records of these topics were read: users see it in the connector's active topics."""

    def wait(self, seconds: float) -> bool:
        """Sleep, or less when the task is told to stop; True when it is."""


class EngineTask(ABC):
    """Drives the engine. All methods are called from one thread.

    ConnectError from any of them: the task fails with that trace. RetriableError, ConnectionError and TimeoutError: the
    engine or something that it needs is away; the task is RESTARTING until the same call, made again after a pause,
    succeeds. `start` is called on a new object then.
    """

    def __init__(self, config: Config, context: EngineContext) -> None:
        self.config = config
        self.context = context

    @abstractmethod
    def start(self) -> None:
        """Let the engine begin."""

    @abstractmethod
    def turn(self) -> None:
        """Look how the engine fares, and tell what it did since (`context.count`, `context.used`); raise when it has
        failed. Called again and again: each call should wait (`context.wait`) for up to 0.3 s."""

    @abstractmethod
    def rest(self) -> None:
        """The connector is paused: let the engine read nothing more, and return when it does not. Called once."""

    @abstractmethod
    def resume(self) -> None:
        """The pause is over: let the engine go on. Called once, before `turn`."""

    @abstractmethod
    def stop(self) -> None:
        """End the engine's work, and leave nothing open; called once, after the last call, also when `start` failed.
        What was read may be finished unless `context.is_cancelled`."""


class EngineSinkConnector(SinkConnector):
    """A sink whose task is an EngineTask."""

    task_class: ClassVar[type[EngineTask]]  # type: ignore[assignment]  # no SinkTask: another contract
    tasks_limit: ClassVar[int | None] = 1

    def alter_engine_offsets(self, facts: EngineFacts, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Somebody changes offsets of the stopped connector by hand: tell the engine, before the group's offsets are
        changed by the worker. May be called again with the same. ConnectError when they make no sense; True when
        nothing is left to do by other means."""
        return self.alter_offsets(offsets)

    def reset_engine_offsets(self, facts: EngineFacts, offsets: Mapping[TopicPartition, int]) -> bool:
        """Somebody lets the stopped connector begin anew; `offsets` are those that the group has. Else the same."""
        return self.alter_engine_offsets(facts, dict.fromkeys(offsets))

    def removed(self, facts: EngineFacts) -> None:
        """The connector was deleted, its task has ended: clean up what nobody needs any more. Called on a new object,
        at most once; not at all when the worker dies meanwhile. What it raises is logged."""
