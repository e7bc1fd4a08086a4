"""Functions are found by name and types, and errors say what there is."""

import pytest

from streams.model.types import BIGINT, DOUBLE, INTEGER, NULL, STRING, TIMESTAMP, Array, Decimal, Map, SqlType
from streams.sql.errors import TypeProblem, UnknownFunction, WrongArguments
from streams.sql.expressions import Expression, Lambda, text_literal
from streams.sql.functions.model import Kind
from streams.sql.functions.page import page
from streams.sql.functions.table import FUNCTIONS, call, find

_TEXT = Expression("a", STRING)


def test_wrong_arguments_show_what_there_is() -> None:
    with pytest.raises(WrongArguments) as raised:
        find("substring", [BIGINT])

    assert str(raised.value) == (
        "SUBSTRING takes (STRING|BYTES, INTEGER) or (STRING|BYTES, INTEGER, INTEGER), not (BIGINT)"
    )


def test_unknown_functions_show_similar_ones() -> None:
    with pytest.raises(UnknownFunction, match=r"functions with the name 'SUBSTR'\. Did you mean SUBSTRING"):
        find("SUBSTR", [STRING])


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("ABS", [INTEGER], INTEGER),
        ("ABS", [Decimal(5, 2)], Decimal(5, 2)),
        ("ROUND", [INTEGER], BIGINT),
        ("ROUND", [Decimal(5, 2)], Decimal(3, 0)),
        ("SQRT", [Decimal(5, 2)], DOUBLE),
        ("COALESCE", [NULL, INTEGER, BIGINT], BIGINT),
        ("COALESCE", [NULL], STRING),
        ("ARRAY_CONCAT", [Array(INTEGER), Array(BIGINT)], Array(BIGINT)),
        ("AS_MAP", [Array(STRING), Array(DOUBLE)], Map(STRING, DOUBLE)),
        ("FORMAT_TIMESTAMP", [STRING, STRING], STRING),
        ("MAX", [TIMESTAMP], TIMESTAMP),
        ("TOPK", [INTEGER, INTEGER], Array(INTEGER)),
    ],
)
def test_type_of_the_result(name: str, arguments: list[SqlType], result: SqlType) -> None:
    assert find(name, arguments).result == result


def test_the_exact_overload_wins_over_a_conversion() -> None:
    assert find("FLOOR", [INTEGER]).result == INTEGER
    assert find("FLOOR", [DOUBLE]).result == DOUBLE


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("COALESCE", [STRING, INTEGER]),
        ("COALESCE", []),
        ("LCASE", [STRING, STRING]),
        ("ARRAY_MAX", [Array(Array(INTEGER))]),
        ("MAP_KEYS", [Array(STRING)]),
        ("FILTER", [Array(INTEGER), STRING]),
    ],
)
def test_arguments_that_do_not_fit(name: str, arguments: list[SqlType]) -> None:
    with pytest.raises(WrongArguments):
        find(name, arguments)


def test_lambda_functions_need_as_many_parameters_as_are_given() -> None:
    with pytest.raises(WrongArguments, match="LAMBDA"):
        find("FILTER", [Array(INTEGER), Lambda(("A", "B"), lambda given: given[0])])


def test_lambda_functions_cannot_call_python() -> None:
    items = Lambda(("J",), lambda given: call("JSON_ITEMS", [given[0]]))

    with pytest.raises(TypeProblem, match="no Python"):
        call("TRANSFORM", [Expression("a", Array(STRING)), items])


def test_calls_tell_the_python_functions_they_need() -> None:
    assert call("LCASE", [call("JSON_CONCAT", [_TEXT])]).functions == {"caudal_json_concat"}


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("FORMAT_TIMESTAMP", [Expression("t", TIMESTAMP), _TEXT], "literal"),
        ("FORMAT_TIMESTAMP", [Expression("t", TIMESTAMP), text_literal("YYYY ww")], "Y, w"),
        ("FORMAT_TIMESTAMP", [Expression("t", TIMESTAMP), text_literal("yyyy 'x")], "quote"),
        ("FORMAT_TIMESTAMP", [Expression("t", TIMESTAMP), text_literal("HHH")], "too often"),
        ("FORMAT_TIMESTAMP", [Expression("t", TIMESTAMP), text_literal("HH"), text_literal("Mars/X")], "no time zone"),
        ("PARSE_DATE", [_TEXT, text_literal("yyyy HH")], "H"),
        ("PARSE_TIME", [_TEXT, text_literal("yyyy HH")], "y"),
        ("MASK", [_TEXT, *[text_literal("XX")] * 4], "single character"),
        ("TOPK", [Expression("a", INTEGER), Expression("b", INTEGER)], "literal"),
        ("LATEST_BY_OFFSET", [Expression("a", INTEGER), Expression("0", INTEGER, literal=0)], "at least 1"),
    ],
)
def test_literals_are_checked(name: str, arguments: list[Expression], problem: str) -> None:
    with pytest.raises(TypeProblem, match=problem):
        call(name, arguments)


def test_text_of_an_argument_is_not_taken_for_a_place() -> None:
    assert call("LCASE", [text_literal("{text} {result}")]).text == "lower('{text} {result}')"


def test_every_function_describes_itself() -> None:
    for function in FUNCTIONS.values():
        assert function.description.endswith(".")
        assert function.overloads
        assert (function.kind is Kind.AGGREGATE) == (function.category == "AGGREGATE")
        assert f"`{function.name}`" in page()
