"""Exchange of some files of a table for others, so that a kill at any moment ends in the old ones or the new ones.

New files are made where readers do not look. Then the journal is written, and from then on it is decided: whoever
comes next carries it out. Between the first and the last rename readers see less than there is, for a moment.
"""

import uuid
from collections.abc import Sequence

import msgspec

from streams.spark.files import Files
from streams.spark.tables.layout import hidden


class Exchange(msgspec.Struct, frozen=True):
    """What a journal says: files that go, and files that come from a hidden place to a visible one."""

    removed: list[str]
    added: list[tuple[str, str]]


class Journal:
    """The exchanges of one table; one thread at a time."""

    def __init__(self, files: Files, location: str) -> None:
        self._files = files
        self._location = location

    def draft(self) -> str:
        """A hidden folder for new files."""
        return hidden(self._location, f"draft-{uuid.uuid4().hex}")

    def decide(self, draft: str, exchange: Exchange) -> str:
        """Write down what will be done; from now on it will be."""
        path = f"{draft}.json"
        self._files.write(path, msgspec.json.encode(exchange))
        return path

    def finish(self, path: str) -> None:
        """Carry out an exchange, or what is left of it."""
        exchange = msgspec.json.decode(self._files.read(path), type=Exchange)
        replaced = {target for _, target in exchange.added}
        for removed in exchange.removed:
            if removed not in replaced:
                self._files.delete(removed)
        for source, target in exchange.added:
            self._show(source, target)
        self._files.delete(path.removesuffix(".json"))
        self._files.delete(path)

    def recover(self) -> int:
        """Finish what was decided, and clear away drafts that were not; how many exchanges that were."""
        entries = self._files.list(hidden(self._location))
        decided = [entry.path for entry in entries if entry.name.endswith(".json") and not entry.name.startswith(".")]
        for path in decided:
            self.finish(path)
        for entry in self._files.list(hidden(self._location)):
            self._files.delete(entry.path)
        return len(decided)

    def exchange(self, draft: str, *, removed: Sequence[str], added: Sequence[tuple[str, str]]) -> None:
        """Decide and carry out."""
        self.finish(self.decide(draft, Exchange(list(removed), list(added))))

    def _show(self, source: str, target: str) -> None:
        if not self._files.exists(source):
            return
        if self._files.local(source) is None:
            # Not every file system's rename replaces; the journal makes up for the moment in between.
            self._files.delete(target)
        self._files.move(source, target)
