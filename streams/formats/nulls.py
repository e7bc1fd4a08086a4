"""Null records. Besides those without a value, Kafka's JSON deserializers take the document `null` for no value."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streams.model.sources import Format

_NULL: Final = b"null"
_SPACE: Final = b" \t\r\n"
_FRAME_BYTES: Final = {0: 5, 1: 17}
"""How long the name of a schema before the document is, by its first byte."""
_BYTES_MAX: Final = 64
"""Longer values are not looked into: no program writes so much space around `null`."""


def is_null_value(data: bytes | None, format_: Format) -> bool:
    """Whether a record with this value deletes the row of a table, and is no row of a stream."""
    if data is None:
        return True
    if len(data) > _BYTES_MAX:
        return False
    match format_.name:
        case "JSON":
            return data.strip(_SPACE) == _NULL
        case "JSON_SR":
            # Without a frame, the schema is named in a header.
            return data[_FRAME_BYTES.get(data[0], 0) if data else 0 :].strip(_SPACE) == _NULL
        case _:
            return False


def without_null_documents(values: pa.Array, format_: Format) -> pa.Array:
    """Values of records, null where they stand for no value."""
    if format_.name not in ("JSON", "JSON_SR"):
        return values
    is_short = pc.fill_null(pc.less_equal(pc.binary_length(values), _BYTES_MAX), False)
    rows = np.flatnonzero(is_short.to_numpy(zero_copy_only=False))
    short = values.take(pa.array(rows)).to_pylist()
    nulls = rows[[is_null_value(data, format_) for data in short]] if short else rows
    if not len(nulls):
        return values
    mask = np.zeros(len(values), np.bool_)
    mask[nulls] = True
    return pc.if_else(pa.array(mask), pa.scalar(None, values.type), values)
