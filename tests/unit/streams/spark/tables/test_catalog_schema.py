"""Spark's JSON of columns."""

import json

import pyarrow as pa

from schema_registry.serdes.arrow.types import TIMESTAMP
from streams.spark.tables.catalog import schema_from_json, schema_to_json
from streams.spark.types import list_of, map_of


def test_columns_survive_the_way_into_the_catalog_and_back() -> None:
    schema = pa.schema(
        [
            ("i", pa.int8()),
            ("l", pa.int64()),
            ("d", pa.decimal128(12, 3)),
            ("t", TIMESTAMP),
            ("b", pa.binary()),
            ("s", pa.struct([("odd name, `really`", list_of(map_of(pa.int16())))])),
        ]
    )
    document = json.loads(schema_to_json(schema, {"where": "here"}))
    assert schema_from_json(document["fields"]) == schema
    assert [field["metadata"] for field in document["fields"]] == [{"where": "here"}, *[{}] * 5]


def test_text_of_a_bounded_length_is_text() -> None:
    assert schema_from_json([{"name": "a", "type": "varchar(10)"}]) == pa.schema([("a", pa.string())])
