"""ProtobufConverter: keys and values in Protobuf, their schemas in a registry."""

from typing import ClassVar

from google.protobuf.message import EncodeError
from typing_extensions import override

from connect.api.data import Schema, Value
from connect.api.errors import DataError
from connect.converters.protobuf.config import ProtobufConfig
from connect.converters.protobuf.definitions import from_connect_schema
from connect.converters.protobuf.schemas import to_connect_schema
from connect.converters.protobuf.values import read_plan, write_plan
from connect.converters.registry import Reading, RegistryConfig, RegistryConverter, Writing
from schema_registry.client.models import SchemaDefinition
from schema_registry.formats.protobuf import ProtobufSchema
from schema_registry.formats.schema import InvalidSchema, SchemaType
from schema_registry.serdes.errors import NotFramed, UnusableSchema
from schema_registry.serdes.framing import Frame, read_frame, read_message_indexes
from schema_registry.serdes.protobuf import ProtobufCodec
from schema_registry.serdes.protobuf_values import maker, reader
from schema_registry.serdes.serializer import Writer

_FIRST_MESSAGE_END = 6
"""Where the data begins in the usual case, that of the first message."""


class ProtobufConverter(RegistryConverter):
    """Reads and writes Protobuf, as Confluent's serializers and converter do."""

    config_class: ClassVar[type[RegistryConfig]] = ProtobufConfig
    aliases = (
        "io.confluent.connect.protobuf.ProtobufConverter",
        "io.apicurio.registry.utils.converter.ProtobufConverter",
    )
    form = "Protobuf"
    config: ProtobufConfig

    @override
    def prefix_end(self, data: bytes) -> int:
        if data[:1] == b"\x00" and data[5:6] == b"\x00":
            return _FIRST_MESSAGE_END
        return read_message_indexes(read_frame(data))[1]

    @override
    def new_reading(self, topic: str, frame: Frame) -> tuple[Reading, int]:
        found = self.deserializer.reader(frame.schema)
        parsed = found.schema
        if not isinstance(parsed, ProtobufSchema):
            raise UnusableSchema(f"schema {frame.schema} is of {parsed.schema_type}, not Protobuf")
        indexes, end = read_message_indexes(frame)
        try:
            message = parsed.message_at(indexes)
        except InvalidSchema as error:
            raise NotFramed(str(error)) from error
        version = self.version_in_subject(topic, found.registered, name=message.full_name)
        plan = read_plan(message, self.config)
        schema = to_connect_schema(plan, self.config, version=version)
        read = reader(plan)
        decode = ProtobufCodec(parsed, message=message.full_name).decode
        return Reading(schema, lambda data, start: read(decode(data, start))), end

    @override
    def new_writing(self, topic: str, schema: Schema | None, value: Value) -> Writing:
        if schema is None:
            raise DataError("a value without a schema cannot be written as Protobuf")
        text, name = from_connect_schema(schema, self.config)
        writer = self._writer(topic, SchemaDefinition(text, SchemaType.PROTOBUF), name)
        if not isinstance(writer.schema, ProtobufSchema) or not isinstance(writer.codec, ProtobufCodec):
            raise UnusableSchema(f"the schema to write by is of {writer.schema.schema_type}, not Protobuf")
        message = writer.schema.pool.FindMessageTypeByName(str(writer.codec.message_class.DESCRIPTOR.full_name))
        make = maker(write_plan(message, schema, self.config))

        def write(value: Value) -> bytes:
            try:
                data: bytes = make(value).SerializeToString()
                return data
            except (EncodeError, ValueError) as error:
                raise DataError(f"the message {name} cannot be written: {error}") from error

        return Writing(writer.prefix, write)

    def _writer(self, topic: str, definition: SchemaDefinition, name: str) -> Writer:
        """A writer of the message of that name, or of the first one of a given schema that has no such message."""
        settings = self.settings
        is_ours = not settings.use_latest_version and settings.schema_id is None
        try:
            return self.writer(topic, definition, message=name)
        except UnusableSchema:
            if is_ours:
                raise
            return self.writer(topic, definition)
