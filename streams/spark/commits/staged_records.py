"""Records on their way from executors to a topic: staged in a file, until the driver sends them in a transaction."""

import uuid
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.ipc

from core_broker.client.records import OutgoingRecord
from streams.spark.commits.entries import WrittenRecords
from streams.spark.commits.executor_files import open_input, open_output
from streams.spark.files import join_path

_BATCH: Final = 1000
_SCHEMA: Final = pa.schema([pa.field("letter", pa.binary())])


def stage_records(records: Sequence[OutgoingRecord], folder: str) -> WrittenRecords:
    """Write records into a file of their own."""
    path = join_path(folder, f"{uuid.uuid4().hex}.letters")
    with open_output(path) as stream, pa.ipc.new_file(stream, _SCHEMA) as writer:
        for start in range(0, len(records), _BATCH):
            data = [msgspec.msgpack.encode(record) for record in records[start : start + _BATCH]]
            writer.write_batch(pa.record_batch([pa.array(data, pa.binary())], schema=_SCHEMA))
    return WrittenRecords(path=path, count=len(records))


def read_records(path: str) -> Iterator[OutgoingRecord]:
    """The records of a file, with one batch in memory at a time."""
    decoder = msgspec.msgpack.Decoder(OutgoingRecord)
    with open_input(path) as stream:
        file = pa.ipc.open_file(stream)
        for index in range(file.num_record_batches):
            for data in file.get_batch(index).column(0):
                yield decoder.decode(data.as_py())
