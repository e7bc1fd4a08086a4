"""Replaces files of a table so that, if the process is killed at any moment, either the old or the new ones remain.

New files are written where readers do not look. Writing the journal is the commit: after a kill, the next process
finishes the exchange. Between the first and the last rename, readers briefly see fewer files than there are.
"""

import uuid
from collections.abc import Sequence

import msgspec

from streams.spark.files import Files
from streams.spark.tables.layout import hidden_path


class Exchange(msgspec.Struct, frozen=True):
    """The content of a journal: files to remove, and files to move from a hidden path to a visible one."""

    removed: list[str]
    added: list[tuple[str, str]]


class Journal:
    """The exchanges of one table; one thread at a time."""

    def __init__(self, files: Files, location: str) -> None:
        self._files = files
        self._location = location

    def draft(self) -> str:
        """A hidden folder for new files."""
        return hidden_path(self._location, f"draft-{uuid.uuid4().hex}")

    def decide(self, draft: str, exchange: Exchange) -> str:
        """Write the journal, which commits the exchange."""
        path = f"{draft}.json"
        self._files.write(path, msgspec.json.encode(exchange))
        return path

    def finish(self, path: str) -> None:
        """Carry out an exchange, or the rest of it."""
        exchange = msgspec.json.decode(self._files.read(path), type=Exchange)
        replaced = {target for _, target in exchange.added}
        for removed in exchange.removed:
            if removed not in replaced:
                self._files.delete(removed)
        for source, target in exchange.added:
            if not self._files.exists(source):
                continue
            if self._files.local(source) is None:
                # Not every file system's rename replaces a file; the journal covers the moment in between.
                self._files.delete(target)
            self._files.move(source, target)
        self._files.delete(path.removesuffix(".json"))
        self._files.delete(path)

    def recover(self) -> int:
        """Finish committed exchanges and delete the drafts of others; returns how many were finished."""
        entries = self._files.list(hidden_path(self._location))
        decided = [entry.path for entry in entries if entry.name.endswith(".json") and not entry.name.startswith(".")]
        for path in decided:
            self.finish(path)
        for entry in self._files.list(hidden_path(self._location)):
            self._files.delete(entry.path)
        return len(decided)

    def exchange(self, draft: str, *, removed: Sequence[str], added: Sequence[tuple[str, str]]) -> None:
        """Commit an exchange and carry it out."""
        self.finish(self.decide(draft, Exchange(list(removed), list(added))))
