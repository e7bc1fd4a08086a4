"""Dead letters of queries: the record as it was read, with the reason in the headers that Connect uses, too."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from core_broker.client.records import Header, OutgoingRecord
from streams.spark.topics.fetching import RawBatch
from streams.spark.topics.ranges import OffsetRange

PREFIX: Final = "__connect.errors."
_MESSAGE_MAX: Final = 8_000
CONVERTERS: Final = {"key": "KEY_CONVERTER", "value": "VALUE_CONVERTER"}
TRANSFORMATION: Final = "TRANSFORMATION"


def dead_letter(
    batch: RawBatch, row: int, place: OffsetRange, *, topic: str, query: str, stage: str, kind: str, message: str
) -> OutgoingRecord:
    """The dead letter of a record; `kind` is the name of the error."""
    context = {
        "topic": place.topic,
        "partition": str(place.partition),
        "offset": str(batch.offsets[row].as_py()),
        "connector.name": query,
        "task.id": str(place.partition),
        "stage": stage,
        "class.name": "io.caudal.streams",
        "exception.class.name": f"io.caudal.streams.{kind}",
        "exception.message": message[:_MESSAGE_MAX],
    }
    timestamp = batch.timestamps_ms[row].as_py()
    return OutgoingRecord(
        topic=topic,
        key=batch.keys[row].as_py(),
        value=batch.values[row].as_py(),
        headers=[*_headers(batch.headers, row), *((PREFIX + name, text.encode()) for name, text in context.items())],
        timestamp_ms=timestamp if timestamp is not None and timestamp >= 0 else None,
    )


def _headers(column: pa.Array | None, row: int) -> Sequence[Header]:
    found = None if column is None else column[row].as_py()
    return [(pair["key"], pair["value"]) for pair in found or ()]
