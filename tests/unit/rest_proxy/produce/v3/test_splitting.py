import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rest_proxy.errors import ProxyError
from rest_proxy.produce.v3.splitting import Splitter

_VALUES = st.recursive(
    st.none() | st.integers() | st.text() | st.sampled_from(['"', "\\", "{", "}", '\\"', "}{", "[", "é"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(st.text(max_size=4), _VALUES, max_size=4)
_SPACES = st.text(alphabet=" \t\r\n", max_size=3)


@given(st.lists(st.tuples(_OBJECTS, _SPACES), max_size=8), st.lists(st.integers(0, 2000), max_size=30), st.booleans())
def test_objects_are_found_wherever_the_body_is_cut(
    written: list[tuple[dict[str, object], str]], cuts: list[int], is_indented: bool
) -> None:
    texts = [json.dumps(item, ensure_ascii=False, indent=2 if is_indented else None).encode() for item, _ in written]
    body = b"".join(text + space.encode() for text, (_, space) in zip(texts, written, strict=True))
    splitter = Splitter(1 << 20)
    places = sorted({0, len(body), *(min(cut, len(body)) for cut in cuts)})
    found = [text for start, end in pairwise(places) for text in splitter.split(body[start:end])]
    splitter.finish()
    assert found == texts


def test_an_object_is_found_as_soon_as_it_is_complete() -> None:
    splitter = Splitter(1000)
    assert list(splitter.split(b'{"a":{"b":"}"')) == []
    assert list(splitter.split(b"}")) == []
    assert list(splitter.split(b'} {"c":1}{')) == [b'{"a":{"b":"}"}}', b'{"c":1}']
    assert list(splitter.split(b"}")) == [b"{}"]


@pytest.mark.parametrize("depth", [1, 6, 7, 8, 50, 10_000])
def test_objects_may_be_nested(depth: int) -> None:
    text = b'{"a":' * depth + b'"{"' + b"}" * depth
    assert list(Splitter(1 << 20).split(text * 3)) == [text] * 3


@pytest.mark.parametrize("body", [b"17", b"[{}]", b"}", b'{"a":1},{"b":2}', b"\x00{}", b"\xef\xbb\xbf{}"])
def test_anything_but_an_object_is_refused(body: bytes) -> None:
    with pytest.raises(ProxyError, match="must be an object") as caught:
        list(Splitter(1000).split(body))
    assert caught.value.status == 400


def test_objects_before_the_invalid_one_are_found() -> None:
    texts = Splitter(1000).split(b'{"a":1} ?')
    assert next(texts) == b'{"a":1}'
    with pytest.raises(ProxyError):
        next(texts)


def test_a_body_that_ends_within_an_object_is_refused() -> None:
    splitter = Splitter(1000)
    assert list(splitter.split(b'{}{"a":')) == [b"{}"]
    with pytest.raises(ProxyError, match="middle of a record"):
        splitter.finish()


@pytest.mark.parametrize("chunks", [[b'{"a":"' + b"x" * 100 + b'"}'], [b'{"a":"', b"x" * 60, b"x" * 60]])
def test_an_object_that_is_too_large_is_refused(chunks: list[bytes]) -> None:
    splitter = Splitter(100)
    with pytest.raises(ProxyError, match="larger than allowed threshold") as caught:
        for chunk in chunks:
            list(splitter.split(chunk))
    assert caught.value.status == 413


def test_the_limit_is_for_each_object_not_for_all_of_them() -> None:
    text = b'{"a":"' + b"x" * 80 + b'"}'
    assert list(Splitter(100).split(text * 10)) == [text] * 10


@pytest.mark.parametrize("filling", [b"x", b"}", b"\\\\", b'\\"'])
def test_a_large_object_in_single_bytes_is_scanned_once(filling: bytes) -> None:
    """Were it scanned again for every byte, this would take hours."""
    text = b'{"a":"' + filling * (300_000 // len(filling)) + b'"}'
    splitter = Splitter(1 << 20)
    found = [whole for byte in text for whole in splitter.split(bytes([byte]))]
    assert found == [text]


def test_a_hundred_thousand_objects_in_one_chunk() -> None:
    text = b'{"key":{"type":"STRING","data":"k"},"value":{"type":"JSON","data":{"a":1}}}'
    assert sum(1 for _ in Splitter(1 << 20).split(text * 100_000)) == 100_000
