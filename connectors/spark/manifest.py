"""What a sink has decided last: how far it has read, and which files hold what it read last.

One small file, replaced as a whole. Once it names a batch, that batch is what it says, whatever happens next: its files
are moved into their tables and its letters are sent, by this run or by the one after a crash. What it does not name was
never read. So it is the only truth about a sink's progress; the checkpoint of Spark's query lives as long as a run.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from connectors.spark.entries import WrittenLetters, WrittenRows
from connectors.spark.spec import SinkFolders
from core_broker.service.clock import Clock, SystemClock
from streams.errors import EngineError
from streams.spark.files import Files

TopicPartition = tuple[str, int]
Positions = dict[str, dict[int, int]]
"""The next offset to read, by topic and partition."""
_RUN_SPAN: Final = 1_000_000_000


class Reload(msgspec.Struct, frozen=True, kw_only=True):
    """A range of a partition whose rows are replaced by what was read of it again."""

    topic: str
    partition: int
    start: int
    end: int
    tables: tuple[str, ...]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided last."""

    run: int
    """Which start of the sink decided it; an older one must not decide any more."""
    batch: int = -1
    """Which batch of that run it was; -1 before its first."""
    step: int = 0
    """How many decisions of that run there were: batches, and reloads between them."""
    positions: Positions = {}
    """How far everything was read, with this batch."""
    ids: dict[str, str] = {}
    """The ids of the topics that were read, empty where none is known: one that was made anew has another."""
    ends: Positions = {}
    """Those of the partitions that this batch has records of."""
    rows: tuple[WrittenRows, ...] = ()
    letters: tuple[WrittenLetters, ...] = ()
    reload: Reload | None = None
    """Whose rows go, before the new ones come."""
    is_settled: bool = False
    """Whether all of it is known to be done."""

    @property
    def number(self) -> int:
        """A number that grows with every decision of every run."""
        return self.run * _RUN_SPAN + self.step


class Replaced(EngineError):
    """Another run of the same sink has begun: this one must write nothing any more."""

    def __init__(self, connector: str) -> None:
        super().__init__("Replaced", f"Another run of sink {connector} has begun")


class ManifestStore:
    """Reads and replaces the manifest of one sink."""

    def __init__(self, files: Files, folders: SinkFolders, *, connector: str, clock: Clock | None = None) -> None:
        self._files = files
        self._path = folders.manifest
        self._connector = connector
        self._clock = clock or SystemClock()

    def read(self) -> Manifest | None:
        """What was decided last; None when nothing ever was."""
        if not self._files.exists(self._path):
            return None
        return msgspec.json.decode(self._files.read(self._path), type=Manifest)

    def write(self, manifest: Manifest) -> None:
        """Decide. Replaced when a later run has begun meanwhile."""
        found = self.read()
        if found is not None and found.run > manifest.run:
            raise Replaced(self._connector)
        self._files.write(self._path, msgspec.json.encode(manifest))

    def begin(self, positions: Mapping[TopicPartition, int], ids: Mapping[str, str] | None = None) -> Manifest:
        """Begin a run at these positions; earlier runs can decide nothing any more."""
        found = self.read()
        run = self._first_run() if found is None else found.run + 1
        manifest = Manifest(run=run, positions=nested(positions), ids=dict(ids or {}), is_settled=True)
        self.write(manifest)
        return manifest

    def _first_run(self) -> int:
        """A number that no run had before: tables outlive a manifest that somebody deletes, and know its batches."""
        return self._clock.now_ms() // 1000


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """What executors wrote of one batch."""

    rows: tuple[WrittenRows, ...]
    letters: tuple[WrittenLetters, ...]
    ends: dict[TopicPartition, int]

    def after(self, manifest: Manifest, batch: int, *, ids: Mapping[str, str]) -> Manifest:
        """The next manifest; `ids` of topics that were never read before."""
        return Manifest(
            ids={**manifest.ids, **ids},
            run=manifest.run,
            batch=batch,
            step=manifest.step + 1,
            positions=nested({**flat(manifest.positions), **self.ends}),
            ends=nested(self.ends),
            rows=self.rows,
            letters=self.letters,
        )

    def replacing(self, manifest: Manifest, reload: Reload) -> Manifest:
        """The next manifest, when a range was read again. Its bad records are dead letters already."""
        return replace(
            manifest, step=manifest.step + 1, ends={}, rows=self.rows, letters=(), reload=reload, is_settled=False
        )


def nested(places: Mapping[TopicPartition, int]) -> Positions:
    """Positions by topic, then by partition."""
    positions: Positions = {}
    for (topic, partition), offset in sorted(places.items()):
        positions.setdefault(topic, {})[partition] = offset
    return positions


def flat(positions: Positions) -> dict[TopicPartition, int]:
    """Positions by topic and partition at once."""
    return {(topic, number): offset for topic, parts in positions.items() for number, offset in parts.items()}


def settled(manifest: Manifest) -> Manifest:
    """The same, done."""
    return replace(manifest, rows=(), letters=(), reload=None, is_settled=True)
