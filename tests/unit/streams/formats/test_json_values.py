"""Values as JSON of the REST API."""

import datetime as dt
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.formats.json_values import from_json, to_json
from streams.model.types import SqlType, parse_type
from tests.support import sql_records

encode = msgspec.json.Encoder(decimal_format="number").encode
decode = msgspec.json.Decoder(float_hook=Decimal).decode


@pytest.mark.parametrize(
    ("kind", "value", "json"),
    [
        ("DECIMAL(4, 2)", Decimal("1.50"), "1.50"),
        ("BYTES", b"ab", '"YWI="'),
        ("DATE", dt.date(2020, 1, 2), '"2020-01-02"'),
        ("TIME", dt.time(1, 2), '"01:02"'),
        ("TIME", dt.time(1, 2, 3), '"01:02:03"'),
        ("TIME", dt.time(1, 2, 3, 4000), '"01:02:03.004"'),
        ("TIMESTAMP", dt.datetime(2020, 1, 2, 3, 4, 5, 6000, tzinfo=dt.UTC), '"2020-01-02T03:04:05.006"'),
        ("MAP<INTEGER, DATE>", {1: dt.date(2020, 1, 2), 2: None}, '{"1":"2020-01-02","2":null}'),
        ("STRUCT<A INTEGER, B STRING>", {"A": 1, "B": None}, '{"A":1,"B":null}'),
        ("DOUBLE", float("nan"), "null"),
        ("STRING", None, "null"),
    ],
)
def test_values_have_the_json_of_ksqldbs_clients(kind: str, value: Any, json: str) -> None:
    assert encode(to_json(value, parse_type(kind))).decode() == json


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_json_is_read_back(data: st.DataObject) -> None:
    kind: SqlType = data.draw(sql_records.kinds_of("JSON"))
    value = data.draw(sql_records.values_of(kind, "JSON").filter(_is_finite))
    assert from_json(decode(encode(to_json(value, kind))), kind) == value


def _is_finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or value - value == 0


@pytest.mark.parametrize(
    ("kind", "json", "message"),
    [
        ("INTEGER", 1 << 31, "out of the range"),
        ("INTEGER", True, "expected INTEGER, not a boolean"),
        ("INTEGER", "1", "expected INTEGER, not text"),
        ("BYTES", "!", "base64"),
        ("DATE", "2020-13-01", "DATE is written as 2026-12-31"),
        ("TIME", "25:00", "TIME is written as"),
        ("TIMESTAMP", 5, "expected TIMESTAMP, not a number"),
        ("DECIMAL(3, 1)", 1.25, "does not fit"),
        ("STRUCT<A ARRAY<BOOLEAN>>", {"a": [1]}, r"\.A\[0\]: expected BOOLEAN"),
    ],
)
def test_other_json_is_refused(kind: str, json: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_json(json, parse_type(kind))
