"""What bytes seem to be, without a registry."""

import pytest

from streams.formats.guessing import NO_DATA, FormatGuess
from streams.formats.registry import RegistrySettings, Schemas

START = (1_577_836_800_000).to_bytes(8, "big")


def guess(*data: bytes | None) -> tuple[list[str], str]:
    found = FormatGuess(Schemas(RegistrySettings()))
    return [found.text(one) for one in data], found.names


@pytest.mark.parametrize(
    ("data", "text", "names"),
    [
        (b'{"a": 1}', '{"a": 1}', "JSON or KAFKA_STRING"),
        (b"12", "12", "JSON or KAFKA_STRING"),
        (b"hello", "hello", "KAFKA_STRING"),
        (b"eight by", "eight by", "KAFKA_STRING"),
        (b"", "", "KAFKA_STRING"),
        (b"\x00\x00\x00\x05", "5", "KAFKA_INT"),
        (b"\x00\x00\x00\x00\x00\x00\x00\x05", "5", "KAFKA_BIGINT or KAFKA_DOUBLE"),
        (b"k" + START, "[k@1577836800000/-]", "HOPPING(KAFKA_STRING) or TUMBLING(KAFKA_STRING)"),
        (b"k" + START + START, "[k@1577836800000/1577836800000]", "SESSION(KAFKA_STRING)"),
        (b"\xff\xfe\xfd", "\\xff\\xfe\\xfd", "UNRECOGNIZED_BYTES"),
        (b"\x00\x00\x00\x00\x09a", "\\x00\\x00\\x00\\x00\\ta", "UNRECOGNIZED_BYTES"),
    ],
)
def test_data_is_recognised(data: bytes, text: str, names: str) -> None:
    assert guess(data) == ([text], names)


def test_with_each_record_fewer_formats_are_left() -> None:
    assert guess(b"1", b"x") == (["1", "x"], "KAFKA_STRING")
    assert guess(None) == (["<null>"], NO_DATA)
    assert guess(None, b"[]") == (["<null>", "[]"], "JSON or KAFKA_STRING")
    assert guess(b"hello", b"\x00\x00\x00\x05") == (["hello", "5"], "KAFKA_INT")
