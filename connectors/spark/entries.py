"""What executors tell the driver: the files that they have written, and how far they have read."""

from typing import Final

import msgspec
import pyarrow as pa

from streams.spark.tables.model import StagedFile

ENTRY: Final = "entry"
ENTRY_SCHEMA: Final = pa.schema([pa.field(ENTRY, pa.string())])


class WrittenRange(msgspec.Struct, frozen=True, kw_only=True, tag="range"):
    """A part of a partition that was read, with all of its records in files or letters."""

    topic: str
    partition: int
    start: int
    end: int


class WrittenRows(msgspec.Struct, frozen=True, kw_only=True, tag="rows"):
    """A staged file, and the shape of its rows with the columns that its folder tells."""

    table: str
    file: StagedFile
    fingerprint: str
    schema_bytes: bytes
    keys: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """The shape."""
        return pa.ipc.read_schema(pa.py_buffer(self.schema_bytes))


class WrittenLetters(msgspec.Struct, frozen=True, kw_only=True, tag="letters"):
    """A staged file of dead letters."""

    path: str
    count: int


class Counted(msgspec.Struct, frozen=True, kw_only=True, tag="counted"):
    """What was counted on the way."""

    counts: dict[str, float]


Entry = WrittenRange | WrittenRows | WrittenLetters | Counted
_decoder: Final = msgspec.json.Decoder(Entry)


def packed(entries: list[Entry]) -> pa.RecordBatch:
    """Entries as the rows that an executor yields."""
    texts = [msgspec.json.encode(entry).decode() for entry in entries]
    return pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], schema=ENTRY_SCHEMA)


def unpacked(text: str) -> Entry:
    """An entry as the driver reads it."""
    entry: Entry = _decoder.decode(text)
    return entry
