"""Text in an encoding, as Kafka Connect's StringConverter reads and writes it."""

from typing import Any

import pytest

from connect.api.data import INT32, OPTIONAL_STRING, STRING, Schema, struct
from connect.api.errors import ConfigError, DataError
from connect.converters.string import StringConverter

TEXT = "a string, ein Wörtchen, 日本"


@pytest.mark.parametrize(
    ("schema", "value", "data"),
    [
        (STRING, TEXT, TEXT.encode()),
        (STRING, "", b""),
        (STRING, None, None),
        (None, None, None),
        (None, True, b"true"),
        (None, 1.5e10, b"1.5E10"),
        (struct({"a": INT32}), {"a": 1}, b"Struct{a=1}"),
        (None, {"a": [1, None]}, b"{a=[1, null]}"),
        (None, b"\x00\xff", b"AP8="),
    ],
)
def test_any_value_is_written_as_java_shows_it(schema: Schema | None, value: Any, data: bytes | None) -> None:
    converter = StringConverter({}, is_key=True)

    assert converter.from_connect("topic", schema, value) == data
    assert converter.from_connect_header("topic", "key", schema, value) == data


@pytest.mark.parametrize(("data", "text"), [(TEXT.encode(), TEXT), (b"", ""), (None, None), (b"a\xffb", "a\ufffdb")])
def test_bytes_are_read_as_text_that_may_be_null(data: bytes | None, text: str | None) -> None:
    converter = StringConverter({}, is_key=False)

    assert converter.to_connect("topic", data) == (OPTIONAL_STRING, text)
    assert converter.to_connect_header("topic", "key", data) == (OPTIONAL_STRING, text)


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("ISO-8859-1", b"W\xf6rtchen"),
        ("UTF-16", b"\xfe\xff" + "Wörtchen".encode("utf-16-be")),
        ("UTF-16LE", "Wörtchen".encode("utf-16-le")),
    ],
)
def test_the_encoding_may_be_told(encoding: str, data: bytes) -> None:
    converter = StringConverter({"converter.encoding": encoding})

    assert converter.from_connect("topic", STRING, "Wörtchen") == data
    assert converter.to_connect("topic", data) == (OPTIONAL_STRING, "Wörtchen")


def test_text_in_utf_16_without_a_mark_has_the_big_end_first() -> None:
    converter = StringConverter({"converter.encoding": "UTF-16"})

    assert converter.to_connect("topic", b"\x00a\x00b") == (OPTIONAL_STRING, "ab")


@pytest.mark.parametrize(("encoding", "text"), [("US-ASCII", "ö"), ("UTF-8", "\ud800")])
def test_text_that_the_encoding_does_not_have_is_refused(encoding: str, text: str) -> None:
    with pytest.raises(DataError):
        StringConverter({"converter.encoding": encoding}).from_connect("topic", STRING, text)


@pytest.mark.parametrize("encoding", ["UTF-9", "base64", "a\x00b"])
def test_an_unknown_encoding_is_refused(encoding: str) -> None:
    with pytest.raises(ConfigError, match="converter.encoding"):
        StringConverter({"converter.encoding": encoding})
