"""Records without a value."""

import pyarrow as pa
import pytest

from streams.formats.nulls import is_null_value, without_null_documents
from streams.model.sources import Format, FormatName

ID, GUID = b"\x00\x00\x00\x00\x07", b"\x01" + bytes(range(16))


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("JSON", None, True),
        ("JSON", b"null", True),
        ("JSON", b" null\r\n", True),
        ("JSON", b"", False),
        ("JSON", b"nullx", False),
        ("JSON", b'"null"', False),
        ("JSON", ID + b"null", False),
        ("JSON_SR", ID + b"null", True),
        ("JSON_SR", GUID + b"null ", True),
        ("JSON_SR", b"null", True),
        ("JSON_SR", b"", False),
        ("JSON_SR", ID + b"{}", False),
        ("KAFKA", b"null", False),
        ("AVRO", None, True),
    ],
)
def test_null_values(name: FormatName, data: bytes | None, expected: bool) -> None:
    assert is_null_value(data, Format(name=name)) is expected
    values = pa.array([b"5", data, None, b"x" * 100], pa.binary())
    wanted = [b"5", None if expected else data, None, b"x" * 100]
    assert without_null_documents(values, Format(name=name)).to_pylist() == wanted


def test_no_values() -> None:
    assert without_null_documents(pa.array([], pa.binary()), Format(name="JSON")).to_pylist() == []
