"""Types as values, their names, and what becomes what."""

from decimal import Decimal as Number

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.model.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    NULL,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Map,
    SqlType,
    Struct,
    bounded,
    contains,
    json_schema,
    spark_type,
)
from streams.sql.conversion import common_type, conversion_cost, decimal_result

_NESTED = Struct((Field("A", Array(Decimal(5, 2))), Field("b`c", Map(STRING, TIME))))


def test_names_are_those_that_ksqldb_prints() -> None:
    assert str(_NESTED) == "STRUCT<`A` ARRAY<DECIMAL(5, 2)>, `b``c` MAP<STRING, TIME>>"


def test_json_of_a_nested_type() -> None:
    assert json_schema(Array(Decimal(5, 2))) == {
        "type": "ARRAY",
        "fields": None,
        "memberSchema": {
            "type": "DECIMAL",
            "fields": None,
            "memberSchema": None,
            "parameters": {"precision": 5, "scale": 2},
        },
    }
    assert json_schema(Struct((Field("A", BIGINT),)))["fields"] == [{"name": "A", "schema": json_schema(BIGINT)}]


def test_sparks_names() -> None:
    assert spark_type(_NESTED) == "struct<`A`:array<decimal(5,2)>,`b``c`:map<string,time(3)>>"
    assert spark_type(Decimal(60, 40)) == "decimal(38,18)"


def test_contains_looks_inside() -> None:
    assert contains(_NESTED, TIME)
    assert contains(_NESTED, Map)
    assert not contains(_NESTED, BOOLEAN)


@pytest.mark.parametrize(
    ("types", "common"),
    [
        ([INTEGER, BIGINT], BIGINT),
        ([INTEGER, Decimal(4, 2)], Decimal(12, 2)),
        ([Decimal(4, 2), DOUBLE], DOUBLE),
        ([NULL, STRING], STRING),
        ([NULL, NULL], NULL),
        ([STRING, INTEGER], None),
        ([Array(INTEGER), Array(BIGINT)], Array(BIGINT)),
        ([Map(STRING, NULL), Map(STRING, DOUBLE)], Map(STRING, DOUBLE)),
        (
            [Struct((Field("A", INTEGER),)), Struct((Field("B", STRING), Field("A", BIGINT)))],
            Struct((Field("A", BIGINT), Field("B", STRING))),
        ),
    ],
)
def test_common_type(types: list[SqlType], common: SqlType | None) -> None:
    assert common_type(types) == common


@pytest.mark.parametrize(
    ("has", "wanted", "converts"),
    [
        (INTEGER, BIGINT, True),
        (BIGINT, INTEGER, False),
        (BIGINT, Decimal(19, 0), True),
        (BIGINT, Decimal(18, 0), False),
        (Decimal(5, 2), Decimal(6, 2), True),
        (Decimal(5, 2), Decimal(6, 4), False),
        (Decimal(5, 2), DOUBLE, True),
        (DOUBLE, Decimal(38, 2), False),
        (STRING, TIMESTAMP, True),
        (STRING, DATE, True),
        (STRING, BYTES, True),
        (INTEGER, STRING, False),
        (STRING, INTEGER, False),
        (Array(INTEGER), Array(DOUBLE), True),
        (Struct((Field("A", INTEGER),)), Struct((Field("B", INTEGER),)), False),
    ],
)
def test_implicit_conversions(has: SqlType, wanted: SqlType, *, converts: bool) -> None:
    assert (conversion_cost(has, wanted) is not None) == converts


@pytest.mark.parametrize(
    ("operator", "result"),
    [("+", Decimal(8, 3)), ("-", Decimal(8, 3)), ("*", Decimal(12, 5)), ("/", Decimal(15, 8)), ("%", Decimal(5, 3))],
)
def test_digits_of_a_result(operator: str, result: Decimal) -> None:
    assert decimal_result(operator, Decimal(6, 2), Decimal(5, 3)) == result


@st.composite
def _decimals(draw: st.DrawFn) -> tuple[Number, Decimal]:
    precision = draw(st.integers(1, 12))
    scale = draw(st.integers(0, precision))
    return Number(draw(st.integers(-(10**precision) + 1, 10**precision - 1))).scaleb(-scale), Decimal(precision, scale)


@given(_decimals(), _decimals(), st.sampled_from("+-*"))
def test_results_of_decimals_fit_their_type(
    one: tuple[Number, Decimal], other: tuple[Number, Decimal], operator: str
) -> None:
    kind = decimal_result(operator, one[1], other[1])
    result = {"+": one[0] + other[0], "-": one[0] - other[0], "*": one[0] * other[0]}[operator]

    assert abs(result) < Number(10) ** (kind.precision - kind.scale)
    assert result == round(result, kind.scale)


@given(st.integers(1, 200), st.data())
def test_bounded_decimals_keep_their_whole_digits_or_six_others(precision: int, data: st.DataObject) -> None:
    scale = data.draw(st.integers(0, precision))
    kind = bounded(precision, scale)

    assert 0 <= kind.scale <= kind.precision <= 38
    assert kind.precision - kind.scale >= min(precision - scale, 32)
    assert kind.scale >= min(scale, 6)
