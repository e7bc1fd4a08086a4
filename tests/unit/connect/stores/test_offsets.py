"""Keys and values of the offsets topic, as Kafka Connect writes and looks them up."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from connect.api.errors import DataError
from connect.stores.offsets import offset_key, offset_value


@pytest.mark.parametrize(
    ("partition", "key"),
    [
        ({"filename": "/tmp/ü"}, '["c",{"filename":"/tmp/ü"}]'),
        ({"b": True, "a": None}, '["c",{"a":null,"b":true}]'),
        # The order of Java's HashMap: JDBC's connector would look for exactly these bytes.
        ({"table": "t", "protocol": "1"}, '["c",{"protocol":"1","table":"t"}]'),
        ({"protocol": "1", "table": "t"}, '["c",{"protocol":"1","table":"t"}]'),
        ({}, '["c",{}]'),
    ],
)
def test_keys_have_the_bytes_that_kafka_connect_looks_for(partition: dict[str, Any], key: str) -> None:
    assert offset_key("c", partition) == key.encode()


def test_values_are_json_and_none_is_a_tombstone() -> None:
    assert offset_value({"position": 10, "at": 1.5, "raw": b"\x00\x01", "x": None}) == (
        b'{"position":10,"at":1.5,"raw":"AAE=","x":null}'
    )
    assert offset_value(None) is None


@pytest.mark.parametrize(
    "value", [[1], {"a": 1}, Decimal(1), dt.date(2026, 1, 1), 1 << 63, float("nan"), float("inf"), object()]
)
def test_only_plain_values_may_be_written(value: object) -> None:
    with pytest.raises(DataError, match="Offsets may only contain primitive types as values, but field x contains"):
        offset_value({"x": value})


def test_only_text_may_be_a_key() -> None:
    with pytest.raises(DataError, match="Offsets may only use String keys"):
        offset_key("c", {1: "a"})  # type: ignore[dict-item]  # what a connector's author may do all the same
