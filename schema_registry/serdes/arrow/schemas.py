"""Readers of a schema's data as columns, and writers of columns as its data."""

from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from schema_registry.formats.avro import AvroSchema
from schema_registry.formats.json_schema import JsonSchema
from schema_registry.serdes.arrow.avro_reading import avro_reader
from schema_registry.serdes.arrow.avro_writing import AvroWriter
from schema_registry.serdes.arrow.json_reading import json_schema_reader
from schema_registry.serdes.arrow.json_writing import JsonWriter
from schema_registry.serdes.arrow.protobuf_reading import protobuf_reader
from schema_registry.serdes.arrow.protobuf_writing import ProtobufWriter
from schema_registry.serdes.arrow.reading import SchemaReader
from schema_registry.serdes.schemas import ParsedSchema

FIRST_MESSAGE = (0,)


class ColumnWriter(Protocol):
    """Writes data of one schema."""

    @property
    def type(self) -> pa.DataType:
        """The type of column to pass; others that hold the same values will do."""
        ...

    def write(self, rows: pa.Array) -> pa.Array:
        """Rows, structs for records, as binary values without a prefix; raises InvalidData."""
        ...


def column_reader(schema: ParsedSchema, indexes: tuple[int, ...] = FIRST_MESSAGE) -> SchemaReader:
    """The reader of a schema's data, in Protobuf that of one message; raises SerdeError."""
    if isinstance(schema, AvroSchema):
        return avro_reader(schema)
    if isinstance(schema, JsonSchema):
        return json_schema_reader(schema)
    return protobuf_reader(schema, indexes)


def column_writer(schema: ParsedSchema, indexes: tuple[int, ...] = FIRST_MESSAGE) -> ColumnWriter:
    """The writer of a schema's data, in Protobuf that of one message; raises SerdeError."""
    if isinstance(schema, AvroSchema):
        return AvroWriter(schema)
    if isinstance(schema, JsonSchema):
        return JsonWriter(schema)
    return ProtobufWriter(schema.message_at(indexes))


def add_prefix(data: pa.Array, prefix: bytes) -> pa.Array:
    """Data after the prefix that names its schema, from a `serializer.Writer`."""
    return pc.binary_join_element_wise(pa.scalar(prefix, pa.binary()), data, pa.scalar(b"", pa.binary()))
