"""Keys and values by schemas: of the registry, or for PROTOBUF_NOSR of the columns themselves."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from google.protobuf.message import EncodeError

from schema_registry.formats.avro import AvroSchema
from schema_registry.formats.json_schema import JsonSchema
from schema_registry.formats.protobuf import ProtobufSchema
from schema_registry.formats.schema import InvalidSchema
from schema_registry.serdes import avro_bounds, avro_reading, avro_writing, json_values, protobuf_values
from schema_registry.serdes.avro_mismatch import Form
from schema_registry.serdes.errors import InvalidData, NotFramed, UnusableSchema
from schema_registry.serdes.framing import read_frame, read_message_indexes
from schema_registry.serdes.protobuf import ProtobufCodec
from schema_registry.serdes.schemas import ParsedSchema
from streams.formats.avro_schemas import avro_plan
from streams.formats.fitting import fitting
from streams.formats.json_codec import JsonCodec
from streams.formats.json_schemas import is_written_plainly, json_plan
from streams.formats.json_writing import encode_json, json_writer
from streams.formats.layout import Layout
from streams.formats.matching import renaming
from streams.formats.protobuf_schemas import message_of, protobuf_plan
from streams.formats.registry import Schemas, Writing
from streams.formats.schemas import SCHEMA_TYPES
from streams.model.types import SqlType

Indexes: TypeAlias = tuple[int, ...]
Read: TypeAlias = Callable[[bytes, int], Any]
"""Reads the value that begins there in the data; raises ValueError."""
Write: TypeAlias = Callable[[Any], bytes]

FIRST_MESSAGE: Indexes = (0,)
_READERS_MAX = 1_000


class SchemaCodec:
    """Writes by one schema, reads by the schema that the data names; raises ClientError without the registry."""

    def __init__(self, layout: Layout, schemas: Schemas) -> None:
        self._layout = layout
        self._schemas = schemas
        self._kind = layout.record if layout.is_wrapped else layout.columns[0].sql_type
        self._names = [column.name for column in layout.columns]
        self._fit = fitting(self._kind)
        self._readers: dict[tuple[int | str, Indexes], Read] = {}

    @cached_property
    def writing(self) -> Writing:
        """What is written with."""
        return self._schemas.writing(self._layout)

    @cached_property
    def write(self) -> Write:
        """Writes a record, or the value of the only column, without the name of the schema."""
        return value_writer(self.writing, self._kind)

    def encode(self, values: Sequence[Any]) -> bytes | None:
        """The data behind the name of the schema."""
        if not self._layout.is_wrapped:
            return None if values[0] is None else self.writing.prefix + self.write(values[0])
        return self.writing.prefix + self.write(dict(zip(self._names, values, strict=True)))

    def decode(self, data: bytes) -> Sequence[Any] | None:
        """The columns of data."""
        if self._layout.format.name == "PROTOBUF_NOSR":
            found = self._own(data, 0)
        else:
            frame = read_frame(data)
            indexes, start = FIRST_MESSAGE, frame.start
            if self._layout.format.name == "PROTOBUF":
                indexes, start = read_message_indexes(frame)
            read = self._readers.get((frame.schema, indexes)) or self._new_reader(frame.schema, indexes)
            found = read(data, start)
        if found is None:
            return None
        fit = self._fit(found)
        return list(fit.values()) if self._layout.is_wrapped else [fit]

    @cached_property
    def _own(self) -> Read:
        return value_reader(self.writing.schema, FIRST_MESSAGE, self._layout)

    def _new_reader(self, schema: int | str, indexes: Indexes) -> Read:
        if len(self._readers) >= _READERS_MAX:
            self._readers.clear()
        read = value_reader(parsed_as(self._layout, self._schemas, schema), indexes, self._layout)
        return self._readers.setdefault((schema, indexes), read)


def parsed_as(layout: Layout, schemas: Schemas, schema: int | str) -> ParsedSchema:
    """A schema that data names, which must be one of the format; raises SerdeError."""
    parsed = schemas.reading(schema)
    if parsed.schema_type != SCHEMA_TYPES[layout.format.name]:
        raise UnusableSchema(f"schema {schema} is {parsed.schema_type}, not {layout.format.name}")
    return parsed


def value_reader(schema: ParsedSchema, indexes: Indexes, layout: Layout) -> Read:
    """Reads data of a schema; raises SerdeError if there is no such message, or nothing can be read."""
    if isinstance(schema, AvroSchema):
        avro_bounds.check(schema.root)
        return avro_reading.reader(avro_plan(schema), Form.TYPED)
    if isinstance(schema, JsonSchema):
        plan = json_plan(schema)
        return _plain_reader(layout) if is_written_plainly(plan) else json_values.reader(plan)
    return _message_reader(schema, indexes)


def _plain_reader(layout: Layout) -> Read:
    codec = JsonCodec(layout)

    def read(data: bytes, start: int) -> Any:
        found = codec.decode(data[start:])
        if found is None or not layout.is_wrapped:
            return found if found is None else found[0]
        return dict(zip((column.name for column in layout.columns), found, strict=True))

    return read


def _message_reader(schema: ProtobufSchema, indexes: Indexes) -> Read:
    try:
        message = schema.message_at(indexes)
    except InvalidSchema as error:
        raise NotFramed(str(error)) from error
    codec = ProtobufCodec(schema, message=str(message.full_name))
    convert = protobuf_values.reader(protobuf_plan(message))
    return lambda data, start: convert(codec.decode(data, start))


def value_writer(writing: Writing, kind: SqlType) -> Write:
    """Writes values of a type with a schema, without the name of it; raises InvalidData."""
    write = _schema_writer(writing)
    rename = renaming(kind, writing.type)
    return write if rename is None else (lambda value: write(rename(value)))


def _schema_writer(writing: Writing) -> Write:
    schema = writing.schema
    if isinstance(schema, AvroSchema):
        return avro_writing.writer(avro_plan(schema), Form.TYPED)
    if isinstance(schema, JsonSchema):
        make_json = json_writer(writing.type)
        return lambda value: encode_json(make_json(value))
    make = protobuf_values.maker(protobuf_plan(message_of(schema, writing.message)))

    def write(value: Any) -> bytes:
        try:
            data: bytes = make(value).SerializeToString()
        except EncodeError as error:
            raise InvalidData(f"the message cannot be written: {error}") from error
        return data

    return write
