"""Columns of SQL as schemas of the registry, and schemas as columns."""

from collections.abc import Mapping
from typing import Final

from schema_registry.client.models import SchemaDefinition
from schema_registry.formats.avro import AvroSchema
from schema_registry.formats.json_schema import JsonSchema
from schema_registry.formats.schema import SchemaType
from schema_registry.serdes.errors import UnusableSchema
from schema_registry.serdes.schemas import ParsedSchema
from streams.formats.avro_schemas import avro_plan, avro_text, avro_type
from streams.formats.errors import Part, SchemaProblem
from streams.formats.json_schemas import json_plan, json_schema_text, json_type
from streams.formats.layout import Layout
from streams.formats.protobuf_schemas import message_of, protobuf_plan, protobuf_text, protobuf_type
from streams.model.sources import Column, Format, FormatName
from streams.model.types import SqlType, Struct

BARE_KEY, BARE_VALUE = "ROWKEY", "ROWVAL"
"""The names of columns whose schema gives them none."""
SCHEMA_TYPES: Final[Mapping[FormatName, SchemaType]] = {
    "AVRO": SchemaType.AVRO,
    "PROTOBUF": SchemaType.PROTOBUF,
    "PROTOBUF_NOSR": SchemaType.PROTOBUF,
    "JSON_SR": SchemaType.JSON,
}
"""The formats that have schemas."""


def schema_of(layout: Layout) -> SchemaDefinition:
    """The schema of keys or values; raises SchemaProblem if the format cannot hold the columns."""
    kind = SCHEMA_TYPES[layout.format.name]
    match kind:
        case SchemaType.AVRO:
            return SchemaDefinition(avro_text(layout), kind)
        case SchemaType.JSON:
            return SchemaDefinition(json_schema_text(layout), kind)
        case SchemaType.PROTOBUF:
            return SchemaDefinition(protobuf_text(layout), kind)


def type_of(schema: ParsedSchema, message: str | None = None) -> SqlType:
    """The type of a schema's data, in Protobuf that of a message; raises SchemaProblem."""
    try:
        if isinstance(schema, AvroSchema):
            return avro_type(avro_plan(schema))
        if isinstance(schema, JsonSchema):
            return json_type(json_plan(schema))
        return protobuf_type(protobuf_plan(message_of(schema, message)))
    except UnusableSchema as error:
        raise SchemaProblem(f"The schema has no columns: {error}") from error


def columns_of(schema: ParsedSchema, part: Part, written_as: Format) -> tuple[Column, ...]:
    """The columns of keys or values of a schema; raises SchemaProblem.

    A key is one column, unless its format always writes messages; so is a value that is not wrapped.
    """
    kind = type_of(schema, written_as.full_name if written_as.name == "PROTOBUF" else None)
    is_bare = written_as.name != "PROTOBUF" and (part == "key" or written_as.wraps_single is False)
    if is_bare:
        return (Column(BARE_KEY if part == "key" else BARE_VALUE, str(kind)),)
    if not isinstance(kind, Struct):
        raise SchemaProblem(
            f"The schema is of type {kind}, not a record: set WRAP_SINGLE_VALUE=false in the WITH clause."
        )
    if not kind.fields:
        raise SchemaProblem("The schema is a record without fields.")
    return tuple(Column(field.name, str(field.type)) for field in kind.fields)
