"""Data of one Protobuf message as columns."""

from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError

from schema_registry.formats.protobuf import ProtobufSchema
from schema_registry.formats.schema import InvalidSchema
from schema_registry.serdes.errors import InvalidData, NotFramed
from schema_registry.serdes.protobuf import ProtobufCodec
from streams.spark.decoding.extraction import Extract, extracted
from streams.spark.decoding.message_indexes import Indexes
from streams.spark.decoding.protobuf_columns import Columns
from streams.spark.decoding.reading import Bad, Read, SchemaReader, bodies_list


def protobuf_reader(schema: ProtobufSchema, indexes: Indexes) -> SchemaReader:
    """What reads data of a message; raises SerdeError."""
    try:
        message = schema.message_at(indexes)
    except InvalidSchema as error:
        raise NotFramed(str(error)) from error
    type_, extract = Columns().root(message)
    return _ProtobufReader(type_, extract, ProtobufCodec(schema, message=message.full_name))


class _ProtobufReader:
    def __init__(self, type_: pa.DataType, extract: Extract, codec: ProtobufCodec) -> None:
        self.type = type_
        self._extract = extract
        self._codec = codec

    def read(self, bodies: pa.Array) -> Read:
        """Read messages."""
        records = bodies_list(bodies)
        parse: Any = self._codec.message_class.FromString
        try:
            return extracted(list(map(parse, records)), range(len(records)), self._extract)
        except DecodeError:
            return self._one_by_one(records)

    def _one_by_one(self, records: list[bytes]) -> Read:
        messages: list[Any] = []
        rows: list[int] = []
        bad: Bad = []
        for row, record in enumerate(records):
            try:
                messages.append(self._codec.decode(record))
                rows.append(row)
            except InvalidData as error:
                bad.append((row, error))
        read = extracted(messages, rows, self._extract)
        return read._replace(bad=bad + read.bad)
