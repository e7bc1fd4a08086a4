"""Types of tables: Arrow's and Spark's names, and which changes lose nothing."""

import decimal

import pyarrow as pa
import pytest

from schema_registry.serdes.arrow.types import TIMESTAMP
from streams.errors import SchemaConflict
from streams.spark.types import (
    arrow_type,
    changes,
    conformed,
    ddl_columns,
    ddl_type,
    list_of,
    map_of,
    merged_schema,
    merged_type,
    stored_schema,
    stored_type,
    without_nulls,
)

PLAIN = [
    (pa.bool_(), "boolean"),
    (pa.int8(), "tinyint"),
    (pa.int16(), "smallint"),
    (pa.int32(), "int"),
    (pa.int64(), "bigint"),
    (pa.float32(), "float"),
    (pa.float64(), "double"),
    (pa.decimal128(38, 9), "decimal(38,9)"),
    (pa.string(), "string"),
    (pa.binary(), "binary"),
    (pa.date32(), "date"),
    (TIMESTAMP, "timestamp"),
]
NESTED = [
    (list_of(pa.int64()), "array<bigint>"),
    (map_of(list_of(TIMESTAMP)), "map<string,array<timestamp>>"),
    (pa.struct([("a", pa.int32()), ("b`c, d", pa.string())]), "struct<`a`:int,`b``c, d`:string>"),
    (list_of(pa.struct([("m", map_of(pa.decimal128(5, 2)))])), "array<struct<`m`:map<string,decimal(5,2)>>>"),
]


@pytest.mark.parametrize(("arrow", "spark"), PLAIN + NESTED)
def test_a_stored_type_has_a_name_in_sql_that_leads_back_to_it(arrow: pa.DataType, spark: str) -> None:
    assert ddl_type(arrow) == spark
    assert arrow_type(spark) == arrow


@pytest.mark.parametrize(
    ("spark", "arrow"),
    [
        ("STRUCT<a: INT, b: array<string>>", pa.struct([("a", pa.int32()), ("b", list_of(pa.string()))])),
        ("decimal", pa.decimal128(10, 0)),
        ("decimal(7)", pa.decimal128(7, 0)),
        ("integer", pa.int32()),
        ("struct<>", pa.struct([])),
    ],
)
def test_spellings_that_spark_allows_are_understood(spark: str, arrow: pa.DataType) -> None:
    assert arrow_type(spark) == arrow


@pytest.mark.parametrize("spark", ["interval", "array<int", "int>", "", "map<int,int>", "struct<a int>", "array<>"])
def test_a_type_of_spark_that_tables_do_not_have_is_an_error(spark: str) -> None:
    with pytest.raises(TypeError):
        arrow_type(spark)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (pa.uint8(), pa.int16()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.large_string(), pa.string()),
        (pa.binary(16), pa.binary()),
        (pa.time64("us"), pa.string()),
        (pa.timestamp("ns"), TIMESTAMP),
        (pa.timestamp("ms", "Europe/Vienna"), TIMESTAMP),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.large_list(pa.uint8()), list_of(pa.int16())),
        (pa.map_(pa.string(), pa.uint8()), map_of(pa.int16())),
        (pa.uuid(), pa.string()),
        (pa.struct([pa.field("a", pa.uint8(), nullable=False)]), pa.struct([("a", pa.int16())])),
    ],
)
def test_types_without_a_place_are_kept_in_one_that_holds_all_their_values(
    given: pa.DataType, kept: pa.DataType
) -> None:
    assert stored_type(given) == kept


@pytest.mark.parametrize("given", [pa.decimal256(50, 2), pa.map_(pa.int32(), pa.string()), pa.duration("s")])
def test_types_that_no_table_can_hold_are_refused(given: pa.DataType) -> None:
    with pytest.raises(TypeError):
        stored_type(given)


def test_a_stored_column_may_always_be_null() -> None:
    assert stored_schema(pa.schema([pa.field("a", pa.int32(), nullable=False)])).field("a").nullable


WIDENINGS = [
    (pa.int8(), pa.int16(), pa.int16()),
    (pa.int16(), pa.int64(), pa.int64()),
    (pa.float32(), pa.float64(), pa.float64()),
    (pa.int16(), pa.float32(), pa.float32()),
    (pa.int32(), pa.float32(), pa.float64()),
    (pa.int32(), pa.float64(), pa.float64()),
    (pa.decimal128(9, 2), pa.decimal128(12, 4), pa.decimal128(12, 4)),
    (pa.decimal128(9, 2), pa.decimal128(9, 4), pa.decimal128(11, 4)),
    (pa.null(), list_of(pa.int8()), list_of(pa.int8())),
    (list_of(pa.int8()), list_of(pa.int64()), list_of(pa.int64())),
    (map_of(pa.null()), map_of(pa.int64()), map_of(pa.int64())),
    (
        pa.struct([("a", pa.int32())]),
        pa.struct([("b", pa.string()), ("a", pa.int64())]),
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
    ),
]


@pytest.mark.parametrize(("has", "given", "both"), WIDENINGS)
def test_a_type_grows_into_one_that_holds_both(has: pa.DataType, given: pa.DataType, both: pa.DataType) -> None:
    assert merged_type(has, given) == both
    backwards = merged_type(given, has)
    assert backwards is not None
    assert backwards == both or pa.types.is_struct(both)


