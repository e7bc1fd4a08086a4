"""Whether documents follow a JSON Schema, as those who read and write records are told."""

from schema_registry.formats.json_schema import JsonSchema
from schema_registry.formats.json_text import JsonValue, write
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.json_schema import JsonCodec


def is_valid(schema: JsonSchema, document: JsonValue) -> bool:
    """Whether a record with this document would be taken."""
    try:
        JsonCodec(schema).decode(write(document).encode())
    except InvalidData:
        return False
    return True
