"""Translates offsets of the source to offsets of the target: never beyond what a group has read."""

from bisect import bisect_left, bisect_right
from typing import Final

from connectors.mirror.formats import OffsetSync
from core_broker.client.consumer import TopicPartition

_MOST_SYNCS: Final = 256
"""Most syncs of a partition; beyond this, old ones are thinned out."""


class _Syncs:
    """The syncs of one partition in rising order, and those of records that are written a second time."""

    __slots__ = ("again", "known")

    def __init__(self) -> None:
        self.known: list[tuple[int, int]] = []
        self.again: list[tuple[int, int]] = []


class Translation:
    """Remembers which offset of the source is which in the target.

    Copies are in the order of the originals, so whatever follows a record follows its copy. A group between two known
    records is put right after the copy of the first one: it reads some records again, and misses none.

    After a crash, records are written a second time. Until that is done, only the first copies are complete.
    """

    def __init__(self) -> None:
        self._syncs: dict[TopicPartition, _Syncs] = {}

    def add(self, sync: OffsetSync) -> None:
        """Add an offset sync."""
        syncs = self._syncs.setdefault(sync.partition, _Syncs())
        pair = sync.upstream, sync.downstream
        latest = syncs.again or syncs.known
        if latest and (pair[1] < latest[-1][1] or (pair[0] == 0 and latest[-1][0] > 0)):
            # The target or the source was recreated: earlier syncs are void.
            syncs.known, syncs.again = [], []
        if syncs.known and pair[0] <= syncs.known[-1][0]:
            _append(syncs.again, pair)
            return
        if syncs.again:
            first = syncs.again[0][0]
            syncs.known = [old for old in syncs.known if old[0] < first] + syncs.again
            syncs.again = []
        _append(syncs.known, pair)

    def downstream(self, partition: TopicPartition, upstream: int) -> int | None:
        """The offset of the target at which to continue for this offset of the source; None when it is unknown."""
        known = self._syncs[partition].known if partition in self._syncs else []
        index = bisect_right(known, upstream, key=lambda sync: sync[0]) - 1
        if index < 0:
            return None
        original, copy = known[index]
        return copy if original == upstream else copy + 1


def _append(syncs: list[tuple[int, int]], pair: tuple[int, int]) -> None:
    if syncs and pair[0] <= syncs[-1][0]:
        # Written a third time: from here on this is the newer copy.
        del syncs[bisect_left(syncs, pair[0], key=lambda sync: sync[0]) :]
    syncs.append(pair)
    if len(syncs) > _MOST_SYNCS:
        syncs[:] = thin(syncs)


def thin(syncs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Fewer syncs, the older the fewer: the first and the last one of each doubling of the distance."""
    newest = syncs[-1][0]
    kept: list[tuple[int, int]] = []
    for index, sync in enumerate(syncs):
        distance = (newest - sync[0]).bit_length()
        before = (newest - syncs[index - 1][0]).bit_length() if index else None
        behind = (newest - syncs[index + 1][0]).bit_length() if index + 1 < len(syncs) else None
        if distance != before or distance != behind:
            kept.append(sync)
    return kept
