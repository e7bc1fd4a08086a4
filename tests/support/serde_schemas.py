"""One schema per format for tests of the serializers, with a value and its JSON."""

import json
from typing import Any, NamedTuple

from schema_registry.client.models import SchemaDefinition
from schema_registry.formats.schema import SchemaType


class Example(NamedTuple):
    """A schema and data of it."""

    definition: SchemaDefinition
    value: Any
    view: Any
    other_view: Any
    """Of the same schema."""
    bad_view: Any
    record_name: str


AVRO = Example(
    SchemaDefinition(
        json.dumps(
            {
                "type": "record",
                "name": "Order",
                "namespace": "shop",
                "fields": [
                    {"name": "id", "type": "long"},
                    {"name": "note", "type": ["null", "string"], "default": None},
                    {"name": "raw", "type": "bytes", "default": ""},
                ],
            }
        )
    ),
    {"id": 1, "note": "x", "raw": b"\xff"},
    {"id": 1, "note": {"string": "x"}, "raw": "\u00ff"},
    {"id": 2, "note": None, "raw": ""},
    {"id": "one"},
    "shop.Order",
)
JSON = Example(
    SchemaDefinition(
        json.dumps({"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}), SchemaType.JSON
    ),
    {"id": 1, "note": "é"},
    {"id": 1, "note": "é"},
    {"id": 2},
    {"id": "one"},
    "Order",
)
PROTOBUF = Example(
    SchemaDefinition(
        """syntax = "proto3";
package depot;
message Order {
  int64 id = 1;
  string note = 2;
  message Line { string sku = 1; }
}
message Other { bool yes = 1; }
""",
        SchemaType.PROTOBUF,
    ),
    {"id": 1, "note": "x"},
    {"id": "1", "note": "x"},
    {"id": "2", "note": ""},
    {"id": "one"},
    "depot.Order",
)
EXAMPLES = {"avro": AVRO, "json": JSON, "protobuf": PROTOBUF}
