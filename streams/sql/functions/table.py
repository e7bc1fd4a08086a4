"""The table of functions: the only list, from which calls are written, and SHOW and DESCRIBE FUNCTION are answered."""

import difflib
from collections.abc import Sequence
from typing import Final

from streams.sql.errors import UnknownFunction, WrongArguments
from streams.sql.expressions import Expression, Lambda
from streams.sql.functions import aggregates, documents, nested, numeric, strings, times
from streams.sql.functions.model import Function, Match, result_type, written
from streams.sql.functions.signatures import Argument, fit

FUNCTIONS: Final[dict[str, Function]] = {
    function.name: function
    for function in sorted(
        (
            *numeric.FUNCTIONS,
            *nested.FUNCTIONS,
            *strings.FUNCTIONS,
            *documents.FUNCTIONS,
            *times.FUNCTIONS,
            *aggregates.AGGREGATES,
            *aggregates.TABLE_FUNCTIONS,
        ),
        key=lambda function: function.name,
    )
}
"""By name."""
RECORD_ORDER: Final = "struct(`ROWPARTITION`, `ROWOFFSET`)"
"""The order of records in which LATEST_BY_OFFSET takes them, unless the query knows a better one."""


def find(name: str, arguments: Sequence[Argument]) -> Match:
    """The overload that fits arguments of these types best, without or else with implicit conversions."""
    function = FUNCTIONS.get(name.upper())
    if function is None:
        similar = difflib.get_close_matches(name.upper(), FUNCTIONS, n=3, cutoff=0.7)
        raise UnknownFunction(name.upper(), tuple(similar))
    fits = [(one, fitted) for one in function.overloads if (fitted := fit(one.parameters, arguments)) is not None]
    if not fits:
        given = ", ".join("LAMBDA" if isinstance(one, Lambda) else str(one) for one in arguments)
        raise WrongArguments(function.name, f"({given})", tuple(one.signature for one in function.overloads))
    chosen, fitted = min(fits, key=lambda pair: pair[1].cost)
    return Match(function, chosen, fitted, result_type(chosen, fitted))


def call(name: str, arguments: Sequence[Expression | Lambda], *, order: str = RECORD_ORDER) -> Expression:
    """A call of a function in Spark's SQL."""
    match = find(name, [one if isinstance(one, Lambda) else one.type for one in arguments])
    return written(match, arguments, order)
