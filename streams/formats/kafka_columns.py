"""Keys and values as Kafka's own serializers write them, as columns."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from schema_registry.serdes.arrow import joining
from schema_registry.serdes.arrow.binary import places
from streams.formats.arrays import array_of
from streams.formats.kafka_codec import KafkaCodec, check_kafka
from streams.formats.layout import Layout
from streams.formats.part_columns import ByRecord, DecodedPart
from streams.model.types import Name, Primitive

_NUMBERS: Final[Mapping[Name, str]] = {Name.INTEGER: ">i4", Name.BIGINT: ">i8", Name.DOUBLE: ">f8"}


class KafkaColumns:
    """One plain value."""

    def __init__(self, layout: Layout) -> None:
        check_kafka(layout)
        kind = layout.columns[0].sql_type
        assert isinstance(kind, Primitive)
        self._kind = kind
        self._number = _NUMBERS.get(kind.name)
        self._each = ByRecord(layout, KafkaCodec(layout))

    def decode(self, data: pa.Array) -> DecodedPart:
        """Decode values."""
        if self._number is not None:
            return self._numbers(data, self._number)
        if self._kind.name is Name.BYTES:
            return DecodedPart([data.cast(pa.binary())], {})
        try:
            return DecodedPart([data.cast(pa.binary()).cast(pa.string())], {})
        except pa.ArrowInvalid:  # Bytes that are not UTF-8 are replaced one by one.
            return self._each.decode(data)

    def encode(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Encode values."""
        (column,) = columns
        if self._number is None:
            return joining.bytes_of(column)
        some = column.drop_null().to_numpy(zero_copy_only=False).astype(self._number)
        width = some.dtype.itemsize
        is_valid = joining.is_valid(column)
        offsets = np.concatenate([[0], np.cumsum(is_valid * width)]).astype(np.int32)
        valid = None if is_valid.all() else pa.array(is_valid).buffers()[1]
        buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(some.tobytes())]
        return pa.Array.from_buffers(pa.binary(), len(column), buffers)

    def _numbers(self, data: pa.Array, number: str) -> DecodedPart:
        content, starts, lengths = places(data)
        width = np.dtype(number).itemsize
        is_bad = lengths != width
        bad = {row: f"expected {width} bytes, not {lengths[row]}" for row in np.flatnonzero(is_bad).tolist()}
        good = np.flatnonzero(~is_bad)
        values: np.ndarray[Any, np.dtype[Any]] = np.zeros(len(data), np.dtype(number).newbyteorder("="))
        if len(good):
            windows = np.lib.stride_tricks.sliding_window_view(content, width)
            values[good] = np.ascontiguousarray(windows[starts[good]]).view(number).reshape(-1)
        if not len(data):
            return DecodedPart([array_of(self._kind, [])], {})
        return DecodedPart([pa.array(values, mask=is_bad if bad else None)], bad)