@pytest.mark.parametrize(
    ("has", "given"),
    [
        (pa.int64(), pa.float64()),
        (pa.int64(), pa.float32()),
        (pa.string(), pa.int32()),
        (pa.string(), pa.binary()),
        (pa.date32(), TIMESTAMP),
        (pa.bool_(), pa.int8()),
        (pa.decimal128(38, 0), pa.decimal128(38, 2)),
        (pa.int32(), pa.decimal128(10, 0)),
        (list_of(pa.string()), list_of(pa.int8())),
        (pa.struct([("a", pa.int8())]), pa.struct([("A", pa.int8())])),
        (pa.struct([("a", pa.int8())]), list_of(pa.int8())),
    ],
)
def test_types_that_no_type_holds_without_loss_do_not_merge(has: pa.DataType, given: pa.DataType) -> None:
    assert merged_type(has, given) is None
    assert merged_type(given, has) is None


def test_new_columns_follow_those_there_are() -> None:
    has = pa.schema([("b", pa.int32()), ("a", pa.string())])
    given = pa.schema([("c", pa.bool_()), ("b", pa.int64())])
    assert merged_schema("t", has, given) == pa.schema([("b", pa.int64()), ("a", pa.string()), ("c", pa.bool_())])


@pytest.mark.parametrize(
    ("has", "given", "column"),
    [
        (pa.schema([("Id", pa.int32())]), pa.schema([("id", pa.int32())]), "Id"),
        (pa.schema([]), pa.schema([("a", pa.int32()), ("A", pa.int32())]), "a"),
        (pa.schema([]), pa.schema([("s", pa.struct([("x", pa.int8()), ("X", pa.int8())]))]), "s.x"),
        (pa.schema([("a", pa.string())]), pa.schema([("a", pa.int32())]), "a"),
    ],
)
def test_what_does_not_fit_names_table_and_column(has: pa.Schema, given: pa.Schema, column: str) -> None:
    with pytest.raises(SchemaConflict) as caught:
        merged_schema("orders", has, given)
    assert (caught.value.table, caught.value.column) == ("orders", column)


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        (pa.schema([("a", pa.int32()), ("s", pa.struct([("x", pa.int8())]))]), set()),
        (pa.schema([("a", pa.int64()), ("s", pa.struct([("x", pa.int8())]))]), {"widen"}),
        (pa.schema([("a", pa.int32()), ("s", pa.struct([("x", pa.int8()), ("y", pa.int8())]))]), {"add"}),
        (pa.schema([("a", pa.int32()), ("s", pa.struct([("x", pa.int16())])), ("n", pa.int8())]), {"add", "widen"}),
    ],
)
def test_changes_say_what_happens_to_a_table_at_any_depth(then: pa.Schema, expected: set[str]) -> None:
    has = pa.schema([("a", pa.int32()), ("s", pa.struct([("x", pa.int8())]))])
    assert changes(has, then) == expected


def test_columns_and_fields_of_unknown_type_are_left_out() -> None:
    schema = pa.schema(
        [("a", pa.null()), ("s", pa.struct([("x", pa.null())])), ("l", list_of(pa.null())), ("b", pa.int8())]
    )
    assert without_nulls(schema) == pa.schema([("b", pa.int8())])


def test_rows_conform_to_wider_columns_at_any_depth() -> None:
    rows = [
        {"a": 1, "s": {"x": 2}, "l": [{"y": 3}, None], "m": [("k", 4)], "gone": 1, "d": decimal.Decimal("1.50")},
        {"a": None, "s": None, "l": None, "m": None, "gone": 2, "d": None},
    ]
    narrow = pa.schema(
        [
            ("a", pa.int8()),
            ("s", pa.struct([("x", pa.int8())])),
            ("l", list_of(pa.struct([("y", pa.int8())]))),
            ("m", map_of(pa.int8())),
            ("gone", pa.int8()),
            ("d", pa.decimal128(3, 2)),
        ]
    )
    wide = pa.schema(
        [
            ("new", pa.string()),
            ("a", pa.float64()),
            ("s", pa.struct([("x", pa.int64()), ("z", list_of(pa.int8()))])),
            ("l", list_of(pa.struct([("y", pa.int64()), ("q", pa.string())]))),
            ("m", map_of(pa.int32())),
            ("d", pa.decimal128(10, 4)),
        ]
    )
    table = pa.Table.from_pylist([rows[0], *rows, rows[1]], schema=narrow).slice(1, 2)
    result = conformed(table, wide)
    result.validate(full=True)
    assert result.schema == wide
    assert result.to_pylist() == [
        {
            "new": None,
            "a": 1.0,
            "s": {"x": 2, "z": None},
            "l": [{"y": 3, "q": None}, None],
            "m": [("k", 4)],
            "d": decimal.Decimal("1.5000"),
        },
        {"new": None, "a": None, "s": None, "l": None, "m": None, "d": None},
    ]


def test_columns_in_sql_are_quoted() -> None:
    assert (
        ddl_columns(pa.schema([("a b", pa.int8()), ("c", list_of(pa.string()))])) == "`a b` tinyint, `c` array<string>"
    )
