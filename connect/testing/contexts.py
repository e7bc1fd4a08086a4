"""Fake workers in memory for connectors and tasks, without Kafka."""

import json
import threading
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from connect.api.data import Value
from connect.api.engine import TopicChoice
from connect.api.record import SinkRecord, SourceRecord
from connect.api.sink import TopicPartition
from connect.api.source import SourceOffset, SourcePartition

LONGEST_WAIT_SECONDS = 0.02
"""Waits are recorded in full, but last no longer than this."""


class Reported(NamedTuple):
    """Data that a source could not turn into a record."""

    data: bytes | str
    error: Exception
    partition: SourcePartition
    offset: SourceOffset


class _Waiting:
    def __init__(self) -> None:
        self.waited_seconds = 0.0
        self._stopping = threading.Event()

    def wait(self, seconds: float) -> bool:
        """Record the wait, and sleep a little; True after `stop`."""
        self.waited_seconds += seconds
        return self._stopping.wait(min(seconds, LONGEST_WAIT_SECONDS))

    def stop(self) -> None:
        """Ask the task to stop, as a worker does: every wait ends at once."""
        self._stopping.set()


class FakeConnectorContext(_Waiting):
    """A worker for a connector; records its calls."""

    def __init__(self, name: str = "suite") -> None:
        super().__init__()
        self.name = name
        self.reconfigurations = 0
        self.errors: list[Exception] = []

    def request_reconfiguration(self) -> None:
        """Count it."""
        self.reconfigurations += 1

    def fail(self, error: Exception) -> None:
        """Keep it."""
        self.errors.append(error)


class FakeTransaction:
    """Records where a source ends its transactions."""

    def __init__(self) -> None:
        self.commits: list[SourceRecord | None] = []
        self.aborts: list[SourceRecord | None] = []

    def commit(self, after: SourceRecord | None = None) -> None:
        """Keep it."""
        self.commits.append(after)

    def abort(self, after: SourceRecord | None = None) -> None:
        """Keep it."""
        self.aborts.append(after)


class FakeSourceContext(_Waiting):
    """A worker for a source's task, with the offsets that were committed before it started."""

    def __init__(
        self,
        offsets: Iterable[tuple[SourcePartition, SourceOffset]] = (),
        *,
        connector: str = "suite",
        task: int = 0,
        transaction: FakeTransaction | None = None,
    ) -> None:
        super().__init__()
        self.connector = connector
        self.task = task
        self.transaction = transaction
        self.reported: list[Reported] = []
        # As text: real workers store offsets as JSON, so values that JSON cannot express must fail here, too.
        self._offsets = {_text(partition): _text(offset) for partition, offset in offsets}

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """The committed offset of a source partition."""
        text = self._offsets.get(_text(partition))
        found: dict[str, Value] | None = None if text is None else json.loads(text)
        return found

    def report(self, data: bytes | str, error: Exception, *, partition: SourcePartition, offset: SourceOffset) -> None:
        """Record the data that could not become a record."""
        self.reported.append(Reported(data, error, partition, offset))


class FakeSinkContext(_Waiting):
    """A worker for a sink's task, with the partitions it reads."""

    def __init__(
        self,
        assignment: Collection[TopicPartition] = (),
        *,
        connector: str = "suite",
        task: int = 0,
        tolerates_errors: bool = True,
    ) -> None:
        super().__init__()
        self.connector = connector
        self.task = task
        self.assignment = frozenset(assignment)
        self.rewound: dict[TopicPartition, int] = {}
        self.paused: set[TopicPartition] = set()
        self.retries_after_ms: list[int] = []
        self.commit_requests = 0
        self.reported: list[tuple[SinkRecord, Exception]] = []
        self._tolerates_errors = tolerates_errors

    def rewind(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Record where to continue."""
        self.rewound.update(offsets)

    def pause(self, places: Collection[TopicPartition]) -> None:
        """Note them."""
        self.paused.update(places)

    def resume(self, places: Collection[TopicPartition]) -> None:
        """Forget them."""
        self.paused.difference_update(places)

    def retry_after(self, milliseconds: int) -> None:
        """Keep it."""
        self.retries_after_ms.append(milliseconds)

    def request_commit(self) -> None:
        """Count it."""
        self.commit_requests += 1

    def report(self, record: SinkRecord, error: Exception) -> None:
        """Record the dead letter; with `tolerates_errors=False` raise the error, as errors.tolerance=none does."""
        if not self._tolerates_errors:
            raise error
        self.reported.append((record, error))


class FakeEngineContext(_Waiting):
    """A worker for the task of a sink whose records another engine moves."""

    def __init__(
        self,
        *,
        steps: str = "",
        topics: TopicChoice | None = None,
        clients: Mapping[str, str] | None = None,
        engine_properties: Mapping[str, str] | None = None,
        dead_letter_topic: str | None = None,
        connector: str = "suite",
    ) -> None:
        """`clients` are the properties of all Kafka clients; `steps` is made by
        `connect.remote.pipeline.steps_text`."""
        super().__init__()
        self.connector = connector
        self.task = 0
        self.run = (1, 0)
        self.group = f"connect-{connector}"
        self.steps = steps
        self.topics = topics or TopicChoice(names=(connector,), redriven=f"connect-redrive-{connector}")
        self.consumer_properties = self.producer_properties = self.admin_properties = dict(clients or {})
        self.engine_properties = dict(engine_properties or {})
        self.dead_letter_topic = dead_letter_topic
        self.is_cancelled = False
        self.counted: dict[str, float] = {}
        self.used_topics: set[str] = set()
        self.ensured = 0

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping.is_set()

    def cancel(self) -> None:
        """Cancel the task, because it runs elsewhere."""
        self.is_cancelled = True
        self.stop()

    def ensure_dead_letter_topic(self) -> None:
        """Count it."""
        self.ensured += 1

    def count(self, changes: Mapping[str, float]) -> None:
        """Add them up; gauges, too."""
        for name, change in changes.items():
            self.counted[name] = self.counted.get(name, 0) + change

    def used(self, topics: Iterable[str]) -> None:
        """Keep them."""
        self.used_topics.update(topics)


def _text(offsets: Mapping[str, Value]) -> str:
    return json.dumps(dict(offsets), sort_keys=True)
