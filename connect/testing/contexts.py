"""Workers in memory: what a connector or a task asks of its worker, without Kafka."""

import json
import threading
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from connect.api.data import Value
from connect.api.record import SinkRecord, SourceRecord
from connect.api.sink import Place
from connect.api.source import SourceOffset, SourcePartition

LONGEST_WAIT_SECONDS = 0.02
"""Waits are noted in full, and slept no longer than this."""


class Reported(NamedTuple):
    """What a source could not make a record of."""

    data: bytes | str
    error: Exception
    partition: SourcePartition
    offset: SourceOffset


class _Waiting:
    def __init__(self) -> None:
        self.waited_seconds = 0.0
        self._stopping = threading.Event()

    def wait(self, seconds: float) -> bool:
        """Note the wait, and sleep a little; True after `stop`."""
        self.waited_seconds += seconds
        return self._stopping.wait(min(seconds, LONGEST_WAIT_SECONDS))

    def stop(self) -> None:
        """Tell the task to stop, as a worker does: every wait ends at once."""
        self._stopping.set()


class FakeConnectorContext(_Waiting):
    """A worker for a connector; keeps what it was told."""

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
    """Notes where a source ends its transactions."""

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
        # As text: offsets are kept as JSON by real workers, so that what JSON cannot hold must fail here, too.
        self._offsets = {_text(partition): _text(offset) for partition, offset in offsets}

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """How far that part was read before."""
        text = self._offsets.get(_text(partition))
        found: dict[str, Value] | None = None if text is None else json.loads(text)
        return found

    def report(self, data: bytes | str, error: Exception, *, partition: SourcePartition, offset: SourceOffset) -> None:
        """Keep what could not become a record."""
        self.reported.append(Reported(data, error, partition, offset))


class FakeSinkContext(_Waiting):
    """A worker for a sink's task, with the partitions it reads."""

    def __init__(
        self,
        assignment: Collection[Place] = (),
        *,
        connector: str = "suite",
        task: int = 0,
        tolerates_errors: bool = True,
    ) -> None:
        super().__init__()
        self.connector = connector
        self.task = task
        self.assignment = frozenset(assignment)
        self.rewound: dict[Place, int] = {}
        self.paused: set[Place] = set()
        self.retries_after_ms: list[int] = []
        self.commit_requests = 0
        self.reported: list[tuple[SinkRecord, Exception]] = []
        self._tolerates_errors = tolerates_errors

    def rewind(self, offsets: Mapping[Place, int]) -> None:
        """Keep where to go on."""
        self.rewound.update(offsets)

    def pause(self, places: Collection[Place]) -> None:
        """Note them."""
        self.paused.update(places)

    def resume(self, places: Collection[Place]) -> None:
        """Forget them."""
        self.paused.difference_update(places)

    def retry_after(self, milliseconds: int) -> None:
        """Keep it."""
        self.retries_after_ms.append(milliseconds)

    def request_commit(self) -> None:
        """Count it."""
        self.commit_requests += 1

    def report(self, record: SinkRecord, error: Exception) -> None:
        """Keep the dead letter; raises it with `tolerates_errors=False`, as errors.tolerance=none does."""
        if not self._tolerates_errors:
            raise error
        self.reported.append((record, error))


def _text(offsets: Mapping[str, Value]) -> str:
    return json.dumps(dict(offsets), sort_keys=True)
