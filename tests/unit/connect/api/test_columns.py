"""Connect's schemas have the columns that decoding by their Avro schemas gives, and values fit them."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from connect.api import data
from connect.api.columns import array_of, arrow_schema, arrow_type, connect_schema
from connect.api.data import Schema, array, decimal, mapping, struct
from connect.converters.avro.config import AvroConfig
from connect.converters.avro.definitions import from_connect_schema
from connect.testing.samples import EVERY_TYPE
from schema_registry.formats import avro
from schema_registry.serdes.arrow.avro_reading import avro_reader

CONFIG = AvroConfig.parse({"schema.registry.url": "http://registry"})
MOMENT = dt.datetime(2024, 2, 29, 12, 30, 15, 123000, tzinfo=dt.UTC)
WIDE = decimal(2).but(parameters={"scale": "2", "connect.decimal.precision": "50"})


@pytest.mark.parametrize(
    ("schema", "value", "type_"),
    [
        (data.DATE, dt.date(2024, 2, 29), pa.date32()),
        (data.TIME, dt.time(23, 59, 59, 999000), pa.time32("ms")),
        (data.TIMESTAMP, MOMENT, pa.timestamp("us", "UTC")),
        (decimal(2), Decimal("-1.25"), pa.decimal128(38, 2)),
        (WIDE, Decimal("-1.25"), pa.decimal256(50, 2)),
        (mapping(data.STRING, data.TIME), {"a": dt.time(1)}, pa.map_(pa.string(), pa.time32("ms"))),
    ],
)
def test_logical_types_have_one_type_each(schema: Schema, value: Any, type_: pa.DataType) -> None:
    made = array_of(schema, [value, None])
    assert made.type == type_
    assert made.to_pylist(maps_as_pydicts="strict") == [value, None]


@pytest.mark.parametrize("name", sorted(EVERY_TYPE))
def test_columns_are_those_of_decoding_avro(name: str) -> None:
    schema = struct({"f": EVERY_TYPE[name][0]}, name="R")
    decoded = avro_reader(avro.parse(from_connect_schema(schema, CONFIG)))
    assert decoded.type == arrow_type(schema)


def test_maps_whose_keys_are_not_text_are_lists_of_entries() -> None:
    schema = struct({"m": mapping(data.INT32, array(mapping(data.INT64, data.STRING)))})
    value = {"m": {1: [{2: "a"}], 3: []}}
    expected = {"m": [{"key": 1, "value": [[{"key": 2, "value": "a"}]]}, {"key": 3, "value": []}]}
    assert array_of(schema, [value, {"m": None}]).to_pylist() == [expected, {"m": None}]


def test_required_columns_are_kept_so_for_files() -> None:
    schema = struct({"a": data.INT32, "b": data.OPTIONAL_STRING, "c": array(data.INT32)})
    assert [column.nullable for column in arrow_schema(schema)] == [False, True, False]
    assert [column.nullable for column in arrow_type(schema)] == [True, True, True]
    found, _ = connect_schema(arrow_schema(schema))
    assert found == schema
