"""Values made into values of another type, as Kafka Connect's Values does it."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from connect.api.conversion import convert
from connect.api.data import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    OPTIONAL_INT8,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    array,
    decimal,
    mapping,
    struct,
)
from connect.api.errors import DataError

MOMENT = dt.datetime(2019, 8, 23, 14, 34, 54, 346000, tzinfo=dt.UTC)
DAY = dt.date(2019, 8, 23)
DAYS = 18131
MILLISECONDS = 1566570894346
EMPTY = struct({})

CONVERTED: list[tuple[Schema, Any, Any]] = [
    (OPTIONAL_INT8, None, None),
    (BOOLEAN, False, False),
    (BOOLEAN, "true", True),
    (BOOLEAN, "0", False),
    (BOOLEAN, "1", True),
    (BOOLEAN, 0.9, False),
    (INT8, "1", 1),
    (INT8, 300, 44),
    (INT16, 40000, -25536),
    (INT32, 2**31, -(2**31)),
    (INT64, 2**63, -(2**63)),
    (INT64, 1e30, 2**63 - 1),
    (INT64, -1e30, -(2**63)),
    (INT64, float("nan"), 0),
    (INT64, "12.9", 12),
    (INT64, Decimal("12.9"), 12),
    (INT64, MOMENT, MILLISECONDS),
    (INT32, DAY, DAYS),
    (INT32, dt.time(0, 0, 1), 1000),
    (FLOAT32, "1", 1.0),
    (FLOAT32, 0.1, 0.10000000149011612),
    (FLOAT32, 1e300, float("inf")),
    (FLOAT64, 1, 1.0),
    (FLOAT64, Decimal("1.5"), 1.5),
    (STRING, 'three"blind', 'three"blind'),
    (STRING, {"a": 1}, '{"a":1}'),
    (BYTES, bytearray(b"ab"), b"ab"),
    (BYTES, Decimal("1.56"), b"\x00\x9c"),
    (decimal(1), 1.0, Decimal("1.0")),
    (decimal(1), 1, Decimal("1.0")),
    (decimal(1), "1.0", Decimal("1.0")),
    (decimal(1), Decimal("1.0"), Decimal("1.0")),
    (decimal(1), b"\x0a", Decimal("1.0")),
    (DATE, DAY, DAY),
    (DATE, MOMENT, DAY),
    (DATE, str(DAYS), DAY),
    (DATE, DAYS, DAY),
    (DATE, "2019-08-23", DAY),
    (TIME, MOMENT, dt.time(14, 34, 54, 346000)),
    (TIME, dt.time(1), dt.time(1)),
    (TIME, "3600000", dt.time(1)),
    (TIME, "14:34:54.346Z", dt.time(14, 34, 54, 346000)),
    (TIMESTAMP, MOMENT, MOMENT),
    (TIMESTAMP, DAY, dt.datetime(2019, 8, 23, tzinfo=dt.UTC)),
    (TIMESTAMP, dt.time(1), dt.datetime(1970, 1, 1, 1, tzinfo=dt.UTC)),
    (TIMESTAMP, str(MILLISECONDS), MOMENT),
    (TIMESTAMP, MILLISECONDS, MOMENT),
    (array(INT8), "[1, 2, 32768]", [1, 2, 32768]),
    (array(INT8), ["a"], ["a"]),
    (mapping(STRING, INT8), '{"a": 1}', {"a": 1}),
    (EMPTY, {}, {}),
]

REFUSED: list[tuple[Schema, Any]] = [
    (INT8, None),
    (DATE, None),
    (decimal(1), None),
    (EMPTY, None),
    (EMPTY, ""),
    (BOOLEAN, '"green"'),
    (INT8, "twelve"),
    (INT8, True),
    (INT8, [1]),
    (INT64, "1e99999999"),
    (FLOAT64, "NaN"),
    (BYTES, "text"),
    (BYTES, Decimal("NaN")),
    (decimal(1), True),
    (decimal(1), float("inf")),
    (TIME, -1),
    (array(INT8), "[1, 2, 3,,,]"),
    (array(INT8), '[1, 2, 3, "four",,,]'),
    (mapping(STRING, INT8), ' { "foo" :  1234567890 ,, "bar" : 0 }  '),
    (mapping(STRING, INT8), " { ,,  , , }  "),
    (mapping(STRING, INT8), [1]),
]


@pytest.mark.parametrize(("target", "value", "expected"), CONVERTED)
def test_a_value_becomes_one_of_another_type(target: Schema, value: Any, expected: Any) -> None:
    found = convert(target, value)

    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(("target", "value"), REFUSED)
def test_a_value_that_has_no_such_form_is_refused(target: Schema, value: Any) -> None:
    with pytest.raises(DataError):
        convert(target, value)


def test_a_struct_becomes_text_with_the_names_of_its_schema() -> None:
    schema = struct({"a": INT32, "b": STRING})

    assert convert(STRING, {"b": "x"}, schema=schema) == '{"a":null,"b":"x"}'
