"""Numbers and booleans as Kafka's serialisers write them."""

from typing import Any

import pytest

from connect.api.data import (
    BOOLEAN,
    FLOAT64,
    OPTIONAL_BOOLEAN,
    OPTIONAL_FLOAT32,
    OPTIONAL_FLOAT64,
    OPTIONAL_INT16,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    Schema,
)
from connect.api.errors import DataError
from connect.converters.numbers import (
    BooleanConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    NumberConverter,
    ShortConverter,
)

ALL = [ShortConverter, IntegerConverter, LongConverter, FloatConverter, DoubleConverter, BooleanConverter]

SAMPLES: list[tuple[type[NumberConverter], Schema, Any, bytes]] = [
    (ShortConverter, OPTIONAL_INT16, -32768, b"\x80\x00"),
    (IntegerConverter, OPTIONAL_INT32, 1, b"\x00\x00\x00\x01"),
    (LongConverter, OPTIONAL_INT64, -2, b"\xff\xff\xff\xff\xff\xff\xff\xfe"),
    (FloatConverter, OPTIONAL_FLOAT32, 1.5, b"\x3f\xc0\x00\x00"),
    (DoubleConverter, OPTIONAL_FLOAT64, 1.5, b"\x3f\xf8\x00\x00\x00\x00\x00\x00"),
    (BooleanConverter, OPTIONAL_BOOLEAN, True, b"\x01"),
    (BooleanConverter, OPTIONAL_BOOLEAN, False, b"\x00"),
]


@pytest.mark.parametrize(("kind", "schema", "value", "data"), SAMPLES)
def test_a_number_is_as_many_bytes_as_its_type_has(
    kind: type[NumberConverter], schema: Schema, value: Any, data: bytes
) -> None:
    converter = kind({}, is_key=True)

    assert converter.from_connect("topic", schema, value) == data
    assert converter.from_connect("topic", None, value) == data
    assert converter.from_connect_header("topic", "key", schema, value) == data
    assert converter.to_connect("topic", data) == (schema, value)
    assert converter.to_connect_header("topic", "key", data) == (schema, value)


@pytest.mark.parametrize("kind", ALL)
def test_null_is_null_both_ways(kind: type[NumberConverter]) -> None:
    converter = kind({})

    assert converter.from_connect("topic", None, None) is None
    assert converter.to_connect("topic", None) == (kind.schema, None)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("size", [0, 3, 9])
def test_too_many_or_too_few_bytes_are_refused(kind: type[NumberConverter], size: int) -> None:
    with pytest.raises(DataError, match=f"^Failed to deserialize {kind.type_name}"):
        kind({}).to_connect("topic", b"\x00" * size)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (ShortConverter, 32768),
        (IntegerConverter, "1"),
        (IntegerConverter, True),
        (LongConverter, 2**63),
        (LongConverter, 1.5),
        (FloatConverter, 1e300),
        (DoubleConverter, 1),
        (BooleanConverter, 1),
    ],
)
def test_another_value_is_refused(kind: type[NumberConverter], value: Any) -> None:
    with pytest.raises(DataError, match=f"^Failed to serialize to {kind.type_name}"):
        kind({}).from_connect("topic", None, value)


def test_booleans_have_no_other_schema() -> None:
    assert BooleanConverter({}).from_connect("topic", BOOLEAN, True) == b"\x01"
    with pytest.raises(DataError, match="^Invalid schema type for BooleanConverter: FLOAT64$"):
        BooleanConverter({}).from_connect("topic", FLOAT64, 1.5)


def test_a_byte_that_is_no_boolean_is_refused() -> None:
    with pytest.raises(DataError, match="unexpected byte 2"):
        BooleanConverter({}).to_connect("topic", b"\x02")
