"""Bytes as they are."""

from typing import Any

import pytest

from connect.api.data import BYTES, INT32, OPTIONAL_BYTES, Schema
from connect.api.errors import DataError
from connect.converters.byte_array import ByteArrayConverter

CONVERTER = ByteArrayConverter({"converter.type": "header"}, is_key=False)


@pytest.mark.parametrize("schema", [None, BYTES, OPTIONAL_BYTES])
@pytest.mark.parametrize(
    ("value", "data"), [(b"\x00\xff", b"\x00\xff"), (bytearray(b"ab"), b"ab"), (memoryview(b"ab"), b"ab"), (None, None)]
)
def test_bytes_are_written_as_they_are(schema: Schema | None, value: Any, data: bytes | None) -> None:
    assert CONVERTER.from_connect("topic", schema, value) == data
    assert CONVERTER.from_connect_header("topic", "key", schema, value) == data


@pytest.mark.parametrize("data", [b"", b"\x00\xff", None])
def test_bytes_are_read_as_they_are(data: bytes | None) -> None:
    assert CONVERTER.to_connect("topic", data) == (OPTIONAL_BYTES, data)
    assert CONVERTER.to_connect_header("topic", "key", data) == (OPTIONAL_BYTES, data)


def test_another_schema_is_refused() -> None:
    with pytest.raises(DataError, match="^Invalid schema type for ByteArrayConverter: INT32$"):
        CONVERTER.from_connect("topic", INT32, b"")


def test_another_value_is_refused() -> None:
    with pytest.raises(DataError, match="ByteArrayConverter is not compatible with objects of type str"):
        CONVERTER.from_connect("topic", BYTES, "text")
