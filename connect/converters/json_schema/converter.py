"""JsonSchemaConverter: keys and values in JSON, their JSON Schemas in a registry."""

from typing import ClassVar

from typing_extensions import override

from connect.api.data import Schema, Value
from connect.converters.json_schema.config import JsonSchemaConfig
from connect.converters.json_schema.definitions import from_connect_schema
from connect.converters.json_schema.schemas import to_connect_schema
from connect.converters.json_schema.values import read_plan, writing
from connect.converters.registry import Reading, RegistryConfig, RegistryConverter, Writing
from schema_registry.client.models import SchemaDefinition
from schema_registry.formats.json_schema import JsonSchema
from schema_registry.formats.schema import SchemaType
from schema_registry.serdes.errors import UnusableSchema
from schema_registry.serdes.framing import Frame
from schema_registry.serdes.json_schema import JsonCodec
from schema_registry.serdes.json_values import reader


class JsonSchemaConverter(RegistryConverter):
    """Reads and writes JSON with schemas, as Confluent's serializers and converter do."""

    config_class: ClassVar[type[RegistryConfig]] = JsonSchemaConfig
    aliases = ("io.confluent.connect.json.JsonSchemaConverter", "io.apicurio.registry.utils.converter.ExtJsonConverter")
    form = "JSON"
    config: JsonSchemaConfig

    @override
    def new_reading(self, topic: str, frame: Frame) -> tuple[Reading, int]:
        found = self.deserializer.reader(frame.schema)
        parsed = found.schema
        if not isinstance(parsed, JsonSchema):
            raise UnusableSchema(f"schema {frame.schema} is of {parsed.schema_type}, not JSON Schema")
        version = self.version_in_subject(topic, found.registered, name=parsed.name)
        plan = read_plan(parsed, self.config)
        schema = to_connect_schema(plan, self.config, version=version)
        read = reader(plan)
        if not self.config.json_fail_invalid_schema:
            return Reading(schema, read), frame.start
        codec = JsonCodec(parsed)

        def read_checked(data: bytes, start: int) -> Value:
            codec.decode(data, start)
            return read(data, start)

        return Reading(schema, read_checked), frame.start

    @override
    def new_writing(self, topic: str, schema: Schema | None, value: Value) -> Writing:
        definition = (
            None if schema is None else SchemaDefinition(from_connect_schema(schema, self.config), SchemaType.JSON)
        )
        writer = self.writer(topic, definition)
        if not isinstance(writer.schema, JsonSchema):
            raise UnusableSchema(f"the schema to write by is of {writer.schema.schema_type}, not JSON Schema")
        write = writing(schema, self.config)
        if not self.config.json_fail_invalid_schema:
            return Writing(writer.prefix, write)
        codec = JsonCodec(writer.schema)

        def write_checked(value: Value) -> bytes:
            data = write(value)
            codec.decode(data)  # Validates it.
            return data

        return Writing(writer.prefix, write_checked)
