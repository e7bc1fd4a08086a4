"""Functions, casts and operators as Spark computes them, by a few queries; the results are those of ksqlDB."""

from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streams.model import types
from streams.model.session import SESSION
from streams.sql import operators
from streams.sql.casts import cast
from streams.sql.conversion import common_type
from streams.sql.expressions import Expression, condition
from streams.sql.functions.model import Kind
from streams.sql.functions.table import FUNCTIONS, call
from tests.support.spark_java import needs_java
from tests.support.spark_session import small_session
from tests.support.sql_examples import AGGREGATES, INFINITE, NAN, NO_FIXED_RESULT, SCALARS
from tests.support.sql_values import Fields, Null, argument, computed, expression, register, same

pytestmark = [
    needs_java,
    # Connections of Spark to Python are closed when they are collected.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session as the expressions need it."""
    properties = {"spark.sql.catalogImplementation": "in-memory", "spark.ui.showConsoleProgress": "false", **SESSION}
    with small_session(tmp_path_factory.mktemp("spark"), properties) as session:
        register(session)
        yield session


@pytest.fixture(scope="module")
def scalars(spark: SparkSession) -> list[object]:
    """The results of all examples."""
    return computed(spark, [call(name, [argument(one) for one in given]).text for name, given, _ in SCALARS])


@pytest.mark.parametrize("number", range(len(SCALARS)), ids=lambda number: f"{SCALARS[number][0]}-{number}")
def test_scalar_function(number: int, scalars: list[object]) -> None:
    assert same(scalars[number], SCALARS[number][2]), (SCALARS[number], scalars[number])


def _aggregated(name: str, rows: Sequence[tuple[Any, ...]], given: Sequence[Any]) -> str:
    """One aggregate over its own rows."""
    columns = list(zip(*([expression(value) for value in row] for row in rows), strict=True))
    kinds = [common_type([one.type for one in column]) or types.NULL for column in columns]
    cells = [[cast(one, kind).text for one in column] for column, kind in zip(columns, kinds, strict=True)]
    table = ", ".join(f"({number}, {', '.join(row)})" for number, row in enumerate(zip(*cells, strict=True)))
    names = ", ".join(f"c{number}" for number in range(len(columns)))
    arguments = [
        Expression(f"c{one[1:]}", kinds[int(one[1:])]) if isinstance(one, str) and one[0] == "#" else argument(one)
        for one in given
    ]
    return f"(SELECT {call(name, arguments, order='at').text} FROM VALUES {table} AS t(at, {names}))"


@pytest.fixture(scope="module")
def aggregates(spark: SparkSession) -> list[object]:
    """The results of all examples."""
    return computed(spark, [_aggregated(name, rows, given) for name, rows, given, _ in AGGREGATES])


@pytest.mark.parametrize("number", range(len(AGGREGATES)), ids=lambda number: f"{AGGREGATES[number][0]}-{number}")
def test_aggregate(number: int, aggregates: list[object]) -> None:
    assert same(aggregates[number], AGGREGATES[number][3]), (AGGREGATES[number], aggregates[number])


CASTS: list[tuple[Any, types.SqlType, object]] = [
    (True, types.STRING, "true"),
    (5_000_000_000, types.INTEGER, 705032704),
    (7, types.BIGINT, 7),
    (7, types.Decimal(3, 1), Decimal("7.0")),
    (700, types.Decimal(3, 1), None),
    (7, types.DOUBLE, 7.0),
    (-7, types.STRING, "-7"),
    (Decimal("-1.9"), types.INTEGER, -1),
    (Decimal("1.25"), types.Decimal(2, 1), Decimal("1.3")),
    (Decimal("99.9"), types.Decimal(2, 1), None),
    (Decimal("0.0000001"), types.STRING, "0.0000001"),
    (Decimal("1.5"), types.DOUBLE, 1.5),
    (-1.9, types.INTEGER, -1),
    (1e300, types.INTEGER, 2**31 - 1),
    (-1e300, types.BIGINT, -(2**63)),
    (NAN, types.INTEGER, 0),
    (1.25, types.Decimal(2, 1), Decimal("1.3")),
    (INFINITE, types.Decimal(2, 1), None),
    (1e10, types.STRING, "1.0E10"),
    (100.0, types.STRING, "100.0"),
    ("TR", types.BOOLEAN, True),
    ("yes", types.BOOLEAN, True),
    (" true", types.BOOLEAN, False),
    ("", types.BOOLEAN, False),
    ("nope", types.BOOLEAN, False),
    (" 5 ", types.INTEGER, 5),
    ("1.5", types.INTEGER, None),
    ("3000000000", types.INTEGER, None),
    ("3000000000", types.BIGINT, 3_000_000_000),
    ("1.25", types.Decimal(2, 1), Decimal("1.3")),
    ("x", types.Decimal(2, 1), None),
    (" 1e3 ", types.DOUBLE, 1000.0),
    ("NaN", types.DOUBLE, None),
    ("Infinity", types.DOUBLE, None),
    ("1e999", types.DOUBLE, None),
    ("YQ==", types.BYTES, b"a"),
    ("!", types.BYTES, None),
    ("05:06", types.TIME, time(5, 6)),
    ("5", types.TIME, None),
    ("2021-03-04", types.DATE, date(2021, 3, 4)),
    ("2021", types.DATE, None),
    ("2021-03-04T05:06:07.089+01:00", types.TIMESTAMP, datetime.fromisoformat("2021-03-04T04:06:07.089000")),
    ("2021-03", types.TIMESTAMP, datetime.fromisoformat("2021-03-01T00:00:00")),
    ("12:00", types.TIMESTAMP, None),
    (datetime.fromisoformat("2021-03-04T05:06:07.089000"), types.STRING, "2021-03-04T05:06:07.089"),
    (datetime.fromisoformat("2021-03-04T05:06:00"), types.DATE, date(2021, 3, 4)),
    (datetime.fromisoformat("2021-03-04T05:06:00"), types.TIME, time(5, 6)),
    (date(2021, 3, 4), types.TIMESTAMP, datetime.fromisoformat("2021-03-04T00:00:00")),
    (date(2021, 3, 4), types.STRING, "2021-03-04"),
    (time(5, 6, 7, 80000), types.STRING, "05:06:07.080"),
    ([1, None], types.STRING, "[1, null]"),
    ([[1.5]], types.STRING, "[[1.5]]"),
    ({"a": 1, "b": None}, types.STRING, "{a=1, b=null}"),
    (Fields({"A": 1, "B": Null(types.STRING)}), types.STRING, "Struct{A=1}"),
    (["1", "x"], types.Array(types.INTEGER), [1, None]),
    ({1: "2"}, types.Map(types.STRING, types.INTEGER), {"1": 2}),
    (
        Fields({"A": 1, "X": 2}),
        types.Struct((types.Field("B", types.STRING), types.Field("A", types.STRING))),
        {"B": None, "A": "1"},
    ),
    *(
        (Null(kind), types.STRING, None)
        for kind in (types.BOOLEAN, types.DOUBLE, types.TIME, types.Array(types.BIGINT))
    ),
    *(
        (Null(types.STRING), kind, None)
        for kind in (types.BOOLEAN, types.INTEGER, types.DOUBLE, types.BYTES, types.TIME)
    ),
]


def _operated(given: Any) -> Expression:
    match given:
        case (("+" | "-" | "*" | "/" | "%") as operator, left, right):
            return operators.arithmetic(operator, expression(left), expression(right))
        case (str(operator), left, right):
            return operators.compare(operator, expression(left), expression(right))
        case _:
            raise TypeError(given)


_NONE = Null(types.INTEGER)
_TEXT = Null(types.STRING)
OPERATORS: list[tuple[Any, object]] = [
    (("=", 1, _NONE), False),
    (("<>", _NONE, _NONE), False),
    (("<", 1, 2.5), True),
    ((">=", Decimal("1.50"), 1), True),
    (("=", date(2021, 1, 1), "2021-01-01"), True),
    (("<", date(2021, 1, 1), datetime.fromisoformat("2021-01-01T01:00:00")), True),
    (("=", [1, 2], [1, 2]), True),
    (("IS DISTINCT FROM", _NONE, _NONE), False),
    (("IS DISTINCT FROM", 1, _NONE), True),
    (("IS NOT DISTINCT FROM", _NONE, _NONE), True),
    (("+", 2**31 - 1, 1), -(2**31)),
    (("+", 2**63 - 1, 1), -(2**63)),
    (("*", 2**40, 2**40), 0),
    (("-", 1, _NONE), None),
    (("/", 7, 2), 3),
    (("/", -7, 2), -3),
    (("/", 7, 0), None),
    (("%", -7, 4), -3),
    (("%", 7, 0), None),
    (("/", 1.0, 0), INFINITE),
    (("/", -1, 0.0), -INFINITE),
    (("/", 0.0, 0.0), NAN),
    (("%", 5.5, 0), NAN),
    (("/", Null(types.DOUBLE), 0), None),
    (("%", 5.5, 2), 1.5),
    (("+", Decimal("1.50"), 1), Decimal("2.50")),
    (("/", Decimal("1.00"), Decimal("8.0")), Decimal("0.125000")),
    (("/", Decimal("1.00"), Decimal("3.0")), None),
    (("/", Decimal("1.00"), 0), None),
    (("*", Decimal("1.5"), Decimal("1.5")), Decimal("2.25")),
    (("%", Decimal("7.5"), 2), Decimal("1.5")),
    (("+", Decimal("1.5"), 0.5), 2.0),
    (("+", "a", _TEXT), "anull"),
    (operators.concatenate(expression("a"), expression(_TEXT)), "a"),
    (operators.concatenate(expression(b"a"), expression(b"b")), b"ab"),
    (operators.negate(expression(-(2**31))), -(2**31)),
    (operators.negation(operators.compare("=", expression(1), expression(_NONE))), True),
    (condition(expression(Null(types.BOOLEAN))), False),
    (operators.logical("OR", expression(True), expression(False)), True),
    (operators.is_null(expression(_NONE)), True),
    (operators.between(expression(2), expression(1), expression(2)), True),
    (operators.between(expression(_NONE), expression(1), expression(2)), False),
    (operators.contained(expression(2), [expression(None), expression(2)]), True),
    (operators.contained(expression(_NONE), [expression(2)]), False),
    (operators.contained(expression(2), [expression(1.5), expression(2.0)]), True),
    (operators.contained(expression(2), [expression("2"), expression("x")]), True),
    (operators.contained(expression("a"), [expression(_TEXT), expression("b")]), False),
    (operators.like(expression("a\\b"), expression("a\\_")), True),
    (operators.like(expression("a%b"), expression("a!%%"), "!"), True),
    (operators.like(expression("axb"), expression("a!%%"), "!"), False),
    (operators.like(expression("a.c"), expression("a.%")), True),
    (operators.like(expression("abc"), expression("a.%")), False),
    (operators.like(expression("a\nb"), expression("a%")), False),
    (operators.like(expression("abc"), expression("b")), False),
    (operators.like(expression(_TEXT), expression("a"), negated=True), False),
    (operators.like(expression("b"), expression("a"), negated=True), True),
    (operators.like(expression("a+c"), Expression("concat('a+', '_')", types.STRING)), True),
    (operators.like(expression("aac"), Expression("concat('a+', '_')", types.STRING)), False),
    (operators.subscript(expression([5, 6]), expression(1)), 5),
    (operators.subscript(expression([5, 6]), expression(-1)), 6),
    (operators.subscript(expression([5, 6]), expression(0)), None),
    (operators.subscript(expression([5, 6]), expression(3)), None),
    (operators.subscript(expression({"a": 1}), expression("b")), None),
    (operators.subscript(expression({"a": 1}), expression("a")), 1),
    (operators.field(expression(Fields({"A": 1})), "A"), 1),
    (operators.case([(expression(Null(types.BOOLEAN)), expression(1))], expression(2)), 2),
    (operators.case([(expression(False), expression(1))], None), None),
    (operators.array([expression(1), expression(2**40), expression(None)]), [1, 2**40, None]),
    (operators.map_of([(expression("a"), expression(1)), (expression(_TEXT), expression(2))]), {"a": 1}),
]


@pytest.fixture(scope="module")
def others(spark: SparkSession) -> list[object]:
    """The results of all casts, then of all operators."""
    casts = [cast(expression(given), to) for given, to, _ in CASTS]
    rest = [one if isinstance(one, Expression) else _operated(one) for one, _ in OPERATORS]
    return computed(spark, [one.text for one in (*casts, *rest)])


@pytest.mark.parametrize("number", range(len(CASTS)))
def test_cast(number: int, others: list[object]) -> None:
    assert same(others[number], CASTS[number][2]), (CASTS[number], others[number])


@pytest.mark.parametrize("number", range(len(OPERATORS)))
def test_operator(number: int, others: list[object]) -> None:
    result = others[len(CASTS) + number]

    assert same(result, OPERATORS[number][1]), (OPERATORS[number], result)


def test_long_arguments_are_not_repeated(spark: SparkSession) -> None:
    nested = call("ROUND", [expression(2.5), expression(0)])
    for _ in range(30):
        nested = (
            call("SUBSTRING", [cast(nested, types.STRING), expression(-3)])
            if nested.type == types.DOUBLE
            else call("CEIL", [cast(nested, types.DOUBLE)])
        )
    trimmed = expression("stream of texts that is long enough to be given a name")
    for _ in range(12):
        trimmed = call("SUBSTRING", [trimmed, expression(-100)])

    assert len(trimmed.text) < 20_000
    assert computed(spark, [nested.text, trimmed.text])[1] == "stream of texts that is long enough to be given a name"


def test_functions_without_a_fixed_result(spark: SparkSession) -> None:
    number, uuid, now, today = computed(
        spark, [call(name, []).text for name in ("RANDOM", "UUID", "UNIX_TIMESTAMP", "UNIX_DATE")]
    )

    assert isinstance(number, float)
    assert 0 <= number < 1
    assert len(str(uuid)) == 36
    assert isinstance(now, int)
    assert today == now // 86_400_000


def test_every_function_has_an_example() -> None:
    exercised = {name for name, *_ in SCALARS} | {name for name, *_ in AGGREGATES} | NO_FIXED_RESULT

    assert exercised == set(FUNCTIONS)
    assert {name for name, *_ in AGGREGATES} == {
        name for name, function in FUNCTIONS.items() if function.kind is Kind.AGGREGATE
    }
