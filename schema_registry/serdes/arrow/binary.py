"""Binary values of Arrow, and the bytes that they are made of."""

from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Rows: TypeAlias = npt.NDArray[np.int64]
"""Row numbers, or positions in bytes."""
Bytes: TypeAlias = npt.NDArray[np.uint8]

BYTES_MAX: Final = (1 << 31) - 1
"""The most that one array holds."""
_PADDING: Final = 16
_SHIFT_MAX: Final = 63


class Doubt(Exception):
    """Some value of many is not valid; which one is found by looking at each."""


class Content(NamedTuple):
    """Bytes of many records, one after the other."""

    data: Bytes
    lengths: Rows


def places(values: pa.Array) -> tuple[Bytes, Rows, Rows]:
    """All bytes of binary values, where each begins, and how long it is."""
    _, offsets, data = values.buffers()
    kind = np.int64 if pa.types.is_large_binary(values.type) else np.int32
    if len(values) == 0 or offsets is None:
        return np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64)
    ends = np.frombuffer(offsets, kind)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    return np.frombuffer(data or b"", np.uint8), ends[:-1], np.diff(ends)


def take_rows(values: pa.Array, rows: Rows) -> pa.Array:
    """The values of some rows, which is mostly all of them."""
    return values if len(rows) == len(values) else values.take(pa.array(rows))


def without(values: pa.Array, count: int) -> pa.Array:
    """Values without their first bytes."""
    return pc.binary_replace_slice(values, 0, count, b"") if count else values


class Cursor:
    """A position in each of many records, moved along all of them at once."""

    def __init__(self, bodies: pa.Array) -> None:
        data, starts, lengths = places(bodies)
        first, last = (starts[0], starts[-1] + lengths[-1]) if len(starts) else (0, 0)
        self.data: Bytes = np.concatenate([data[first:last], np.zeros(_PADDING, np.uint8)])
        self.starts = starts - first
        self.ends = self.starts + lengths
        self.at = self.starts.copy()
        self.is_odd = np.zeros(len(starts), dtype=np.bool_)
        """Which records end too soon or make no sense."""

    def varints(self, rows: Rows, at: Rows) -> tuple[npt.NDArray[np.uint64], Rows]:
        """Numbers in seven bits per byte, which begin within records or right after them, and where they end."""
        byte = self.data[at]
        raw = (byte & 0x7F).astype(np.uint64)
        at = at + 1
        # Each round reads one more byte of those numbers that have one.
        more = np.flatnonzero(byte & 0x80)
        shift = 7
        while len(more):
            byte = self.data[at[more]]  # The zeros after the data end every number.
            if shift > _SHIFT_MAX or (shift == _SHIFT_MAX and (byte > 1).any()):
                is_long = np.ones(len(more), np.bool_) if shift > _SHIFT_MAX else byte > 1
                self.is_odd[rows[more[is_long]]] = True
                more, byte = more[~is_long], byte[~is_long]
            raw[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(min(shift, _SHIFT_MAX))
            at[more] += 1
            more = more[byte >= 0x80]
            shift += 7
        return raw, at

    def go_to(self, rows: Rows, at: Rows, least: Rows | None = None) -> None:
        """Move the positions of some records; those that end before are odd."""
        is_beyond = at > self.ends[rows]
        if least is not None:
            is_beyond |= at < least
        if is_beyond.any():
            self.is_odd[rows[is_beyond]] = True
            at = np.where(is_beyond, self.ends[rows], at)
        self.at[rows] = at


def content_of(data: Bytes, begin: Rows, end: Rows) -> Content:
    """The bytes between positions."""
    lengths = end - begin
    # Positions count up from the beginning of each range.
    behind = np.cumsum(lengths)
    total = int(behind[-1]) if len(behind) else 0
    positions = np.repeat(begin - (behind - lengths), lengths) + np.arange(total, dtype=np.int64)
    return Content(data[positions], lengths)


def binary_array(content: Content, valid: pa.Buffer | None) -> pa.Array:
    """Bytes as an array; the bits of `valid` say which are not null. Raises Doubt if they are too many."""
    if len(content.data) > BYTES_MAX:
        raise Doubt
    offsets = np.zeros(len(content.lengths) + 1, dtype=np.int32)
    np.cumsum(content.lengths, out=offsets[1:])
    buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(content.data))]
    return pa.Array.from_buffers(pa.binary(), len(content.lengths), buffers)
