"""JSON as keys and values: how lenient reading is, and that single records and columns agree about it."""

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streams.formats.arrays import values_of
from streams.formats.columns import ColumnDecoder
from streams.formats.errors import DecodeError, EncodeError, FormatError
from streams.formats.registry import RegistrySettings, Schemas
from streams.formats.values import RecordCodec
from streams.model.sources import Column, Format, Source
from streams.model.types import parse_type
from tests.support import sql_records

NO_REGISTRY = RegistrySettings()


def source(*columns: tuple[str, str], wraps: bool | None = None) -> Source:
    value = Format(name="JSON", wraps_single=wraps)
    return Source(
        name="S",
        kind="STREAM",
        topic="t",
        key_format=Format(name="NONE"),
        value_format=value,
        value=tuple(Column(*column) for column in columns),
    )


def read(given: Source, *documents: bytes | str) -> list[Any]:
    """The rows of documents, or the message of the error, the same from the codec and the columns."""
    codec = RecordCodec(given, Schemas(NO_REGISTRY))
    data = [document.encode() if isinstance(document, str) else document for document in documents]
    found: list[Any] = []
    for document in data:
        try:
            found.append(codec.decode(None, document))
        except DecodeError as error:
            found.append(error.message)
    decoded = ColumnDecoder(given, NO_REGISTRY).decode(pa.nulls(len(data), pa.binary()), pa.array(data, pa.binary()))
    kinds = {column.name: column.sql_type for column in given.columns}
    columns = {name: values_of(kinds[name], array) for name, array in decoded.columns.items()}
    together: list[Any] = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    for failure in decoded.failures:
        together[failure.row] = failure.message
    assert repr(together) == repr(found)
    return found


def value(kind: str, document: str) -> Any:
    found = read(source(("A", kind)), f'{{"A":{document}}}')[0]
    return found if isinstance(found, str) else found["A"]


@pytest.mark.parametrize(
    ("kind", "document", "expected"),
    [
        ("INTEGER", "1", 1),
        ("INTEGER", "4294967297", 1),
        ("INTEGER", "-2147483649", 2147483647),
        ("INTEGER", "2.9", 2),
        ("INTEGER", "-2.9", -2),
        ("INTEGER", '"12"', 12),
        ("INTEGER", "1e400", 0),
        ("INTEGER", "1e999999999", 0),
        ("INTEGER", "null", None),
        ("BIGINT", "18446744073709551617", 1),
        ("BIGINT", '"-9223372036854775808"', -(1 << 63)),
        ("DOUBLE", "1", 1.0),
        ("DOUBLE", "9007199254740993", 9007199254740992.0),
        ("DOUBLE", '"1.5d"', 1.5),
        ("DOUBLE", '"-Infinity"', float("-inf")),
        ("DOUBLE", "1e400", float("inf")),
        ("BOOLEAN", "true", True),
        ("STRING", '"a"', "a"),
        ("STRING", "1.10", "1.10"),
        ("STRING", "true", "true"),
        ("STRING", '{"b": 1.50, "a": null}', '{"b":1.50,"a":null}'),
        ("STRING", '[1, "x", {"y": [2]}, null]', '[1, x, {"y":[2]}, null]'),
        ("BYTES", '"YWI="', b"ab"),
        ("DECIMAL(4, 2)", "1.5", Decimal("1.50")),
        ("DECIMAL(4, 2)", '"12.34"', Decimal("12.34")),
        ("DECIMAL(4, 2)", "1.500", Decimal("1.50")),
        ("DATE", "18262", dt.date(2020, 1, 1)),
        ("TIME", "1", dt.time(0, 0, 0, 1000)),
        ("TIMESTAMP", "1577836800001", dt.datetime(2020, 1, 1, 0, 0, 0, 1000, tzinfo=dt.UTC)),
        ("TIMESTAMP", "-1", dt.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=dt.UTC)),
        ("ARRAY<INTEGER>", '[1, null, "2"]', [1, None, 2]),
        ("MAP<STRING, BIGINT>", '{"a": 1, "b": null}', {"a": 1, "b": None}),
        ("STRUCT<F INTEGER, G STRING>", '{"f": 1, "H": 2}', {"F": 1, "G": None}),
        ("STRUCT<F STRUCT<G ARRAY<STRING>>>", '{"f": {"g": ["x", 1]}}', {"F": {"G": ["x", "1"]}}),
    ],
)
def test_values_are_read_leniently(kind: str, document: str, expected: object) -> None:
    assert repr(value(kind, document)) == repr(expected)


