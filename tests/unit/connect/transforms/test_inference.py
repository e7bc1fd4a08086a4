import datetime as dt
from decimal import Decimal

import pytest

from connect.api.data import (
    DATE,
    OPTIONAL_BOOLEAN,
    OPTIONAL_BYTES,
    OPTIONAL_FLOAT64,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    TIME,
    TIMESTAMP,
    Schema,
    Value,
    array,
    decimal,
    struct,
)
from connect.api.errors import DataError
from connect.transforms.inference import schema_of


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, OPTIONAL_BOOLEAN),
        (1, OPTIONAL_INT64),
        (1.5, OPTIONAL_FLOAT64),
        ("x", OPTIONAL_STRING),
        (b"x", OPTIONAL_BYTES),
        (None, OPTIONAL_STRING),
        (Decimal("1.50"), decimal(2, optional=True)),
        (dt.date(2020, 1, 1), DATE.as_optional()),
        (dt.time(1), TIME.as_optional()),
        (dt.datetime(2020, 1, 1, tzinfo=dt.UTC), TIMESTAMP.as_optional()),
        ([], array(OPTIONAL_STRING, optional=True)),
        ([None, 1, 2.5], array(OPTIONAL_FLOAT64, optional=True)),
        ({"a": 1, "n": None}, struct({"a": OPTIONAL_INT64}, optional=True)),
        (
            [{"a": 1}, {"a": 1.5, "b": [1]}, {"b": [2], "c": {"d": 1}}, {"c": {"e": 1}}],
            array(
                struct(
                    {
                        "a": OPTIONAL_FLOAT64,
                        "b": array(OPTIONAL_INT64, optional=True),
                        "c": struct({"d": OPTIONAL_INT64, "e": OPTIONAL_INT64}, optional=True),
                    },
                    optional=True,
                ),
                optional=True,
            ),
        ),
    ],
)
def test_values_tell_their_schema(value: Value, expected: Schema) -> None:
    assert schema_of(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, OPTIONAL_INT32),
        (2**31, OPTIONAL_INT64),
        ([1, 2**31], array(OPTIONAL_INT64, optional=True)),
        ([1, 2], array(OPTIONAL_INT32, optional=True)),
    ],
)
def test_integers_are_narrow_when_wanted(value: Value, expected: Schema) -> None:
    assert schema_of(value, narrow=True) == expected


def nested(depth: int, *, in_lists: bool) -> Value:
    value: Value = 1
    for _ in range(depth):
        value = [value] if in_lists else {"a": value}
    return value


@pytest.mark.parametrize(
    "value",
    [
        2**63,
        [1, "a"],
        [{"a": 1}, {"a": "x"}],
        object(),
        nested(200, in_lists=True),
        nested(200, in_lists=False),
        {"a": {1, 2}},
    ],
)
def test_values_without_a_schema_are_refused(value: Value) -> None:
    with pytest.raises(DataError):
        schema_of(value)
