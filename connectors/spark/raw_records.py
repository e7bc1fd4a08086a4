"""Single records and headers out of fetched columns."""

from typing import Final

import pyarrow as pa

from connectors.spark.metadata import HEADERS
from core_broker.client.records import IncomingRecord
from streams.spark.topics.fetching import RawBatch

_TYPES: Final = {0: "CreateTime", 1: "LogAppendTime"}


def record_at(raw: RawBatch, index: int, *, topic: str, partition: int) -> IncomingRecord:
    """One record of a fetched batch."""
    headers = (raw.headers[index].as_py() if raw.headers is not None else None) or ()
    return IncomingRecord(
        topic=topic,
        partition=partition,
        offset=raw.offsets[index].as_py(),
        timestamp_ms=raw.timestamps_ms[index].as_py(),
        timestamp_type=_TYPES.get(raw.timestamp_types[index].as_py(), ""),
        key=raw.keys[index].as_py(),
        value=raw.values[index].as_py(),
        headers=[(header["key"], header["value"]) for header in headers],
    )


def headers_of(raw: RawBatch) -> pa.Array:
    """The headers of all records; empty lists where a record has none."""
    if raw.headers is None:
        return pa.repeat(pa.scalar([], HEADERS), len(raw.offsets))
    return pa.array([row or [] for row in raw.headers.to_pylist()], HEADERS)
