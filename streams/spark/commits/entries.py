"""What executors report to the driver: the files that they have written, and how far they have read."""

from collections.abc import Sequence
from typing import Final

import msgspec
import pyarrow as pa

from streams.spark.tables.model import StagedFile, unpack_schema

ENTRY: Final = "entry"
ENTRY_SCHEMA: Final = pa.schema([pa.field(ENTRY, pa.string())])


class WrittenRange(msgspec.Struct, frozen=True, kw_only=True, tag="range"):
    """A range of a partition that was read; all of its records are in staged files."""

    topic: str
    partition: int
    start: int
    end: int


class WrittenRows(msgspec.Struct, frozen=True, kw_only=True, tag="rows"):
    """A staged file of rows; their schema includes the partition columns, which are not in the file."""

    table: str
    file: StagedFile
    fingerprint: str
    schema_bytes: bytes
    keys: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return unpack_schema(self.schema_bytes)


class WrittenRecords(msgspec.Struct, frozen=True, kw_only=True, tag="letters"):
    """A staged file of records that are to be sent to a topic, such as dead letters."""

    path: str
    count: int


class Counted(msgspec.Struct, frozen=True, kw_only=True, tag="counted"):
    """Metrics of one task."""

    counts: dict[str, float]


Entry = WrittenRange | WrittenRows | WrittenRecords | Counted
_decoder: Final = msgspec.json.Decoder(Entry)


def pack_entries(entries: Sequence[Entry]) -> pa.RecordBatch:
    """Entries as the rows that an executor yields."""
    texts = [msgspec.json.encode(entry).decode() for entry in entries]
    return pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], schema=ENTRY_SCHEMA)


def parse_entry(text: str) -> Entry:
    """One of those rows, on the driver."""
    entry: Entry = _decoder.decode(text)
    return entry
