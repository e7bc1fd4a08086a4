"""The `.timeindex` of a segment: maps timestamps to offsets.

Kafka's layout: twelve bytes per entry, a timestamp and an offset relative to the segment's base. The timestamp is the
greatest so far, and the offset is the last one of its batch, so every record with a greater timestamp is after that
offset. Both are increasing.
"""

import struct
from typing import Final, NamedTuple

from typing_extensions import override

from core_broker.log.mapped_index import MappedIndex, is_increasing
from core_broker.log.transaction_index import CorruptIndexError

NO_TIMESTAMP: Final = -1

_ENTRY: Final = struct.Struct(">qi")
_TIMESTAMP: Final = struct.Struct(">q")
_read_entry = _ENTRY.unpack_from
_read_timestamp = _TIMESTAMP.unpack_from


class TimeOffset(NamedTuple):
    """A timestamp and the offset after which all greater ones are."""

    timestamp: int
    offset: int


class TimeIndex(MappedIndex):
    """Timestamps and offsets of a segment."""

    __slots__ = ()

    ENTRY = _ENTRY

    def append(self, timestamp: int, offset: int) -> None:
        """Add the greatest timestamp so far, unless the last entry has it already."""
        if timestamp <= (self.last().timestamp if self.count else NO_TIMESTAMP):
            return
        mapped = self.room_for_one()
        if mapped is not None:
            _ENTRY.pack_into(mapped, self.count * 12, timestamp, offset - self.base_offset)
            self.count += 1

    def lookup(self, timestamp: int) -> TimeOffset:
        """The last entry at or below `timestamp`; the segment's beginning if there is none."""
        low, high = -1, self.count - 1
        if high >= 0:
            mapped = self.mapping()
            while low < high:
                middle = (low + high + 1) >> 1
                if _read_timestamp(mapped, middle * 12)[0] <= timestamp:
                    low = middle
                else:
                    high = middle - 1
        return self._entry(low)

    def last(self) -> TimeOffset:
        """The last entry, hence the greatest timestamp; (-1, base offset) if there is none."""
        return self._entry(self.count - 1)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at or above `offset`."""
        kept = self.count
        while kept and self._entry(kept - 1).offset >= offset:
            kept -= 1
        self.keep(kept)

    def _entry(self, slot: int) -> TimeOffset:
        if slot < 0:
            return TimeOffset(NO_TIMESTAMP, self.base_offset)
        timestamp, offset = _read_entry(self.mapping(), slot * 12)
        return TimeOffset(timestamp, self.base_offset + offset)

    @override
    def _check_entries(self, data: bytes) -> None:
        entries = list(_ENTRY.iter_unpack(data))
        timestamps, offsets = [entry[0] for entry in entries], [entry[1] for entry in entries]
        # Both are increasing: an entry is added only for a new greatest timestamp, which is in a later batch.
        if offsets[0] < 0 or timestamps[0] < 0 or not is_increasing(timestamps) or not is_increasing(offsets):
            raise CorruptIndexError(f"{self._name}: the entries are not sorted")
