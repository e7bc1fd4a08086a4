"""What is kept of a query between two starts: Spark's checkpoint, and where the query began.

Spark writes down where a batch ends before it runs, but not where the first one began, so that is kept beside it.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from core_broker.client.consumer import TopicPartition
from streams.errors import EngineError
from streams.spark.files import Files
from streams.spark.queries.inputs import VIEW
from streams.spark.queries.notes import range_of
from streams.spark.topics.offsets import from_checkpoint

Places = dict[TopicPartition, int]
_OFFSETS: Final = "offsets"
_VERSIONS: Final = ("v1", "v2")


class StateLost(EngineError):
    """What the query has kept does not fit what it has written: it cannot go on without losing or repeating records."""

    def __init__(self, message: str) -> None:
        super().__init__("StateLost", message)


class Span(msgspec.Struct, frozen=True):
    """What a batch has read of an input."""

    start: Places
    end: Places

    @property
    def changed(self) -> list[TopicPartition]:
        """The partitions with new records."""
        return sorted(place for place, end in self.end.items() if end > self.start.get(place, 0))


class Checkpoint:
    """The folder of one generation of a query."""

    def __init__(self, files: Files, home: str) -> None:
        self._files = files
        self._home = home
        self._start: dict[str, dict[str, Any]] = {}
        self._batches: dict[int, dict[str, Places]] = {}

    @property
    def location(self) -> str:
        """For Spark."""
        return f"{self._home}/checkpoint"

    @property
    def staging(self) -> str:
        """For files of the batch that is being written."""
        return f"{self._home}/staged"

    def start(self) -> dict[str, dict[str, Any]] | None:
        """Where each input began; None if the query has never run."""
        if not self._files.exists(f"{self._home}/start.json"):
            return None
        self._start = json.loads(self._files.read(f"{self._home}/start.json"))
        return self._start

    def begin(self, start: Mapping[str, dict[str, Any]]) -> None:
        """Keep where the inputs begin."""
        self._start = dict(start)
        self._files.write(f"{self._home}/start.json", json.dumps(start).encode())

    def last_batch(self) -> int:
        """The last batch that Spark has planned; -1 before the first."""
        names = (entry.name for entry in self._files.list(f"{self.location}/{_OFFSETS}"))
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def spans(self, batch: int) -> dict[str, Span]:
        """What a batch reads of each input."""
        begin = self._ends(batch - 1) if batch > 0 else {}
        first = {view: from_checkpoint(document) for view, document in self._start.items()}
        ends = self._ends(batch)
        self._batches = {number: self._batches[number] for number in (batch - 1, batch) if number in self._batches}
        return {view: Span(begin.get(view) or first.get(view, {}), end) for view, end in ends.items()}

    def sweep(self, folder: str, kept: Mapping[int, int]) -> None:
        """Delete notes about ranges that end before these offsets, by partition: no batch needs them any more."""
        for entry in self._files.list(folder):
            found = range_of(entry.name)
            if found is not None and found[1] < kept.get(found[0], 0):
                self._files.delete(entry.path)

    def clear_staging(self) -> None:
        """Delete what an interrupted batch has left."""
        self._files.delete(self.staging)

    def delete(self, path: str) -> None:
        """Delete a file that was sent."""
        self._files.delete(path)

    def forget(self) -> None:
        """Delete everything."""
        self._files.delete(self._home)

    def _ends(self, batch: int) -> dict[str, Places]:
        """Where a batch ends in each input, by Spark's log of offsets."""
        if batch not in self._batches:
            lines = self._files.read(f"{self.location}/{_OFFSETS}/{batch}").decode().splitlines()
            if not lines or lines[0].strip() not in _VERSIONS:
                raise StateLost(
                    f"The checkpoint in {self.location} was written by a version of Spark that is not known"
                )
            self._batches[batch] = _by_view(lines[2:])
        return self._batches[batch]


def _by_view(lines: list[str]) -> dict[str, Places]:
    found: dict[str, Places] = {}
    for line in lines:
        if not line.startswith("{"):
            continue  # a source that has no offset yet
        document = json.loads(line)
        found.setdefault(document[VIEW], {}).update(from_checkpoint(document))
    return found
