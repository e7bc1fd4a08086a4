"""Values of Python as pieces of Spark's SQL, and many such pieces computed by one query."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal as Number
from inspect import signature

from pyspark.sql import Row, SparkSession
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # its stub has none

from streams.functions.columns import on_columns
from streams.functions.values import PYTHON_FUNCTIONS
from streams.model import types
from streams.sql import operators
from streams.sql.casts import cast
from streams.sql.expressions import Expression, Lambda, sql_double, text_literal


@dataclass(frozen=True)
class Null:
    """A NULL of a type."""

    type: types.SqlType


@dataclass(frozen=True)
class Unit:
    """The name of a unit of time."""

    word: str


@dataclass(frozen=True)
class Fields:
    """A STRUCT."""

    fields: dict[str, object]


def expression(value: object) -> Expression:  # noqa: C901 - one case for each type
    """A value as a literal of its type."""
    match value:
        case Expression():
            return value
        case Null(kind):
            return cast(Expression("null", types.NULL), kind)
        case Unit(word):
            return Expression(f"'{word}'", types.UNIT, literal=word)
        case None:
            return Expression("null", types.NULL)
        case bool():
            return Expression(str(value).lower(), types.BOOLEAN, literal=value)
        case int() if -(2**31) <= value < 2**31:
            return Expression(f"({value})" if value > -(2**31) else "int('-2147483648')", types.INTEGER, literal=value)
        case int():
            return Expression(f"bigint('{value}')", types.BIGINT, literal=value)
        case float():
            return Expression(sql_double(value), types.DOUBLE, literal=value)
        case Number():
            scale = max(-int(value.as_tuple().exponent), 0)
            kind = types.Decimal(max(len(value.as_tuple().digits), scale, 1), scale)
            return Expression(f"cast('{value:f}' as {types.spark_type(kind)})", kind)
        case str():
            return text_literal(value)
        case bytes():
            return Expression(f"X'{value.hex()}'", types.BYTES)
        case datetime():
            return Expression(f"timestamp'{value}'", types.TIMESTAMP)
        case date():
            return Expression(f"date'{value}'", types.DATE)
        case time():
            return Expression(f"cast(time'{value}' as time(3))", types.TIME)
        case list():
            return operators.array([expression(item) for item in value])
        case dict():
            return operators.map_of([(expression(key), expression(item)) for key, item in value.items()])
        case Fields(fields):
            return operators.struct([(name, expression(item)) for name, item in fields.items()])
        case _:
            raise TypeError(type(value))


def argument(value: object) -> Expression | Lambda:
    """A value, or a function of expressions as a lambda function."""
    if isinstance(value, Lambda) or not callable(value):
        return value if isinstance(value, Lambda) else expression(value)
    function: Callable[..., Expression] = value
    return Lambda(tuple(signature(function).parameters), lambda arguments: function(*arguments))


def register(spark: SparkSession) -> None:
    """Make the Python functions known."""
    for function in PYTHON_FUNCTIONS.values():
        udf = arrow_udf(on_columns(function), types.spark_type(function.result))
        spark.udf.register(function.name, udf)


def computed(spark: SparkSession, texts: Sequence[str]) -> list[object]:
    """What each of the texts is, by one query; an error where one cannot be run at all."""
    try:
        return list(_row(spark, texts))
    except Exception:  # noqa: BLE001 - each is tried alone
        return [_alone(spark, text) for text in texts]


def _alone(spark: SparkSession, text: str) -> object:
    try:
        return _row(spark, [text])[0]
    except Exception as error:  # noqa: BLE001 - the test shows it
        return f"{text}: {error}"


def _row(spark: SparkSession, texts: Sequence[str]) -> Row:
    columns = ", ".join(f"{text} AS c{number}" for number, text in enumerate(texts))
    (row,) = spark.sql(f"SELECT {columns}").collect()
    return row


def same(one: object, other: object) -> bool:
    """Whether two values are equal, with NaN equal to itself and doubles equal but for the last digits."""
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-12)
    if isinstance(one, Row):
        one = one.asDict()
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, bytearray):
        one = bytes(one)
    return type(one) is type(other) and one == other
