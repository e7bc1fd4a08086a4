import base64

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rest_proxy.errors import ProxyError
from rest_proxy.formats.binary import BinaryEncoder, from_base64, to_base64


@given(st.binary())
def test_any_bytes_survive(data: bytes) -> None:
    assert to_base64(data) == base64.b64encode(data).decode()
    assert BinaryEncoder().encode(msgspec.Raw(msgspec.json.encode(to_base64(data)))) == data
    assert from_base64(to_base64(data).rstrip("=")) == data


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (b'"Zm9v"', b"foo"),
        (b'"Zm9vYg=="', b"foob"),
        (b'"Zm9vYg"', b"foob"),
        (b'"Zm9v="', b"foo"),
        (b'"+\\/+\\u002f"', b"\xfb\xff\xbf"),
        (b'""', b""),
        (b"null", None),
        (b"", None),
    ],
)
def test_base64_is_decoded_as_in_confluents_proxy(text: bytes, data: bytes | None) -> None:
    assert BinaryEncoder().encode(msgspec.Raw(text)) == data


@pytest.mark.parametrize(
    "text", [b'"not base64"', b'"fooba"', b'"-_-_"', b'"Zm=v"', b'"Zm9v\\n"', b'"\xff\xff\xff\xff"', b"1", b"{}", b"[]"]
)
def test_invalid_base64_is_refused_with_what_is_allowed(text: bytes) -> None:
    with pytest.raises(ProxyError, match=r"is not base64: expected a string of A-Z, a-z, 0-9, \+ and /, or null") as e:
        BinaryEncoder().encode(msgspec.Raw(text))
    assert e.value.code == 400


def test_long_data_is_cut_in_messages() -> None:
    with pytest.raises(ProxyError) as error:
        BinaryEncoder().encode(msgspec.Raw(b'"' + b"!" * 100_000 + b'"'))
    assert len(error.value.message) < 300
