"""A function as the table of functions holds it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from streams.model.types import SqlType, quoted, spark_type
from streams.sql.casts import cast, cast_text
from streams.sql.errors import TypeProblem
from streams.sql.expressions import Expression, Lambda, functions_of
from streams.sql.functions.signatures import (
    Fit,
    Parameter,
    Pattern,
    read_parameters,
    read_pattern,
    resolved,
    shown,
    shown_parameters,
)

_PLACE: Final = re.compile(r"\{([A-Za-z_]+)\}")
_PYTHON: Final = re.compile(r"\bcaudal_\w+(?=\()")
_CONSTANT: Final = re.compile(r"'(?:[^'\\]|\\.)*'|-?[\w.]+")
_LONG: Final = 120
"""A text of this length is not repeated: it gets a name."""


class Kind(StrEnum):
    """What a function is computed from."""

    SCALAR = "SCALAR"
    AGGREGATE = "AGGREGATE"
    TABLE = "TABLE"


@dataclass(frozen=True, slots=True)
class Call:
    """A call whose arguments have been converted: all that is needed to write it in Spark's SQL."""

    arguments: dict[str, Expression]
    repeated: tuple[Expression, ...]
    lambdas: dict[str, tuple[Lambda, Expression]]
    types: dict[str, SqlType]
    result: SqlType
    order: str

    def text(self, name: str) -> str:
        """The text of an argument."""
        return self.arguments[name].text

    def literal(self, name: str) -> object:
        """The value of an argument that has to be a literal."""
        value = self.arguments[name].literal
        if value is None:
            raise TypeProblem(f"The argument {name} has to be a literal")
        return value


Write: TypeAlias = str | Callable[[Call], str]
Result: TypeAlias = str | Callable[[Sequence[SqlType]], SqlType]


@dataclass(frozen=True, slots=True)
class Overload:
    """One way to call a function, and how it is written in Spark's SQL: a template, or what makes the text."""

    parameters: tuple[Parameter, ...]
    result: Pattern | Callable[[Sequence[SqlType]], SqlType]
    write: Write
    difference: str = ""
    undo: bool = False
    """An aggregate that can take back what it has counted, as aggregates over tables have to."""
    merge: bool = True
    """An aggregate two of whose results can become one, as they do when two sessions become one."""

    @property
    def signature(self) -> str:
        """What it takes."""
        return shown_parameters(self.parameters)

    @property
    def returns(self) -> str:
        """What it returns."""
        return "DECIMAL" if callable(self.result) else shown(self.result)


def overload(parameters: str, result: Result, write: Write, *, difference: str = "", undo: bool = False) -> Overload:
    """An overload, written as in the tables."""
    read = result if callable(result) else read_pattern(result)
    return Overload(read_parameters(parameters), read, write, difference, undo)


@dataclass(frozen=True, slots=True)
class Function:
    """A function with all its overloads."""

    name: str
    category: str
    description: str
    overloads: tuple[Overload, ...] = field(default=())
    kind: Kind = Kind.SCALAR


@dataclass(frozen=True, slots=True)
class Match:
    """The overload that takes some arguments, and how they fit."""

    function: Function
    overload: Overload
    fit: Fit
    result: SqlType


def result_type(chosen: Overload, fitted: Fit) -> SqlType:
    """What an overload returns for arguments."""
    if callable(chosen.result):
        return chosen.result([kind for kind in fitted.types if not isinstance(kind, Lambda)])
    return resolved(chosen.result, fitted.bindings)


def written(match: Match, arguments: Sequence[Expression | Lambda], order: str) -> Expression:
    """A call in Spark's SQL."""
    call = _call(match, arguments, order)
    inside = [*call.arguments.values(), *call.repeated]
    functions = functions_of(*inside)
    text, wrapping = _unrepeated(match, call)
    for body in (body for _, body in call.lambdas.values()):
        if body.functions:
            raise TypeProblem(f"Spark runs no Python in lambda functions: {', '.join(sorted(body.functions))}")
    text = wrapping.replace("\0", text)
    return Expression(text, match.result, functions=functions | frozenset(_PYTHON.findall(text)))


def _call(match: Match, arguments: Sequence[Expression | Lambda], order: str) -> Call:
    many = len(arguments) - len(match.overload.parameters) + 1
    spread = [one for one in match.overload.parameters for _ in range(many if one.variadic else 1)]
    plain: dict[str, Expression] = {}
    repeated: list[Expression] = []
    lambdas: dict[str, tuple[Lambda, Expression]] = {}
    for parameter, given, wanted, body in zip(spread, arguments, match.fit.types, match.fit.bodies, strict=True):
        if isinstance(given, Lambda) or isinstance(wanted, Lambda):
            if isinstance(given, Lambda) and body is not None:
                lambdas[parameter.name] = given, body
        elif parameter.variadic:
            repeated.append(cast(given, wanted))
        else:
            plain[parameter.name] = cast(given, wanted)
    return Call(plain, tuple(repeated), lambdas, dict(match.fit.bindings), match.result, order)


def _unrepeated(match: Match, call: Call) -> tuple[str, str]:
    """The text of a call, and what is put around it: long arguments that occur more than once get a name first.

    Otherwise the text of nested calls would grow with every level by the number of times that it is repeated.
    """
    text = _text(match.overload.write, call)
    long = {
        name: given
        for name, given in call.arguments.items()
        if len(given.text) > _LONG and text.count(given.text) > 1 and not _CONSTANT.fullmatch(given.text)
    }
    if not long or match.function.kind is not Kind.SCALAR:
        return text, "\0"
    # What is not a constant moves out of the lambda function, in which Spark could not run Python.
    moved = {name: given for name, given in call.arguments.items() if not _CONSTANT.fullmatch(given.text)}
    inner = {
        name: Expression(f"named.{quoted(name)}", given.type) if name in moved else given
        for name, given in call.arguments.items()
    }
    named = ", ".join(f"'{name}', {given.text}" for name, given in moved.items())
    shorter = _text(match.overload.write, Call(inner, call.repeated, call.lambdas, call.types, call.result, call.order))
    if _PYTHON.search(shorter):
        return text, "\0"
    return shorter, f"transform(array(named_struct({named})), named -> \0)[0]"


def _text(write: Write, call: Call) -> str:
    if callable(write):
        return write(call)
    return filled(write, call)


def filled(template: str, call: Call) -> str:
    """A template with arguments in the places of their names, and Spark's types in the places of letters."""

    def part(place: re.Match[str]) -> str:
        name = place[1]
        if name in call.arguments:
            return call.arguments[name].text
        if name in call.lambdas:
            return lambda_text(*call.lambdas[name])
        if name in call.types:
            return spark_type(call.types[name])
        match name:
            case "result":
                return spark_type(call.result)
            case "order":
                return call.order
            case _:
                return ", ".join(one.text for one in call.repeated)

    return _PLACE.sub(part, template)


def lambda_text(function: Lambda, body: Expression, to: SqlType | None = None) -> str:
    """A lambda function in Spark's SQL, whose result is of a type."""
    names = ", ".join(map(quoted, function.parameters))
    names = f"({names})" if len(function.parameters) > 1 else names
    return f"{names} -> {body.text if to is None else cast_text(body.text, body.type, to)}"
