"""Metadata columns: the topic, partition, offset, timestamp, key and headers of a record."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from connect.api.record import Header
from connectors.spark.rows import Columns
from schema_registry.serdes.arrow.types import TIMESTAMP

HEADERS: Final = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
"""As in Spark's Kafka source: the same key may occur twice."""
PLACE: Final = ("topic", "partition", "offset")
"""Metadata that identifies the record of a row."""


def column_name(metadata: str) -> str:
    """The column of a piece of metadata."""
    return f"_{metadata}"


def place_columns(
    wanted: Sequence[str], *, topic: str, partition: int, offsets: pa.Array, timestamps_ms: pa.Array
) -> Columns:
    """The wanted columns for records of one partition."""
    count = len(offsets)
    made: dict[str, Callable[[], pa.Array]] = {
        "topic": lambda: pa.repeat(pa.scalar(topic, pa.string()), count),
        "partition": lambda: pa.repeat(pa.scalar(partition, pa.int32()), count),
        "offset": lambda: offsets.cast(pa.int64()),
        "timestamp": lambda: _timestamps(timestamps_ms),
    }
    return {column_name(name): made[name]() for name in wanted if name in made}


def _timestamps(milliseconds: pa.Array) -> pa.Array:
    known = np.asarray(milliseconds.to_numpy(zero_copy_only=False))
    # A record without a timestamp has a negative one.
    return pa.array(known * 1000, pa.int64(), mask=known < 0).cast(TIMESTAMP)


def header_values(headers: Iterable[Header]) -> list[dict[str, Any]]:
    """Headers after transforms, as bytes again."""
    return [{"key": header.key, "value": _bytes(header.value)} for header in headers]


def _bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return (str(value).lower() if isinstance(value, bool) else str(value)).encode(errors="replace")


def schema_id(value: bytes | None) -> int | None:
    """The id in front of a value that a registry's serializer wrote."""
    if value is None or len(value) < 5 or value[0]:
        return None
    return int.from_bytes(value[1:5])
