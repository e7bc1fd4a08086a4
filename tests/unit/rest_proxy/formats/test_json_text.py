import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rest_proxy.errors import ProxyError
from rest_proxy.formats.json_text import JsonEncoder, compact

DOCUMENTS: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts),
)


def encoded(text: bytes) -> bytes | None:
    return JsonEncoder().encode(msgspec.Raw(text))


@given(DOCUMENTS)
def test_however_json_is_written_equal_data_are_equal_bytes(document: Any) -> None:
    compactest = msgspec.json.encode(document)
    spaced = json.dumps(document, indent=2).encode()
    assert json.loads(compact(spaced)) == json.loads(compactest)
    assert compact(spaced) == compact(json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode())


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (
            b'{"a": 1.10, "b": [1e2, 123456789012345678901234567890]}',
            b'{"a":1.10,"b":[1e2,123456789012345678901234567890]}',
        ),
        (b'{"a b" :\t"c  d",\r\n"e":[ ] }', b'{"a b":"c  d","e":[]}'),
        (b'"\\u00e9\\ud83d\\ude00\\/"', '"é😀/"'.encode()),
        (b'{"\\u0061":"\\\\u0061 \\n \\""}', b'{"a":"\\\\u0061 \\n \\""}'),
        (b'"a\\\\\\" \\u0062"', b'"a\\\\\\" b"'),
        (b'"\\u0000\\n\\u001f"', b'"\\u0000\\n\\u001f"'),
        (b"1e400", b"1e400"),
        (b'{"b":1,"a":2}', b'{"b":1,"a":2}'),
        (b"false", b"false"),
        (b'""', b'""'),
        (b"null", None),
        (b"", None),
    ],
)
def test_json_is_kept_as_text_without_what_may_be_left_out(text: bytes, data: bytes | None) -> None:
    assert encoded(text) == data


@pytest.mark.parametrize("text", [b'"\xff"', b'{"a": "\xff"}', b'"\\ud83d x"', b'"\\ude00"', b'"\xed\xa0\xbd"'])
def test_invalid_utf_8_is_refused(text: bytes) -> None:
    with pytest.raises(ProxyError, match="is not JSON in UTF-8") as error:
        encoded(text)
    assert error.value.code == 400


def test_depth_does_not_end_the_process() -> None:
    text = b"[ " * 100_000 + b"]" * 100_000
    with pytest.raises(ProxyError, match="is not JSON"):
        encoded(text)
