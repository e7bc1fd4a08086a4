"""The last decision of a query: how far it has read, and which staged files hold its last batch.

One small file, replaced as a whole. Once it names a batch, that batch is what it says, whatever happens next: its rows
are moved into their tables and its records are sent, by this run or by the next one after a crash. A batch that it does
not name was never read. So the manifest is the only truth about a query's progress; Spark's checkpoint lives only as
long as a run.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from core_broker.client.consumer import TopicPartition
from core_broker.service.clock import Clock, SystemClock
from streams.errors import EngineError
from streams.spark.commits.entries import WrittenRecords, WrittenRows
from streams.spark.files import Files

Positions = dict[str, dict[int, int]]
"""The next offset to read, by topic and partition."""
_RUN_SPAN: Final = 1_000_000_000


class Reload(msgspec.Struct, frozen=True, kw_only=True):
    """A range of a partition that is read again, and whose rows are replaced."""

    topic: str
    partition: int
    start: int
    end: int
    tables: tuple[str, ...]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The last decision."""

    run: int
    """Which start of the query decided it; an older run must not decide any more."""
    batch: int = -1
    """Which batch of that run it was; -1 before the first."""
    step: int = 0
    """How many decisions that run has made: batches, and reloads between them."""
    positions: Positions = {}
    """How far every partition was read, including this batch."""
    ids: dict[str, str] = {}
    """The ids of the topics that were read, empty where unknown; a topic that was recreated has another id."""
    ends: Positions = {}
    """The positions of the partitions that this batch has records of."""
    rows: tuple[WrittenRows, ...] = ()
    records: tuple[WrittenRecords, ...] = msgspec.field(default=(), name="letters")
    reload: Reload | None = None
    """The range whose rows are removed before the new ones are added."""
    is_settled: bool = False
    """Whether everything in it is known to be done."""

    @property
    def number(self) -> int:
        """A number that grows with every decision of every run."""
        return self.run * _RUN_SPAN + self.step

    def settled(self) -> "Manifest":
        """The same manifest after all of it was done."""
        return replace(self, rows=(), records=(), reload=None, is_settled=True)


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What executors wrote for one batch."""

    rows: tuple[WrittenRows, ...]
    records: tuple[WrittenRecords, ...]
    ends: dict[TopicPartition, int]

    def next_batch(self, manifest: Manifest, batch: int, *, ids: Mapping[str, str]) -> Manifest:
        """The manifest of a new batch; `ids` are those of topics that were never read before."""
        return Manifest(
            ids={**manifest.ids, **ids},
            run=manifest.run,
            batch=batch,
            step=manifest.step + 1,
            positions=by_topic({**flatten(manifest.positions), **self.ends}),
            ends=by_topic(self.ends),
            rows=self.rows,
            records=self.records,
        )

    def next_reload(self, manifest: Manifest, reload: Reload) -> Manifest:
        """The manifest of a reload. Its records were sent when the range was read for the first time."""
        return replace(
            manifest, step=manifest.step + 1, ends={}, rows=self.rows, records=(), reload=reload, is_settled=False
        )


class Replaced(EngineError):
    """Another run of the same query has begun: this one must not write any more."""

    def __init__(self, query: str) -> None:
        super().__init__("Replaced", f"Another run of {query} has begun")


class ManifestStore:
    """Reads and replaces the manifest of one query."""

    def __init__(self, files: Files, path: str, *, query: str, clock: Clock | None = None) -> None:
        self._files = files
        self._path = path
        self._query = query
        self._clock = clock or SystemClock()

    def read(self) -> Manifest | None:
        """The last decision; None before the first."""
        if not self._files.exists(self._path):
            return None
        return msgspec.json.decode(self._files.read(self._path), type=Manifest)

    def write(self, manifest: Manifest) -> None:
        """Decide. Replaced when a later run has begun in the meantime."""
        found = self.read()
        if found is not None and found.run > manifest.run:
            raise Replaced(self._query)
        self._files.write(self._path, msgspec.json.encode(manifest))

    def begin(self, positions: Mapping[TopicPartition, int], ids: Mapping[str, str] | None = None) -> Manifest:
        """Begin a run at these positions; earlier runs can decide nothing any more."""
        found = self.read()
        # Tables remember the numbers of batches longer than a deleted manifest does, so numbers must never repeat.
        run = self._clock.now_ms() // 1000 if found is None else found.run + 1
        manifest = Manifest(run=run, positions=by_topic(positions), ids=dict(ids or {}), is_settled=True)
        self.write(manifest)
        return manifest


def by_topic(positions: Mapping[TopicPartition, int]) -> Positions:
    """Positions by topic, then by partition."""
    nested: Positions = {}
    for (topic, partition), offset in sorted(positions.items()):
        nested.setdefault(topic, {})[partition] = offset
    return nested


def flatten(positions: Positions) -> dict[TopicPartition, int]:
    """Positions by topic and partition together."""
    return {(topic, number): offset for topic, parts in positions.items() for number, offset in parts.items()}
