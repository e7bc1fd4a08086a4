"""Functions of numbers."""

from collections.abc import Sequence
from typing import Final

from streams.model.types import Decimal, SqlType, spark_type
from streams.sql.functions.model import Call, Function, overload

_CATEGORY: Final = "MATHEMATICAL"
_LARGE: Final = "4503599627370496D"
"""From here on, doubles have no fraction."""
_LN: Final = "case when {x} > 0 then ln({x}) when {x} = 0 then -double('Infinity') when {x} < 0 then double('NaN') end"
_SERIES: Final = (
    "case when {step} = 0 or ({step} > 0) != ({start} <= {end}) and {start} != {end}"
    " or abs(cast({end} as double) - {start}) / abs({step}) >= 100000 then null"
    " else sequence({start}, {end}, cast({step} as {I})) end"
)
_RADIUS: Final = (
    "case when lower({unit}) in ('mi', 'mile', 'miles') then 3959"
    " when lower({unit}) in ('km', 'kilometer', 'kilometers', 'kilometre', 'kilometres') then 6371 end"
)
_LIMITED: Final = "NULL if it would have more than 100,000 items"


def _function(name: str, description: str, *overloads: object) -> Function:
    return Function(name, _CATEGORY, description, tuple(overloads))  # type: ignore[arg-type]  # they are overloads


def _of_double(name: str, description: str) -> Function:
    return _function(name, description, overload("x DOUBLE", "DOUBLE", f"{name.lower()}({{x}})"))


def _whole(types: Sequence[SqlType]) -> SqlType:
    """A decimal without its fraction."""
    kind = types[0]
    return Decimal(max(kind.precision - kind.scale, 1), 0) if isinstance(kind, Decimal) else kind


def _first(types: Sequence[SqlType]) -> SqlType:
    return types[0]


def _round_double(call: Call) -> str:
    """Half towards positive infinity; Spark rounds half away from zero, so that a tie below zero is moved off it."""
    x, places = call.text("x"), call.arguments["scale"].literal
    if not isinstance(places, int) or not -300 < places < 300:
        return f"caudal_round({x}, {call.text('scale')})"
    finer = f"round({x}, {places + 1})"
    tie = f"{x} < 0 and {x} = {finer} and {finer} != round({x}, {places})"
    moved = f"if({tie}, {x} + 1e{-places - 1}D, {x})"
    return f"round({moved}, {places})"


def _round_decimal(call: Call) -> str:
    x, kind, places = call.text("x"), call.result, call.arguments["scale"].literal
    if not isinstance(places, int) or not isinstance(kind, Decimal):
        text = f"caudal_round_decimal(try_cast({x} as string), {call.text('scale')})"
    elif places >= kind.scale:
        return x
    elif places < 0:
        unit = f"{10**-places}BD" if places > -38 else "null"
        text = f"floor({x} / {unit} + 0.5BD) * {unit}"
    else:
        text = f"floor({x} + 0.{'0' * places}5BD, {places})"
    return f"try_cast({text} as {spark_type(kind)})"


def _truncate_decimal(call: Call) -> str:
    x, kind, places = call.text("x"), call.result, call.arguments["scale"].literal
    if isinstance(places, int) and isinstance(kind, Decimal) and places >= kind.scale:
        return x
    if isinstance(places, int) and places >= 0:
        text = f"if({x} < 0, ceil({x}, {places}), floor({x}, {places}))"
    else:
        text = f"caudal_trunc_decimal(try_cast({x} as string), {call.text('scale')})"
    return f"try_cast({text} as {spark_type(kind)})"


def _extreme(name: str) -> Function:
    def write(call: Call) -> str:
        texts = [one.text for one in call.repeated]
        return f"{name.lower()}({', '.join(texts)})" if len(texts) > 1 else texts[0]

    which = "largest" if name == "GREATEST" else "smallest"
    return _function(name, f"The {which} of the values that are not NULL.", overload("values O...", "O", write))


def _rounded_towards(name: str) -> Function:
    low = name.lower()
    return _function(
        name,
        f"The nearest whole number that is not {'smaller' if name == 'CEIL' else 'larger'}.",
        overload("x I", "I", "{x}"),
        overload("x DOUBLE", "DOUBLE", f"if(abs({{x}}) < {_LARGE}, cast({low}({{x}}) as double), {{x}})"),
        overload("x X", _first, f"try_cast({low}({{x}}) as {{result}})"),
    )


