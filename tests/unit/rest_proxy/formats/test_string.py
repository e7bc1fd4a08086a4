import msgspec
import pytest

from rest_proxy.errors import ProxyError
from rest_proxy.formats.string import StringEncoder


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (b'"a"', b"a"),
        (b'""', b""),
        ('"é"'.encode(), "é".encode()),
        (b'"\\ud83d\\ude00"', "😀".encode()),
        (b"null", None),
        (b"", None),
    ],
)
def test_text_is_written_in_utf_8(text: bytes, data: bytes | None) -> None:
    assert StringEncoder().encode(msgspec.Raw(text)) == data


@pytest.mark.parametrize("text", [b"1", b"true", b"{}", b"[]", b'"\xff"', b'"\\ud83d!"'])
def test_anything_but_text_is_refused(text: bytes) -> None:
    with pytest.raises(ProxyError, match="is not text: expected a string in UTF-8, or null") as error:
        StringEncoder().encode(msgspec.Raw(text))
    assert error.value.code == 400
