"""Headers whose type is found by looking at them."""

from typing import Any

import pytest

from connect.api.data import BOOLEAN, BYTES, INT8, INT16, INT32, STRING, Schema, Type, array, mapping, struct
from connect.api.errors import DataError
from connect.converters.simple_header import SimpleHeaderConverter

CONVERTER = SimpleHeaderConverter({})


@pytest.mark.parametrize(
    ("data", "schema", "value"),
    [
        (None, None, None),
        (b"", STRING, ""),
        (b"text", STRING, "text"),
        (b"42", INT8, 42),
        (b"true", BOOLEAN, True),
        (b'{"foo":12345,"bar":0}', mapping(STRING, INT16), {"foo": 12345, "bar": 0}),
        (b"[]", Schema(Type.ARRAY), []),
        (b"\xff\x00", BYTES, b"\xff\x00"),
    ],
)
def test_a_header_is_read_as_what_it_looks_like(data: bytes | None, schema: Schema | None, value: Any) -> None:
    assert CONVERTER.to_connect_header("topic", "key", data) == (schema, value)


@pytest.mark.parametrize(
    ("schema", "value", "data"),
    [
        (STRING, None, None),
        (STRING, "text", b"text"),
        (INT32, 42, b"42"),
        (BYTES, b"\xff\x00", b"/wA="),
        (struct({"a": INT32, "b": STRING}), {"a": 1, "b": 'x"y'}, b'{"a":1,"b":"x\\"y"}'),
    ],
)
def test_a_header_is_written_as_text(schema: Schema, value: Any, data: bytes | None) -> None:
    assert CONVERTER.from_connect_header("topic", "key", schema, value) == data


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (STRING, 'three"blind\\"mice'),
        (mapping(STRING, STRING), {"foo": "123", "bar": "baz"}),
        (mapping(STRING, INT32), {"foo": 1234567890, "bar": 0}),
        (array(STRING), ["foo", "bar"]),
        (array(INT32), [1234567890, -987654321]),
    ],
)
def test_what_was_written_is_read_as_it_was(schema: Schema, value: Any) -> None:
    written = CONVERTER.from_connect_header("topic", "key", schema, value)

    assert CONVERTER.to_connect_header("topic", "key", written) == (schema, value)


def test_text_that_cannot_be_encoded_is_refused() -> None:
    with pytest.raises(DataError, match="header key"):
        CONVERTER.from_connect_header("topic", "key", STRING, "\ud800")
