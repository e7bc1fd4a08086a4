"""Text and bytes as they are."""

import pyarrow as pa
import pytest

from streams.spark.decoding.plain import BytesDecoder, TextDecoder


@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary()])
def test_bytes_stay_what_they_are(type_: pa.DataType) -> None:
    decoded = BytesDecoder().decode(pa.array([b"\xff", None, b""], type=type_), "t")
    assert [(p.rows.tolist(), p.data.to_pylist(), p.data.type) for p in decoded.parts] == [
        ([0, 2], [b"\xff", b""], pa.binary())
    ]
    assert decoded.nulls.tolist() == [1]


@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary()])
def test_text_is_text(type_: pa.DataType) -> None:
    decoded = TextDecoder().decode(pa.array(["ž".encode(), None, b""], type=type_), "t")
    assert [(p.rows.tolist(), p.data.to_pylist(), p.data.type) for p in decoded.parts] == [
        ([0, 2], ["ž", ""], pa.string())
    ]


def test_what_is_no_text_gets_marks_as_connect_has_them() -> None:
    decoded = TextDecoder().decode(pa.array([b"a", b"b\xffc"]), "t")
    assert [(p.rows.tolist(), p.data.to_pylist()) for p in decoded.parts] == [([0, 1], ["a", "b\ufffdc"])]
    assert decoded.bad == []


def test_what_is_no_text_is_bad_where_that_is_asked_for() -> None:
    decoded = TextDecoder(is_strict=True).decode(pa.array([b"a", b"\xff", b"c"]), "t")
    assert [(p.rows.tolist(), p.data.to_pylist()) for p in decoded.parts] == [([0, 2], ["a", "c"])]
    assert [row for row, _ in decoded.bad] == [1]


def test_nothing_but_nulls_has_no_parts() -> None:
    assert TextDecoder().decode(pa.array([None], type=pa.binary()), "t").parts == []
