"""What a power failure leaves on a disk: everything that was synced, and some of the rest."""

import errno
import os
import random
from pathlib import Path

from core_broker.log.log_directory import LogDirectory
from core_broker.log.log_file import LogFile
from core_broker.log.partition_log import PartitionLog
from core_broker.log.segment import Segment
from core_broker.log.store import METADATA_TOPIC
from core_broker.protocol.records import HEADER, HEADER_BYTES, LENGTH_BYTES
from tests.simulation.determinism import replace
from tests.simulation.virtual_loop import LIFE, Life


class OpenFiles:
    """The logs and locks that each process has open, so that they can be taken from it when it crashes."""

    def __init__(self) -> None:
        self._logs: dict[Life, dict[Path, PartitionLog]] = {}
        self._locks: dict[Life, list[LogDirectory]] = {}

    def watch(self) -> None:
        """Note every log and directory that is opened from now on."""
        open_log, lock = PartitionLog.open.__func__, LogDirectory.__init__  # type: ignore[attr-defined]

        def open_and_note(cls: type[PartitionLog], /, directory: Path, **options: object) -> PartitionLog:
            opened: PartitionLog = open_log(cls, directory, **options)
            if (life := LIFE.get()) is not None:
                self._logs.setdefault(life, {})[directory] = opened
            return opened

        write = Segment.append

        def write_or_fail(segment: Segment, file: LogFile, view: memoryview, *arguments: int) -> None:
            life = LIFE.get()
            if life is not None and life.failing_writes:
                life.failing_writes -= 1
                life.has_failed_disk = True
                os.pwrite(file.fd, view[: len(view) // 2], segment.size)
                raise OSError(errno.EIO, "simulated failure of the disk")
            write(segment, file, view, *arguments)

        def lock_and_note(directory: LogDirectory, path: Path, *, key: str = "log.dirs") -> None:
            lock(directory, path, key=key)
            if (life := LIFE.get()) is not None:
                self._locks.setdefault(life, []).append(directory)

        replace(PartitionLog, "open", classmethod(open_and_note))
        replace(LogDirectory, "__init__", lock_and_note)
        replace(Segment, "append", write_or_fail)

    def release(self, life: Life) -> None:
        """Unlock the directories of a process that has ended."""
        for directory in self._locks.pop(life, []):
            directory.close()

    def lose_unsynced(self, life: Life, rng: random.Random, *, is_metadata_only: bool) -> int:
        """Cut what a crashed machine had not synced, at any byte; returns how many bytes are gone."""
        lost = 0
        for directory, opened in self._logs.pop(life, {}).items():
            if directory.is_dir() and (opened.topic == METADATA_TOPIC or not is_metadata_only):
                lost += _lose_tail(directory, opened.recovery_point, rng)
        return lost


def _lose_tail(directory: Path, recovery_point: int, rng: random.Random) -> int:
    files = sorted(directory.glob("*.log"))
    synced = [_synced_bytes(file, recovery_point) for file in files]
    tails = [file.stat().st_size - size for file, size in zip(files, synced, strict=True)]
    total = sum(tails)
    # Often nothing or everything: what lies in between is rarer than what a uniform choice would give.
    left = rng.choice([0, 0, total, rng.randint(0, total)]) if total else 0
    lost = total - left
    for file, size, tail in zip(files, synced, tails, strict=True):
        kept = min(left, tail)
        left -= kept
        os.truncate(file, size + kept)
    return lost


def _synced_bytes(file: Path, recovery_point: int) -> int:
    """Where the first batch begins that is not synced."""
    data = file.read_bytes()
    at = 0
    while at + HEADER_BYTES <= len(data):
        fields = HEADER.unpack_from(data, at)
        size = fields[1] + LENGTH_BYTES
        if fields[0] >= recovery_point or size < HEADER_BYTES or at + size > len(data):
            break
        at += size
    return at