@pytest.mark.parametrize(
    ("kind", "document", "message"),
    [
        ("INTEGER", "true", "$.A: expected INTEGER, not a boolean"),
        ("INTEGER", '"1.5"', "$.A: not a whole number of 32 bits"),
        ("INTEGER", '"1_0"', "$.A: not a whole number of 32 bits"),
        ("INTEGER", '"2147483648"', "$.A: not a whole number of 32 bits"),
        ("BOOLEAN", '"true"', "$.A: expected BOOLEAN, not text"),
        ("DOUBLE", '"nan"', "$.A: not a number"),
        ("DECIMAL(4, 2)", "1.005", "$.A: the number does not fit into DECIMAL(4, 2)"),
        ("DECIMAL(4, 2)", "100", "$.A: the number does not fit into DECIMAL(4, 2)"),
        ("DECIMAL(4, 2)", "1e999999999", "$.A: the number does not fit into DECIMAL(4, 2)"),
        ("BYTES", '"!"', "$.A: BYTES are written as base64"),
        ("TIME", "86400000", "$.A: Time values must use a number of milliseconds"),
        ("DATE", '"2020-01-01"', "$.A: expected DATE, not text"),
        ("ARRAY<INTEGER>", "[1, {}]", "$.A[1]: expected INTEGER, not an object"),
        ("MAP<STRING, BOOLEAN>", '{"k": 1}', "$.A['k']: expected BOOLEAN, not a number"),
        ("STRUCT<F STRUCT<G BOOLEAN>>", '{"F": {"g": 0}}', "$.A.F.G: expected BOOLEAN, not a number"),
        ("STRUCT<F INTEGER>", "[]", "$.A: expected STRUCT<`F` INTEGER>, not an array"),
        ("INTEGER", "NaN", "the data is not JSON"),
        ("INTEGER", "[" * 100_000, "the data is not JSON: it is nested too deep"),
    ],
)
def test_what_does_not_fit_names_its_place(kind: str, document: str, message: str) -> None:
    assert value(kind, document).startswith(message)


def test_one_bad_record_among_many_is_the_only_one() -> None:
    rows = read(
        source(("A", "INTEGER"), ("B", "STRING")), '{"A":1,"B":"x"}', '{"A":{},"B":"y"}', "{", '{"a":3,"b":4.0}'
    )
    assert rows[0] == {"A": 1, "B": "x"}
    assert rows[1].startswith("$.A: expected INTEGER")
    assert rows[2].startswith("the data is not JSON")
    assert rows[3] == {"A": 3, "B": "4.0"}


def test_fields_are_found_in_any_case_and_the_exact_name_counts_first() -> None:
    given = source(("A", "INTEGER"), ("b", "INTEGER"), ("B", "INTEGER"))
    documents = ['{"a":1,"A":2}', '{"a":3}', '{"B":4}', '{"b":5,"B":6}', '{"aA":7}']
    assert read(given, *documents) == [
        {"A": 2, "b": None, "B": None},
        {"A": 3, "b": None, "B": None},
        {"A": None, "b": None, "B": 4},
        {"A": None, "b": 5, "B": 6},
        {"A": None, "b": None, "B": None},
    ]


