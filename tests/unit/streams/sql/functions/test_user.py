"""Calls of users' functions in Spark's SQL."""

import pytest

from streams.functions.signature import Argument, FunctionKind, Signature
from streams.model import types
from streams.model.types import DOUBLE, INTEGER, STRING, parse_type
from streams.sql.errors import WrongArguments
from streams.sql.expressions import Expression
from streams.sql.functions.model import Kind
from streams.sql.functions.user import UserFunction, user_functions


def _signature(
    *kinds: str, result: str = "STRING", kind: FunctionKind = "scalar", variadic: bool = False, undo: bool = False
) -> Signature:
    arguments = tuple(Argument(f"a{number}", one) for number, one in enumerate(kinds))
    return Signature(
        name="F",
        kind=kind,
        arguments=arguments,
        result=result,
        is_variadic=variadic,
        has_undo=undo,
        description="Some" if kinds else "",
    )


def _function(*signatures: Signature) -> UserFunction:
    return user_functions(signatures)["F"]


def _column(name: str, kind: str) -> Expression:
    return Expression(name, parse_type(kind), functions=frozenset({"caudal_instr"}))


def test_the_overload_that_fits_best_is_called() -> None:
    texts, numbers = _signature("STRING"), _signature("DOUBLE", result="DOUBLE")
    function = _function(texts, numbers)
    called = function.call([_column("x", "INTEGER")], order="o")
    assert called.text == f"{numbers.spark_name}(cast(x as double))"
    assert called.type == DOUBLE
    assert called.functions == {"udf:F", "caudal_instr"}
    assert function.call([_column("x", "STRING")], order="o").type == STRING
    with pytest.raises(WrongArguments, match=r"F takes \(STRING\) or \(DOUBLE\), not \(BOOLEAN\)"):
        function.call([_column("x", "BOOLEAN")], order="o")
    with pytest.raises(WrongArguments, match=r"not \(\)"):
        function.call([], order="o")


def test_nested_types_and_decimals() -> None:
    signature = _signature("STRUCT<`a` DECIMAL(4, 2)>", result="ARRAY<TIME>")
    called = _function(signature).call([_column("x", "STRUCT<`a` DECIMAL(4, 2)>")], order="o")
    # Spark gives times of Python microseconds.
    assert called.text == f"cast({signature.spark_name}(x) as array<time(3)>)"


def test_the_last_argument_may_be_repeated() -> None:
    signature = _signature("STRING", "INTEGER", variadic=True)
    function = _function(signature)
    called = function.call([_column("x", "STRING"), _column("y", "INTEGER"), _column("z", "INTEGER")], order="o")
    assert called.text == f"{signature.spark_name}(x, y, z)"
    assert function.function.overloads[0].signature == "(STRING, INTEGER...)"


def test_without_arguments_there_is_a_column_all_the_same() -> None:
    signature = _signature(result="INTEGER")
    called = _function(signature).call([], order="o")
    assert (called.text, called.type) == (f"{signature.spark_name}(true)", INTEGER)


def test_a_table_function_is_the_array_of_its_rows() -> None:
    function = _function(_signature("STRING", kind="table", result="INTEGER"))
    assert (function.kind, function.call([_column("x", "STRING")], order="o").type) == (Kind.TABLE, INTEGER)


def test_an_aggregate_takes_its_rows_with_their_order() -> None:
    signature = _signature("STRING", "BIGINT", kind="aggregate", undo=True)
    function = _function(signature)
    called = function.call([_column("x", "STRING"), _column("y", "INTEGER")], order="at.offset")
    rows = "named_struct('at', at.offset, 'v0', x, 'v1', cast(y as bigint))"
    assert called.text == f"{signature.spark_name}(collect_list({rows}))"
    assert function.processor_name == "udf:F"
    assert function.match([types.STRING, types.BIGINT]).overload.undo


def test_overloads_are_of_one_kind() -> None:
    function = _function(_signature("STRING"), _signature("BIGINT", kind="aggregate"), _signature("DOUBLE"))
    assert [one.types for one in function.signatures] == [("STRING",), ("DOUBLE",)]
    assert (function.name, function.kind, function.description) == ("F", Kind.SCALAR, "Some")
