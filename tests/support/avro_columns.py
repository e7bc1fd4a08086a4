"""Avro schemas that have columns, with logical types among their own, and data of theirs, for Hypothesis."""

import json
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from schema_registry.formats import avro
from schema_registry.formats.avro import AvroSchema
from schema_registry.serdes.arrow.avro_reading import avro_reader
from schema_registry.serdes.avro import AvroCodec
from schema_registry.serdes.errors import UnusableSchema
from tests.support.avro_schemas import schemas
from tests.support.avro_values import views

LOGICAL: dict[str, list[Any]] = {
    "int": [
        {"type": "int", "logicalType": "date"},
        {"type": "int", "connect.type": "int8"},
        {"type": "int", "connect.type": "int16"},
        {"type": "int", "connect.name": "org.apache.kafka.connect.data.Date"},
    ],
    "long": [
        {"type": "long", "logicalType": "timestamp-millis"},
        {"type": "long", "logicalType": "timestamp-micros"},
        {"type": "long", "logicalType": "time-micros"},
        {"type": "long", "logicalType": "local-timestamp-millis"},
    ],
    "bytes": [
        {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
        {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 3},
    ],
    "string": [{"type": "string", "logicalType": "uuid"}],
}


def with_logical_types(draw: st.DrawFn, schema: Any) -> Any:
    """The schema with some of its types turned into logical ones, and nulls within others turned into texts."""
    match schema:
        case "null":
            return "string"
        case str():
            return draw(st.sampled_from([schema, *LOGICAL.get(schema, [])]))
        case list():
            return [branch if branch == "null" else with_logical_types(draw, branch) for branch in schema]
        case {"type": "array"}:
            return {**schema, "items": with_logical_types(draw, schema["items"])}
        case {"type": "map"}:
            return {**schema, "values": with_logical_types(draw, schema["values"])}
        case {"type": "record"}:
            fields = [{"name": f["name"], "type": with_logical_types(draw, f["type"])} for f in schema["fields"]]
            return {**schema, "fields": fields or [{"name": "only", "type": "int"}]}
        case {"type": "fixed"}:
            size = draw(st.sampled_from([1, 3, 4, 8, 12, 16, 20]))
            decimal = {"logicalType": "decimal", "precision": min(size * 2, 38), "scale": 1}
            return {**schema, "size": size, **draw(st.sampled_from([{}, decimal]))}
        case _:
            return schema


@st.composite
def schemas_and_data(draw: st.DrawFn) -> tuple[AvroSchema, list[bytes]]:
    """A schema and some records."""
    definition = with_logical_types(draw, draw(schemas(extras=False, namespaces=False)))
    try:
        schema = avro.parse(json.dumps(definition))
        avro_reader(schema)
        codec = AvroCodec(schema)
    except (ValueError, UnusableSchema):
        assume(False)
        raise
    found = draw(st.lists(views(schema.root), min_size=1, max_size=12))
    return schema, [codec.encode_json(view) for view in found]
