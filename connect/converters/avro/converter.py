"""AvroConverter: keys and values in Avro, their schemas in a registry."""

from typing import ClassVar

from typing_extensions import override

from connect.api.data import Schema, Value
from connect.api.errors import DataError
from connect.converters.avro.config import AvroConfig
from connect.converters.avro.definitions import from_connect_schema
from connect.converters.avro.schemas import to_connect_schema
from connect.converters.avro.values import anything_of, reading, writing
from connect.converters.registry import Reading, RegistryConfig, RegistryConverter, Writing
from schema_registry.client.models import SchemaDefinition
from schema_registry.formats.avro import AvroSchema
from schema_registry.serdes.errors import UnusableSchema
from schema_registry.serdes.framing import Frame


class AvroConverter(RegistryConverter):
    """Reads and writes Avro, as Confluent's serializers and converter do."""

    config_class: ClassVar[type[RegistryConfig]] = AvroConfig
    aliases = ("io.confluent.connect.avro.AvroConverter", "io.apicurio.registry.utils.converter.AvroConverter")
    form = "Avro"
    config: AvroConfig

    @override
    def new_reading(self, topic: str, frame: Frame) -> tuple[Reading, int]:
        found = self.deserializer.reader(frame.schema)
        parsed = found.schema
        if not isinstance(parsed, AvroSchema):
            raise UnusableSchema(f"schema {frame.schema} is of {parsed.schema_type}, not Avro")
        version = self.version_in_subject(topic, found.registered, name=parsed.name)
        schema = to_connect_schema(parsed.root, self.config, version=version)
        return Reading(schema, reading(parsed.root, schema, self.config)), frame.start

    @override
    def new_writing(self, topic: str, schema: Schema | None, value: Value) -> Writing:
        definition = SchemaDefinition(from_connect_schema(schema, self.config))
        writer = self.writer(topic, definition)
        if not isinstance(writer.schema, AvroSchema):
            raise UnusableSchema(f"the schema to write by is of {writer.schema.schema_type}, not Avro")
        if schema is None:
            encode = writer.codec.encode
            return Writing(writer.prefix, lambda value: encode(anything_of(value)))
        return Writing(writer.prefix, writing(writer.schema.root, schema, self.config))

    @override
    def null(self, topic: str, schema: Schema | None) -> bytes | None:
        """Null is a tombstone, unless the schema does not allow it."""
        if schema is not None and not schema.optional:
            raise DataError(
                f"Failed to serialize Avro data from topic {topic}: Found null value for non-optional schema"
            )
        return None