def test_null_is_no_value_and_other_documents_are_no_rows() -> None:
    assert read(source(("A", "INTEGER")), "null", "[1]", "5", " {} ") == [
        {"A": None},
        "$: expected STRUCT<`A` INTEGER>, not an array",
        "$: expected STRUCT<`A` INTEGER>, not a number",
        {"A": None},
    ]


def test_a_single_value_may_stand_by_itself() -> None:
    given = source(("A", "INTEGER"), wraps=False)
    assert read(given, "5", "null", '"x"') == [{"A": 5}, {"A": None}, "$: not a whole number of 32 bits"]
    assert RecordCodec(given, Schemas(NO_REGISTRY)).encode({"A": 5}) == (None, b"5")
    assert RecordCodec(given, Schemas(NO_REGISTRY)).encode({"A": None}) == (None, None)


def test_documents_are_written_as_javas_libraries_do() -> None:
    columns = [("D", "DOUBLE"), ("E", "DECIMAL(5, 2)"), ("F", "STRUCT<x BYTES, T TIMESTAMP>"), ("G", "DATE")]
    codec = RecordCodec(source(*columns), Schemas(NO_REGISTRY))
    moment = dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)
    row = {"D": 1e10, "E": Decimal("1.5"), "F": {"x": b"ab", "T": moment}}
    assert codec.encode(row)[1] == b'{"D":1.0E10,"E":1.50,"F":{"x":"YWI=","T":1000},"G":null}'


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.125, "1.23456789125E8"),
        (5e-324, "4.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("nan"), '"NaN"'),
        (float("-inf"), '"-Infinity"'),
    ],
)
def test_doubles_have_javas_notation(number: float, text: str) -> None:
    codec = RecordCodec(source(("A", "DOUBLE"), wraps=False), Schemas(NO_REGISTRY))
    assert codec.encode({"A": number})[1] == text.encode()


def test_rows_that_do_not_fit_name_the_column() -> None:
    codec = RecordCodec(source(("A", "INTEGER"), ("B", "STRUCT<F DECIMAL(3, 1)>")), Schemas(NO_REGISTRY))
    with pytest.raises(EncodeError, match="A: 2147483648 does not fit into 32 bits"):
        codec.encode({"A": 1 << 31})
    with pytest.raises(EncodeError, match=r"B\.F: the number does not fit"):
        codec.encode({"B": {"F": Decimal("1.23")}})


def test_maps_have_text_keys() -> None:
    with pytest.raises(FormatError, match="The keys of maps in JSON are STRING, not INTEGER"):
        RecordCodec(source(("A", "MAP<INTEGER, INTEGER>")), Schemas(NO_REGISTRY))


# --- any documents at all --------------------------------------------------------------------------------------------

_numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-3, 3)
_texts = sql_records.texts | st.sampled_from(["1", "-7", "1.5", "NaN", "true", "YWI=", "1e5", "٣", " 1"])
_plain = st.none() | st.booleans() | _numbers | _texts
_names = st.sampled_from(["A", "a", "B", "b", "F", "f", "G"])
_json = st.recursive(_plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=4))
_inner = st.sampled_from(
    ["INTEGER", "BIGINT", "DOUBLE", "STRING", "BOOLEAN", "BYTES", "DECIMAL(5, 2)", "DATE", "TIME", "TIMESTAMP"]
)
_kinds = _inner | _inner.map("ARRAY<{}>".format) | _inner.map("MAP<STRING, {}>".format)
_structs = st.tuples(_kinds, _kinds).map(lambda pair: f"STRUCT<F {pair[0]}, G {pair[1]}>")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(_kinds | _structs, min_size=2, max_size=2),
    st.lists(st.dictionaries(_names, _json, max_size=4) | _json, min_size=1, max_size=5),
)
def test_single_records_and_columns_agree_about_any_document(kinds: list[str], documents: list[Any]) -> None:
    given = source(*zip(("A", "B"), map(str, map(parse_type, kinds)), strict=True))
    read(given, *(json.dumps(document) for document in documents))
