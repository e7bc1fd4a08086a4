"""The `.index` of a segment: maps offsets to positions in the file.

Kafka's layout: eight bytes per entry, an offset relative to the segment's base and the position of a batch. The offset
is that batch's last one. There is about one entry per `index.interval.bytes` of log, so a lookup ends a few batches
before its target, and the reader walks the rest.
"""

import struct
from typing import Final, NamedTuple

from typing_extensions import override

from core_broker.log.mapped_index import MappedIndex, big_endian, is_increasing
from core_broker.log.transaction_index import CorruptIndexError

RELATIVE_OFFSET_MAX: Final = 2**31 - 1

_ENTRY: Final = struct.Struct(">ii")
_NUMBER: Final = struct.Struct(">i")
_read_entry = _ENTRY.unpack_from
_read_number = _NUMBER.unpack_from


class OffsetPosition(NamedTuple):
    """The last offset of a batch and its position."""

    offset: int
    position: int


class OffsetIndex(MappedIndex):
    """Offsets and positions of a segment, both increasing."""

    __slots__ = ()

    ENTRY = _ENTRY

    def append(self, offset: int, position: int) -> None:
        """Add the batch at `position`, whose last offset is `offset`."""
        mapped = self.room_for_one()
        if mapped is not None:
            _ENTRY.pack_into(mapped, self.count * 8, offset - self.base_offset, position)
            self.count += 1

    def lookup(self, offset: int) -> OffsetPosition:
        """The last entry at or below `offset`; the segment's beginning if there is none."""
        return self._entry(self._last_slot(offset - self.base_offset, 0))

    def lookup_position(self, position: int) -> OffsetPosition:
        """The last entry at or below `position` in the file; the segment's beginning if there is none."""
        return self._entry(self._last_slot(position, 4))

    def last(self) -> OffsetPosition:
        """The last entry; the segment's beginning if there is none."""
        return self._entry(self.count - 1)

    def peek_last(self) -> OffsetPosition:
        """As `last`, but without mapping a file that may not be used again."""
        if self._map is not None or not self.count:
            return self.last()
        offset, position = _read_entry(self.read_last())
        return OffsetPosition(self.base_offset + offset, position)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at or above `offset`."""
        self.keep(self._last_slot(offset - 1 - self.base_offset, 0) + 1)

    def _entry(self, slot: int) -> OffsetPosition:
        if slot < 0:
            return OffsetPosition(self.base_offset, 0)
        offset, position = _read_entry(self.mapping(), slot * 8)
        return OffsetPosition(self.base_offset + offset, position)

    def _last_slot(self, target: int, field: int) -> int:
        """The last slot whose number at byte `field` is at most `target`; -1 if there is none."""
        low, high = -1, self.count - 1
        if high < 0:
            return -1
        mapped = self.mapping()
        while low < high:
            middle = (low + high + 1) >> 1
            if _read_number(mapped, middle * 8 + field)[0] <= target:
                low = middle
            else:
                high = middle - 1
        return low

    @override
    def _check_entries(self, data: bytes) -> None:
        numbers = big_endian(data, "i")
        offsets, positions = numbers[0::2].tolist(), numbers[1::2].tolist()
        if offsets[0] < 0 or positions[0] < 0 or not is_increasing(offsets) or not is_increasing(positions):
            raise CorruptIndexError(f"{self._name}: the entries are not sorted")
