"""Dead letters on their way from executors to their topic: a file of them, then one transaction."""

import uuid
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.ipc

from connectors.spark.entries import WrittenLetters
from connectors.spark.staging import opened_for_reading, opened_for_writing
from core_broker.client.records import OutgoingRecord
from streams.spark.files import join_path

_BATCH: Final = 1000
_SCHEMA: Final = pa.schema([pa.field("letter", pa.binary())])


def staged(letters: Sequence[OutgoingRecord], folder: str) -> WrittenLetters:
    """Write letters into a file of their own."""
    path = join_path(folder, f"{uuid.uuid4().hex}.letters")
    with opened_for_writing(path) as stream, pa.ipc.new_file(stream, _SCHEMA) as writer:
        for start in range(0, len(letters), _BATCH):
            data = [msgspec.msgpack.encode(letter) for letter in letters[start : start + _BATCH]]
            writer.write_batch(pa.record_batch([pa.array(data, pa.binary())], schema=_SCHEMA))
    return WrittenLetters(path=path, count=len(letters))


def read(path: str) -> Iterator[OutgoingRecord]:
    """The letters of a file, a batch in memory at a time."""
    decoder = msgspec.msgpack.Decoder(OutgoingRecord)
    with opened_for_reading(path) as stream:
        file = pa.ipc.open_file(stream)
        for index in range(file.num_record_batches):
            for data in file.get_batch(index).column(0):
                yield decoder.decode(data.as_py())