FUNCTIONS: Final = (
    _function("ABS", "The number without its sign.", overload("x N", "N", "abs({x})")),
    *(
        _of_double(name, description)
        for name, description in {
            "ACOS": "The arc cosine.",
            "ASIN": "The arc sine.",
            "ATAN": "The arc tangent.",
            "CBRT": "The cube root.",
            "COS": "The cosine of an angle in radians.",
            "COSH": "The hyperbolic cosine.",
            "COT": "The cotangent of an angle in radians.",
            "DEGREES": "An angle in radians as degrees.",
            "EXP": "e to the power of a number.",
            "RADIANS": "An angle in degrees as radians.",
            "SIN": "The sine of an angle in radians.",
            "SINH": "The hyperbolic sine.",
            "SQRT": "The square root; NaN for numbers below 0.",
            "TAN": "The tangent of an angle in radians.",
            "TANH": "The hyperbolic tangent.",
        }.items()
    ),
    _function("ATAN2", "The angle of the point (x, y).", overload("y DOUBLE, x DOUBLE", "DOUBLE", "atan2({y}, {x})")),
    _rounded_towards("CEIL"),
    _rounded_towards("FLOOR"),
    _extreme("GREATEST"),
    _extreme("LEAST"),
    _function("LN", "The natural logarithm.", overload("x DOUBLE", "DOUBLE", _LN)),
    _function(
        "LOG",
        "The logarithm to a base; without one the natural logarithm.",
        overload("x DOUBLE", "DOUBLE", _LN),
        overload(
            "base DOUBLE, x DOUBLE",
            "DOUBLE",
            "case when {x} is null or {base} is null then null when {base} <= 0 or {base} = 1 then double('NaN')"
            f" else ({_LN}) / ln({{base}}) end",
        ),
    ),
    _function("PI", "The ratio of a circle's circumference to its diameter.", overload("", "DOUBLE", "pi()")),
    _function("POWER", "A number to the power of another.", overload("b DOUBLE, e DOUBLE", "DOUBLE", "pow({b}, {e})")),
    _function("RANDOM", "A random number from 0 up to 1.", overload("", "DOUBLE", "rand()")),
    _function(
        "ROUND",
        "The nearest number with so many digits after the point, of two equally near ones the larger.",
        overload("x I", "BIGINT", "cast({x} as bigint)"),
        overload(
            "x DOUBLE",
            "BIGINT",
            f"if(abs({{x}}) < {_LARGE}, floor({{x}}) + cast({{x}} - floor({{x}}) >= 0.5D as int),"
            " cast({x} as bigint))",
        ),
        overload("x X", _whole, "try_cast(floor({x} + 0.5BD) as {result})"),
        overload("x DOUBLE, scale INT", "DOUBLE", _round_double),
        overload("x X, scale INT", _first, _round_decimal),
    ),
    _function("SIGN", "-1, 0 or 1.", overload("x N", "INT", "cast(sign({x}) as int)")),
    _function(
        "TRUNC",
        "The number without the digits after the point, or after so many of them.",
        overload("x I", "BIGINT", "cast({x} as bigint)"),
        overload("x DOUBLE", "BIGINT", "cast({x} as bigint)"),
        overload("x X", _whole, "try_cast(if({x} < 0, ceil({x}), floor({x})) as {result})"),
        overload("x DOUBLE, scale INT", "DOUBLE", "caudal_trunc({x}, {scale})"),
        overload("x X, scale INT", _first, _truncate_decimal),
    ),
    _function(
        "GEO_DISTANCE",
        "The distance of two points on the earth, in kilometres or miles.",
        *(
            overload(
                f"lat_a DOUBLE, lon_a DOUBLE, lat_b DOUBLE, lon_b DOUBLE{unit}",
                "DOUBLE",
                f"if(abs({{lat_a}}) > 90 or abs({{lat_b}}) > 90 or abs({{lon_a}}) > 180 or abs({{lon_b}}) > 180, null,"
                f" 2 * {radius} * asin(sqrt(pow(sin(radians({{lat_b}} - {{lat_a}}) / 2), 2) + cos(radians({{lat_a}}))"
                " * cos(radians({lat_b})) * pow(sin(radians({lon_b} - {lon_a}) / 2), 2))))",
            )
            for unit, radius in (
                ("", "6371"),
                (
                    ", unit STRING",
                    _RADIUS,
                ),
            )
        ),
    ),
    Function(
        "GENERATE_SERIES",
        "ARRAY",
        "The numbers from one to another.",
        (
            overload(
                "start I, end I",
                "ARRAY<I>",
                _SERIES.replace("{step}", "if({start} <= {end}, 1, -1)"),
                difference=_LIMITED,
            ),
            overload("start I, end I, step INT", "ARRAY<I>", _SERIES, difference=_LIMITED),
        ),
    ),
    Function("AS_VALUE", "OTHER", "A copy of a key column.", (overload("key T", "T", "{key}"),)),
)
