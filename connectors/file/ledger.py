"""What of a partition is in finished files; written before files get their names, so that each record is in one.

To finish files, the ledger with the renames to do is made durable first, then the renames are done; a task that comes
after a crash does those that are left. Records that come again because their offsets were not committed are known by
their offsets and left out.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from connect.api.errors import ConnectError
from connect.api.record import SinkRecord
from connectors.file.spool import sync_folder

COMMITS_KEPT: Final = 64


class LedgerChanged(ConnectError):
    """Another task has written the same partition."""


class Commit(msgspec.Struct, frozen=True, array_like=True):
    """Offsets whose records were finished between two commits of Kafka's, and the first record among them."""

    start: int
    end: int
    first: int
    timestamp_ms: int | None


class Rename(msgspec.Struct, frozen=True, array_like=True):
    """A file that gets its name."""

    temporary: str
    final: str


class LedgerPage(msgspec.Struct, frozen=True, kw_only=True):
    """All that is kept."""

    version: int = 0
    commits: tuple[Commit, ...] = ()
    through: dict[str, int] = {}
    """Folders that are further than the last commit, and up to which offset (not included)."""
    renames: tuple[Rename, ...] = ()

    @property
    def next(self) -> int:
        """Every record before this offset is in a finished file, or was left out on purpose."""
        return self.commits[-1].end if self.commits else 0


class Ledger:
    """The ledger of one partition."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        self._root = root
        self.page = _read(path)
        self._is_checked = False
        self._is_open = False

    def knows(self, record: SinkRecord, folder: str) -> bool:
        """Whether a record is in a finished file."""
        offset = record.original_offset
        if not self._is_checked:
            self._check(record)
        return offset < self.page.next or (bool(self.page.through) and offset < self.page.through.get(folder, 0))

    def commit(self, first: SinkRecord, *, end: int, through: dict[str, int], renames: Iterable[Rename]) -> None:
        """Files are finished: make it known, and give them their names.

        All records before `end` are in finished files now, and those of some folders `through` a later offset; `first`
        is the first record since the last time.
        """
        known = {**self.page.through, **through}
        page = LedgerPage(
            version=self.page.version + 1,
            commits=self._commits(first, end),
            through={folder: offset for folder, offset in known.items() if offset > end},
            renames=tuple(renames),
        )
        if _read(self.path).version != self.page.version:
            raise LedgerChanged(f"{self.path} was changed by another task that writes the same partition")
        _write(self.path, page)
        self.page, self._is_open = page, True
        self.finish()

    def kafka_commits(self) -> None:
        """Offsets are about to be committed: what comes after this is another commit."""
        self._is_open = False

    def _commits(self, first: SinkRecord, end: int) -> tuple[Commit, ...]:
        commits = self.page.commits
        if self._is_open and commits:
            return (*commits[:-1], msgspec.structs.replace(commits[-1], end=end))
        start = commits[-1].end if commits else first.original_offset
        added = Commit(start, end, first.original_offset, first.timestamp_ms)
        return (*commits, added)[-COMMITS_KEPT:]

    def finish(self) -> None:
        """Do the renames that are left."""
        for rename in self.page.renames:
            temporary, final = self._root / rename.temporary, self._root / rename.final
            if temporary.exists():
                final.parent.mkdir(parents=True, exist_ok=True)
                temporary.replace(final)
                sync_folder(final.parent)

    def _check(self, record: SinkRecord) -> None:
        """See with the first record whether this is still the topic that the ledger is about.

        Kafka gives records again from an offset that was committed not long ago. Anything else is a topic that was made
        anew, or somebody who wants all records again: then writing twice is right, leaving out would be loss.
        """
        self._is_checked = True
        offset, page = record.original_offset, self.page
        if offset >= page.next:
            return
        commit = next((item for item in page.commits if item.start <= offset < item.end), None)
        if commit is None or (commit.first == offset and commit.timestamp_ms != record.timestamp_ms):
            self.page = LedgerPage(version=page.version)


def _read(path: Path) -> LedgerPage:
    try:
        return msgspec.json.decode(path.read_bytes(), type=LedgerPage)
    except FileNotFoundError:
        return LedgerPage()
    except msgspec.DecodeError as error:
        raise ConnectError(
            f"{path} cannot be read; without it records that come again are written twice: {error}"
        ) from error


def _write(path: Path, page: LedgerPage) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    with temporary.open("wb") as stream:
        stream.write(msgspec.json.encode(page))
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)
    sync_folder(path.parent)
