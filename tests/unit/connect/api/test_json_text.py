"""Values as JSON."""

import json
import math
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from connect.api import data
from connect.api.data import Schema, Value
from connect.api.errors import DataError
from connect.api.json_text import json_bytes

INNER = data.struct({"a": data.INT32, "b": data.OPTIONAL_STRING})


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (None, None, "null"),
        (None, {"a": [1, "x", None, True]}, '{"a":[1,"x",null,true]}'),
        (None, {1: "x"}, '{"1":"x"}'),
        (INNER, {"a": 1}, '{"a":1,"b":null}'),
        (data.array(INNER), [{"a": 1}], '[{"a":1,"b":null}]'),
        (data.mapping(data.STRING, INNER), {"k": {"a": 1}}, '{"k":{"a":1,"b":null}}'),
        (data.DATE, date(1970, 1, 3), "2"),
        (data.TIME, time(0, 0, 1), "1000"),
        (data.TIMESTAMP, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "1000"),
        (data.decimal(2), Decimal("12.30"), "12.30"),
        (data.BYTES, b"\x00\xff", '"AP8="'),
        (data.FLOAT64, 0.5, "0.5"),
        (data.STRING, 'naïve "日本"', '"naïve \\"日本\\""'),
    ],
)
def test_a_value_has_the_shape_of_the_json_converter(schema: Schema | None, value: Value, text: str) -> None:
    assert json_bytes(schema, value).decode() == text


@pytest.mark.parametrize("value", [math.nan, math.inf, Decimal("NaN"), object(), {"a": [math.nan]}, 2**70, {(1,): 1}])
def test_what_json_does_not_have_is_bad_data(value: Value) -> None:
    try:
        written = json_bytes(None, value)
    except DataError:
        return
    assert json.loads(written) == value, "what is written must be the same"


def test_what_contains_itself_is_bad_data() -> None:
    endless: list[Value] = []
    endless.append(endless)
    with pytest.raises(DataError):
        json_bytes(None, endless)
