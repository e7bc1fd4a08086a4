"""The formats KAFKA, DELIMITED and NONE, windows in keys, and columns of headers."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from streams.formats.columns import HEADERS, ColumnDecoder, ColumnEncoder
from streams.formats.errors import DecodeError, EncodeError, FormatError
from streams.formats.registry import RegistrySettings, Schemas
from streams.formats.values import RecordCodec
from streams.model.sources import Column, Format, FormatName, HeaderColumn, Source, WindowInfo

NO_REGISTRY = RegistrySettings()
SCHEMAS = Schemas(NO_REGISTRY)


def source(
    format_: FormatName,
    *columns: tuple[str, str],
    key: str | None = None,
    window: WindowInfo | None = None,
    headers: tuple[HeaderColumn, ...] = (),
    delimiter: str = ",",
) -> Source:
    return Source(
        name="S",
        kind="STREAM",
        topic="t",
        key_format=Format(name="NONE" if key is None else "KAFKA"),
        value_format=Format(name=format_, delimiter=delimiter),
        key=() if key is None else (Column("K", key),),
        value=tuple(Column(*column) for column in columns),
        window=window,
        headers=headers,
    )


def written(given: Source, **row: Any) -> bytes | None:
    return RecordCodec(given, SCHEMAS).encode(row)[1]


def read(given: Source, value: bytes | None) -> dict[str, Any]:
    found = RecordCodec(given, SCHEMAS).decode(None, value)
    decoded = ColumnDecoder(given, NO_REGISTRY).decode(pa.nulls(1, pa.binary()), pa.array([value], pa.binary()))
    assert decoded.failures == []
    assert {name: array.null_count == 1 for name, array in decoded.columns.items()} == {
        name: value is None for name, value in found.items()
    }
    return found


def problem(given: Source, value: bytes) -> str:
    with pytest.raises(DecodeError) as raised:
        RecordCodec(given, SCHEMAS).decode(None, value)
    decoded = ColumnDecoder(given, NO_REGISTRY).decode(pa.nulls(1, pa.binary()), pa.array([value], pa.binary()))
    assert decoded.failures == [(0, "value", raised.value.message)]
    return raised.value.message


# --- KAFKA -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "data"),
    [
        ("INTEGER", -2, b"\xff\xff\xff\xfe"),
        ("BIGINT", 1, b"\x00\x00\x00\x00\x00\x00\x00\x01"),
        ("DOUBLE", 1.5, b"\x3f\xf8\x00\x00\x00\x00\x00\x00"),
        ("STRING", "ä", b"\xc3\xa4"),
        ("STRING", "", b""),
        ("BYTES", b"\x00\xff", b"\x00\xff"),
    ],
)
def test_kafka_writes_what_its_serializers_do(kind: str, value: object, data: bytes) -> None:
    given = source("KAFKA", ("A", kind))
    assert written(given, A=value) == data
    assert read(given, data) == {"A": value}


def test_kafka_replaces_what_is_no_text_and_refuses_other_lengths() -> None:
    assert read(source("KAFKA", ("A", "STRING")), b"a\xff") == {"A": "a\ufffd"}
    assert problem(source("KAFKA", ("A", "INTEGER")), b"\x00") == "expected 4 bytes, not 1"
    assert problem(source("KAFKA", ("A", "BIGINT")), b"") == "expected 8 bytes, not 0"


def test_kafka_holds_one_plain_column() -> None:
    with pytest.raises(FormatError, match="cannot hold the column A of type BOOLEAN"):
        RecordCodec(source("KAFKA", ("A", "BOOLEAN")), SCHEMAS)
    with pytest.raises(FormatError, match="holds one column, but the value of S has 2"):
        ColumnEncoder(source("KAFKA", ("A", "INTEGER"), ("B", "INTEGER")), NO_REGISTRY)


# --- DELIMITED -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "line"),
    [
        (["a", "b"], b"a,b"),
        (["a,b", 'c"d'], b'"a,b","c""d"'),
        (["", ""], b'"",'),
        (["x\ny", "z\r"], b'"x\ny","z\r"'),
        ([" a", "b "], b'" a","b "'),
        (["#", "#x"], b'"#","#x"'),
        (["ä", "ä"], '"ä",ä'.encode()),
        ([None, None], b","),
    ],
)
def test_cells_are_quoted_as_commons_csv_does(values: list[str | None], line: bytes) -> None:
    given = source("DELIMITED", ("A", "STRING"), ("B", "STRING"))
    assert written(given, A=values[0], B=values[1]) == line
    assert read(given, line) == {"A": values[0] or None, "B": values[1] or None}


def test_all_plain_types_have_a_cell() -> None:
    kinds = ["BOOLEAN", "BIGINT", "DOUBLE", "DECIMAL(5, 2)", "BYTES", "DATE", "TIME", "TIMESTAMP"]
    moment = dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)
    values = [True, -3, 1e7, Decimal("1.5"), b"ab", dt.date(1970, 1, 3), dt.time(0, 0, 1), moment]
    given = source("DELIMITED", *[(f"C{place}", kind) for place, kind in enumerate(kinds)], delimiter="|")
    row = {f"C{place}": value for place, value in enumerate(values)}
    assert written(given, **row) == b"true|-3|1.0E7|1.50|YWI=|2|1000|1000"
    assert read(given, b"TRUE|-3|1e7|1.5|YWI=|2|1000|1000") == row


def test_only_the_first_line_counts() -> None:
    given = source("DELIMITED", ("A", "INTEGER"), ("B", "STRING"))
    assert read(given, b"\n1,x\n2,y\n") == {"A": 1, "B": "x"}
    assert read(given, b'"1","x\ny"\r\n') == {"A": 1, "B": "x\ny"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"1", "expected 2 columns, not 1"),
        (b"1,2,3", "expected 2 columns, not 3"),
        (b"1.0,x", "A: not a whole number of 32 bits"),
        (b"4294967296,x", "A: not a whole number of 32 bits"),
        (b"1_0,x", "A: not a whole number of 32 bits"),
        (b'1,"x', "a quote is not closed, or there is text behind it"),
        (b'1,"x"y', "a quote is not closed, or there is text behind it"),
    ],
)
def test_lines_that_do_not_fit_are_refused(line: bytes, message: str) -> None:
    assert problem(source("DELIMITED", ("A", "INTEGER"), ("B", "STRING")), line) == message


def test_bytes_that_are_no_text_are_refused() -> None:
    assert problem(source("DELIMITED", ("A", "STRING")), b"\xff").startswith("the data is not text in UTF-8")


def test_delimited_holds_no_nested_columns() -> None:
    with pytest.raises(FormatError, match="cannot hold the column A of type ARRAY<INTEGER>"):
        ColumnDecoder(source("DELIMITED", ("A", "ARRAY<INTEGER>")), NO_REGISTRY)


# --- keys ------------------------------------------------------------------------------------------------------------


def test_keys_of_tumbling_windows_end_with_their_start() -> None:
    given = source("JSON", ("A", "INTEGER"), key="STRING", window=WindowInfo(kind="TUMBLING", size_ms=1000))
    codec = RecordCodec(given, SCHEMAS)
    key, value = codec.encode({"K": "k", "A": 1}, window=(5000, None))
    assert key == b"k" + (5000).to_bytes(8, "big")
    assert codec.decode(key, value) == {"K": "k", "A": 1, "WINDOWSTART": 5000, "WINDOWEND": 6000}
    assert codec.encode({"K": "k", "A": 1, "WINDOWSTART": 5000, "WINDOWEND": 6000}) == (key, value)


def test_keys_of_sessions_end_with_their_end_and_start() -> None:
    given = source("JSON", ("A", "INTEGER"), key="STRING", window=WindowInfo(kind="SESSION"))
    codec = RecordCodec(given, SCHEMAS)
    key, _ = codec.encode({"K": "k"}, window=(1, 9), deleted=True)
    assert key == b"k" + (9).to_bytes(8, "big") + (1).to_bytes(8, "big")
    assert codec.decode(key, None) == {"K": "k", "A": None, "WINDOWSTART": 1, "WINDOWEND": 9}


def test_a_windowed_key_needs_its_window() -> None:
    given = source("JSON", ("A", "INTEGER"), key="STRING", window=WindowInfo(kind="SESSION"))
    codec = RecordCodec(given, SCHEMAS)
    with pytest.raises(EncodeError, match="the window of a windowed key is missing"):
        codec.encode({"K": "k"})
    with pytest.raises(EncodeError, match="the end of a session is missing"):
        codec.encode({"K": "k"}, window=(1, None))
    with pytest.raises(EncodeError, match="a windowed key is null"):
        codec.encode({}, window=(1, 2))
    with pytest.raises(DecodeError, match="at least 16 bytes, not 3"):
        codec.decode(b"abc", None)
    keys = pa.array([b"abc", None, b"k" + bytes(16)], pa.binary())
    decoded = ColumnDecoder(given, NO_REGISTRY).decode(keys, pa.nulls(3, pa.binary()))
    assert decoded.failures == [(0, "key", "a windowed key has at least 16 bytes, not 3")]
    assert decoded.columns["K"].to_pylist() == [None, None, "k"]
    assert decoded.columns["WINDOWSTART"].to_pylist() == [None, None, 0]


def test_a_key_without_columns_is_whatever_it_is() -> None:
    given = source("JSON", ("A", "INTEGER"))
    assert RecordCodec(given, SCHEMAS).encode({"A": 1}) == (None, b'{"A":1}')
    assert RecordCodec(given, SCHEMAS).decode(b"\xff", b'{"A":1}') == {"A": 1}
    decoded = ColumnDecoder(given, NO_REGISTRY).decode(pa.array([b"x"]), pa.array([b'{"A":1}']))
    assert {name: array.to_pylist() for name, array in decoded.columns.items()} == {"A": [1]}


# --- headers and deleted rows ----------------------------------------------------------------------------------------


def test_headers_are_columns_all_of_them_or_the_last_of_a_name() -> None:
    headers = (HeaderColumn("H"), HeaderColumn("X", "x"), HeaderColumn("Y", "y"))
    given = source("JSON", ("A", "INTEGER"), headers=headers)
    pairs = [("x", b"1"), ("z", None), ("x", b"2")]
    found = RecordCodec(given, SCHEMAS).decode(None, b"{}", pairs)
    everything = [{"KEY": "x", "VALUE": b"1"}, {"KEY": "z", "VALUE": None}, {"KEY": "x", "VALUE": b"2"}]
    assert found == {"A": None, "H": everything, "X": b"2", "Y": None}
    rows = [None, [], [{"key": key, "value": value} for key, value in pairs]]
    array = pa.array(rows, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))
    decoded = ColumnDecoder(given, NO_REGISTRY).decode(pa.nulls(3, pa.binary()), pa.array([b"{}"] * 3), array)
    assert decoded.columns["H"].type == HEADERS
    assert decoded.columns["H"].to_pylist() == [[], [], everything]
    assert decoded.columns["X"].to_pylist() == [None, None, b"2"]
    assert decoded.columns["Y"].to_pylist() == [None, None, None]
    bare = ColumnDecoder(given, NO_REGISTRY).decode(pa.nulls(1, pa.binary()), pa.array([b"{}"]))
    assert bare.columns["H"].to_pylist() == [[]]


def test_deleted_rows_have_no_value() -> None:
    given = source("JSON", ("A", "INTEGER"), key="INTEGER")
    batch = pa.table({"A": [1, 2, 3], "K": pa.array([7, None, 8], pa.int32()), "__deleted": [False, True, None]})
    keys, values = ColumnEncoder(given, NO_REGISTRY).encode(batch)
    assert keys.to_pylist() == [b"\x00\x00\x00\x07", None, b"\x00\x00\x00\x08"]
    assert values.to_pylist() == [b'{"A":1}', None, b'{"A":3}']


def test_encoding_names_the_column_that_is_missing() -> None:
    with pytest.raises(EncodeError, match="there is no column"):
        ColumnEncoder(source("JSON", ("A", "INTEGER")), NO_REGISTRY).encode(pa.table({"B": [1]}))


def test_no_records_are_no_rows() -> None:
    for format_ in ("JSON", "KAFKA", "DELIMITED", "PROTOBUF_NOSR"):
        given = source(format_, ("A", "INTEGER"), key="BIGINT", window=WindowInfo(kind="SESSION"))
        decoded = ColumnDecoder(given, NO_REGISTRY).decode(pa.array([], pa.binary()), pa.array([], pa.binary()))
        assert {name: len(array) for name, array in decoded.columns.items()} == {
            "WINDOWSTART": 0,
            "WINDOWEND": 0,
            "K": 0,
            "A": 0,
        }
        batch = pa.RecordBatch.from_pydict(decoded.columns)
        assert [len(array) for array in ColumnEncoder(given, NO_REGISTRY).encode(batch)] == [0, 0]
