"""Which records of a partition are in finished files; written before files get their names, so that each is in one.

To finish files, the ledger is made durable with the renames to do, then the renames are done; after a crash, the next
task does those that are left. Records that are delivered again because their offsets were not committed are recognised
by their offsets and skipped.
"""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from connect.api.errors import ConnectError
from connect.api.record import SinkRecord
from connectors.file.spool import sync_folder

COMMITS_KEPT: Final = 64
COMMITS_TRUSTED: Final = 3
"""Records of this many commits may be delivered again after a crash. Older ones are only delivered again on purpose,
and then it is checked whether their files still exist."""

log = logging.getLogger(__name__)


class LedgerChanged(ConnectError):
    """Another task has written the same partition."""


class Commit(msgspec.Struct, frozen=True, array_like=True):
    """Offsets whose records were finished between two offset commits, and the first record among them."""

    start: int
    end: int
    first: int
    timestamp_ms: int | None
    file: str
    """One of the files."""


class Rename(msgspec.Struct, frozen=True, array_like=True):
    """A file that gets its final name."""

    temporary: str
    final: str


class LedgerPage(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a ledger."""

    version: int = 0
    commits: tuple[Commit, ...] = ()
    through: dict[str, int] = {}
    """Folders that are ahead of the last commit, and up to which offset (exclusive)."""
    renames: tuple[Rename, ...] = ()

    @property
    def next(self) -> int:
        """Every record before this offset is in a finished file, or was skipped on purpose."""
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

    def commit(self, first: SinkRecord, *, end: int, through: dict[str, int], renames: Sequence[Rename]) -> None:
        """Record that files are finished, and give them their names.

        All records before `end` are in finished files now, and those of some folders `through` a later offset; `first`
        is the first record since the last call.
        """
        known = {**self.page.through, **through}
        page = LedgerPage(
            version=self.page.version + 1,
            commits=self._commits(first, end, renames[0].final),
            through={folder: offset for folder, offset in known.items() if offset > end},
            renames=tuple(renames),
        )
        if _read(self.path).version != self.page.version:
            raise LedgerChanged(f"{self.path} was changed by another task that writes the same partition")
        _write(self.path, page)
        self.page, self._is_open = page, True
        self.finish()

    def kafka_commits(self) -> None:
        """Offsets are about to be committed: later records belong to another commit."""
        self._is_open = False

    def _commits(self, first: SinkRecord, end: int, file: str) -> tuple[Commit, ...]:
        commits = self.page.commits
        if self._is_open and commits:
            return (*commits[:-1], msgspec.structs.replace(commits[-1], end=end))
        start = commits[-1].end if commits else first.original_offset
        added = Commit(start, end, first.original_offset, first.timestamp_ms, file)
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
        """Check with the first record whether the ledger is still about this topic.

        Kafka delivers records again from an offset that was committed recently. Otherwise the topic was recreated, or
        an operator has reset offsets: then writing twice is right, and skipping would lose records.
        """
        self._is_checked = True
        if record.original_offset >= self.page.next:
            return
        extra = {"ledger": str(self.path), "offset": record.original_offset, "next": self.page.next}
        if self._is_known(record):
            log.info("skipping records that are in finished files already", extra=extra)
        else:
            log.warning("writing records again: they may not be those in finished files", extra=extra)
            self.page = LedgerPage(version=self.page.version)

    def _is_known(self, record: SinkRecord) -> bool:
        offset, commits = record.original_offset, self.page.commits
        number = next((at for at, commit in enumerate(commits) if commit.start <= offset < commit.end), None)
        if number is None or (commits[number].first == offset and commits[number].timestamp_ms != record.timestamp_ms):
            return False
        is_recent = number >= len(commits) - COMMITS_TRUSTED
        return is_recent or (self._root / commits[number].file).exists()


def _read(path: Path) -> LedgerPage:
    try:
        return msgspec.json.decode(path.read_bytes(), type=LedgerPage)
    except FileNotFoundError:
        return LedgerPage()
    except msgspec.DecodeError as error:
        text = f"cannot read {path}, without which records that are delivered again would be written twice: {error}"
        raise ConnectError(text) from error


def _write(path: Path, page: LedgerPage) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    with temporary.open("wb") as stream:
        stream.write(msgspec.json.encode(page))
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)
    sync_folder(path.parent)
