"""Schemas of a registry, parsed."""

from schema_registry.client.models import SchemaDefinition
from schema_registry.client.registry_client import RegistryClient
from schema_registry.formats import avro, json_schema, protobuf
from schema_registry.formats.avro import AvroSchema
from schema_registry.formats.json_schema import JsonSchema
from schema_registry.formats.protobuf import ProtobufSchema
from schema_registry.formats.schema import InvalidSchema, SchemaType
from schema_registry.serdes.errors import UnusableSchema

ParsedSchema = AvroSchema | JsonSchema | ProtobufSchema


def parse(definition: SchemaDefinition, client: RegistryClient) -> ParsedSchema:
    """The schema with its references, which the client may have to fetch; raises UnusableSchema.

    A schema that a registry has accepted is not checked again.
    """
    references = client.references(definition)
    try:
        match definition.schema_type:
            case SchemaType.AVRO:
                return avro.parse(definition.text, references, strict=False)
            case SchemaType.JSON:
                return json_schema.parse(definition.text, references, strict=False)
            case SchemaType.PROTOBUF:
                return protobuf.parse(definition.text, references, strict=False)
    except InvalidSchema as error:
        raise UnusableSchema(f"the {definition.schema_type} schema cannot be used: {error}") from error
