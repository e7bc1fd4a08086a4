"""The leader epochs of a log and their start offsets, stored in `leader-epoch-checkpoint`.

A follower or consumer that was disconnected asks for the end of epoch N, to find the point up to which its own log
agrees with the leader's (KIP-101, KIP-320). The file can be rebuilt from the batches, each of which contains its epoch,
so it is not synced to disk.
"""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple

from core_broker.log.checkpoints import CorruptCheckpoint, read_lines, write_lines

FILE_NAME: Final = "leader-epoch-checkpoint"
UNDEFINED: Final = -1

_EPOCH: Final = itemgetter(0)
_START: Final = itemgetter(1)


class EpochStart(NamedTuple):
    """A leader epoch and its first offset."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """A leader epoch and the offset after its last one; (-1, -1) if unknown."""

    epoch: int
    end_offset: int


class LeaderEpochs:
    """The epochs of one partition, both numbers increasing."""

    __slots__ = ("_entries", "latest_epoch", "path", "saved_epoch")

    def __init__(self, path: Path, entries: Iterable[EpochStart] = ()) -> None:
        self.path = path
        self._entries = list(entries)
        self.latest_epoch = UNDEFINED
        self._note_latest()
        self.saved_epoch = self.latest_epoch
        """The newest epoch in the file; an epoch without records need not be there."""

    @classmethod
    def load(cls, directory: Path) -> "LeaderEpochs":
        """Read the checkpoint; raises CorruptCheckpoint if it is damaged."""
        path = directory / FILE_NAME
        entries = [_parse(line) for line in read_lines(path)]
        for before, after in pairwise(entries):
            if after.epoch <= before.epoch or after.start_offset < before.start_offset:
                raise CorruptCheckpoint(f"epoch {after} does not come after {before}")
        return cls(path, entries)

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        """All known epochs, oldest first."""
        return tuple(self._entries)

    def assign(self, epoch: int, start_offset: int, *, save: bool = True) -> None:
        """Note that `epoch` begins at `start_offset`; conflicting entries were never committed and are dropped."""
        if epoch < 0:
            return
        if epoch == self.latest_epoch and start_offset >= self._entries[-1].start_offset:
            if save and self.saved_epoch != epoch:
                self.save()
            return
        kept = [entry for entry in self._entries if entry.epoch < epoch and entry.start_offset < start_offset]
        kept.append(EpochStart(epoch, start_offset))
        self._replace(kept, save=save)

    def start_offset_of(self, epoch: int) -> int:
        """Where `epoch` begins, -1 if it is unknown."""
        slot = bisect_right(self._entries, epoch, key=_EPOCH)
        return self._entries[slot - 1].start_offset if slot and self._entries[slot - 1].epoch == epoch else UNDEFINED

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """The end of `epoch`, for OffsetForLeaderEpoch.

        For an epoch without records here, the largest one before it; (-1, -1) for one newer than all known.
        """
        if epoch == UNDEFINED or not self._entries or epoch > self.latest_epoch:
            return EpochEnd(UNDEFINED, UNDEFINED)
        if epoch == self.latest_epoch:
            return EpochEnd(epoch, log_end_offset)
        slot = bisect_right(self._entries, epoch, key=_EPOCH)
        end = self._entries[slot].start_offset
        return EpochEnd(self._entries[slot - 1].epoch if slot else epoch, end)

    def epoch_for_offset(self, offset: int) -> int:
        """The epoch of the record at `offset`, -1 if it is before all known epochs."""
        slot = bisect_right(self._entries, offset, key=_START)
        return self._entries[slot - 1].epoch if slot else UNDEFINED

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop the epochs that begin at or after `end_offset`."""
        if self._entries and self._entries[-1].start_offset >= end_offset:
            self._replace([entry for entry in self._entries if entry.start_offset < end_offset])

    def truncate_from_start(self, start_offset: int) -> None:
        """Drop everything before `start_offset`; the epoch that contains it now begins there."""
        if self._entries and self._entries[0].start_offset < start_offset:
            slot = bisect_right(self._entries, start_offset, key=_START)
            self._replace([EpochStart(self._entries[slot - 1].epoch, start_offset), *self._entries[slot:]])

    def clear(self) -> None:
        """Drop all epochs."""
        self._replace([])

    def save(self) -> None:
        """Write the checkpoint."""
        write_lines(self.path, [f"{epoch} {start}" for epoch, start in self._entries], sync=False)
        self.saved_epoch = self.latest_epoch

    def _replace(self, entries: list[EpochStart], *, save: bool = True) -> None:
        self._entries = entries
        self._note_latest()
        if save:
            self.save()

    def _note_latest(self) -> None:
        self.latest_epoch = self._entries[-1].epoch if self._entries else UNDEFINED


def _parse(line: str) -> EpochStart:
    words = line.split(" ")
    if len(words) != 2 or not all(word.isdecimal() for word in words):
        raise CorruptCheckpoint(f"line {line!r} is not an epoch and an offset")
    return EpochStart(int(words[0]), int(words[1]))
