"""Signatures: what a function takes, which may be any type of a family, and what it returns.

They are written as text, `"list ARRAY<T>, item T"`. A single capital letter stands for a type: the same one wherever it
occurs. `N` is a number, `O` whatever has an order, `P` whatever is not nested; `T...` takes any number of arguments.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from streams.model.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    NULL,
    PRIMITIVES,
    STRING,
    UNIT,
    Array,
    Decimal,
    Field,
    Map,
    Primitive,
    SqlType,
    Struct,
    quoted,
)
from streams.sql.conversion import common_type, conversion_cost, is_number
from streams.sql.expressions import Expression, Lambda

Argument: TypeAlias = SqlType | Lambda
_TOKEN: Final = re.compile(r"\w+|=>|\.\.\.|[<>(),]|\S")


@dataclass(frozen=True, slots=True)
class Variable:
    """Any type of a family, the same wherever the letter occurs."""

    letter: str


@dataclass(frozen=True, slots=True)
class Exact:
    """One type, which may be nested or have parameters."""

    type: SqlType


@dataclass(frozen=True, slots=True)
class ListPattern:
    """An ARRAY."""

    element: "Pattern"


@dataclass(frozen=True, slots=True)
class MapPattern:
    """A MAP."""

    key: "Pattern"
    value: "Pattern"


@dataclass(frozen=True, slots=True)
class LambdaPattern:
    """A lambda function."""

    parameters: tuple["Pattern", ...]
    result: "Pattern"


Pattern: TypeAlias = Primitive | Exact | Variable | ListPattern | MapPattern | LambdaPattern
Bindings: TypeAlias = Mapping[str, SqlType]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a function."""

    name: str
    pattern: Pattern
    variadic: bool = False


_FAMILIES: Final[Mapping[str, Callable[[SqlType], bool]]] = {
    "N": is_number,
    "O": lambda kind: not isinstance(kind, Array | Map | Struct) and kind != BOOLEAN,
    "P": lambda kind: not isinstance(kind, Array | Map | Struct),
    "J": lambda kind: kind in {INTEGER, BIGINT, DOUBLE, BOOLEAN, STRING},
    "I": lambda kind: kind in {INTEGER, BIGINT},
    "D": lambda kind: kind in {INTEGER, BIGINT, DOUBLE},
    "X": lambda kind: isinstance(kind, Decimal),
    "B": lambda kind: kind in {STRING, PRIMITIVES["BYTES"]},
}
_FAMILY_NAMES: Final = {
    "N": "INTEGER|BIGINT|DOUBLE|DECIMAL",
    "J": "INTEGER|BIGINT|DOUBLE|BOOLEAN|STRING",
    "I": "INTEGER|BIGINT",
    "D": "INTEGER|BIGINT|DOUBLE",
    "X": "DECIMAL",
    "B": "STRING|BYTES",
}


def read_parameters(text: str) -> tuple[Parameter, ...]:
    """Parameters as they are written in the table of functions."""
    tokens = _TOKEN.findall(text)
    parameters = []
    while tokens:
        name = tokens.pop(0)
        pattern = _read(tokens)
        variadic = tokens[:1] == ["..."]
        del tokens[: 1 if variadic else 0]
        parameters.append(Parameter(name, pattern, variadic))
        del tokens[:1]
    return tuple(parameters)


def read_pattern(text: str) -> Pattern:
    """The type of a result as it is written in the table of functions."""
    return _read(_TOKEN.findall(text))


def _read(tokens: list[str]) -> Pattern:
    word = tokens.pop(0)
    if word == "(":
        parameters = [_read(tokens)]
        while tokens.pop(0) == ",":
            parameters.append(_read(tokens))
        tokens.pop(0)
        return LambdaPattern(tuple(parameters), _read(tokens))
    if word in {"ARRAY", "MAP"}:
        tokens.pop(0)
        parts = [_read(tokens)]
        while tokens.pop(0) == ",":
            parts.append(_read(tokens))
        return ListPattern(parts[0]) if word == "ARRAY" else MapPattern(parts[0], parts[1])
    if word == "UNIT":
        return UNIT
    return PRIMITIVES[word] if word in PRIMITIVES else Variable(word)


def shown(pattern: Pattern) -> str:
    """A pattern as users read it."""
    match pattern:
        case Variable(letter):
            return _FAMILY_NAMES.get(letter, "T" if letter in "OP" else letter)
        case ListPattern(element):
            return f"ARRAY<{shown(element)}>"
        case MapPattern(key, value):
            return f"MAP<{shown(key)}, {shown(value)}>"
        case LambdaPattern(parameters, result):
            return f"({', '.join(map(shown, parameters))}) => {shown(result)}"
        case Exact(kind):
            return str(kind)
        case _:
            return str(pattern)


def shown_parameters(parameters: Sequence[Parameter]) -> str:
    """Parameters as users read them."""
    return f"({', '.join(shown(one.pattern) + ('...' if one.variadic else '') for one in parameters)})"


@dataclass(frozen=True, slots=True)
class Fit:
    """How arguments fit the parameters: the type that each is converted to, what letters stand for, and the cost."""

    types: tuple[SqlType | Lambda, ...]
    bodies: tuple[Expression | None, ...]
    bindings: Bindings
    cost: int


def fit(parameters: Sequence[Parameter], arguments: Sequence[Argument]) -> Fit | None:
    """How the arguments fit the parameters, if they do."""
    if len(arguments) < len(parameters):
        return None
    patterns = list(_spread(parameters, len(arguments)))
    if len(patterns) != len(arguments):
        return None
    bindings = _bound(patterns, arguments)
    if bindings is None:
        return None
    types: list[SqlType | Lambda] = []
    bodies: list[Expression | None] = []
    total = 0
    for pattern, argument in zip(patterns, arguments, strict=True):
        if isinstance(pattern, LambdaPattern) or isinstance(argument, Lambda):
            body = _typed_body(pattern, argument, bindings)
            if body is None:
                return None
            bodies.append(body)
            types.append(argument)
            continue
        wanted = resolved(pattern, bindings)
        cost = conversion_cost(argument, wanted)
        if cost is None:
            return None
        # What is written for a family of types is chosen after what is written for just this type.
        total += cost * 2 + (0 if isinstance(pattern, Primitive | Exact) else 1)
        types.append(wanted)
        bodies.append(None)
    return Fit(tuple(types), tuple(bodies), bindings, total)


def _spread(parameters: Sequence[Parameter], count: int) -> Iterator[Pattern]:
    repeated = count - len(parameters) + 1
    for parameter in parameters:
        for _ in range(repeated if parameter.variadic else 1):
            yield parameter.pattern


def _bound(patterns: Sequence[Pattern], arguments: Sequence[Argument]) -> dict[str, SqlType] | None:
    found: dict[str, list[SqlType]] = {}
    for pattern, argument in zip(patterns, arguments, strict=True):
        if not isinstance(argument, Lambda) and not _collect(pattern, argument, found):
            return None
    bindings: dict[str, SqlType] = {}
    for letter, types in found.items():
        kind = common_type(types)
        if kind is None or (kind != NULL and letter in _FAMILIES and not _FAMILIES[letter](kind)):
            return None
        bindings[letter] = STRING if kind == NULL else kind
    return bindings


def _collect(pattern: Pattern, given: SqlType, found: dict[str, list[SqlType]]) -> bool:
    match pattern, given:
        case Variable(letter), _:
            found.setdefault(letter, []).append(given)
        case ListPattern(element), _ if given == NULL:
            return _collect(element, NULL, found)
        case MapPattern(key, value), _ if given == NULL:
            return _collect(key, NULL, found) and _collect(value, NULL, found)
        case ListPattern(element), Array(has):
            return _collect(element, has, found)
        case MapPattern(key, value), Map(has_key, has_value):
            return _collect(key, has_key, found) and _collect(value, has_value, found)
        case ((Primitive() | Exact()), _):
            return True
        case _:
            return False
    return True


def resolved(pattern: Pattern, bindings: Bindings) -> SqlType:
    """The type that a pattern stands for."""
    match pattern:
        case Variable(letter):
            return bindings[letter]
        case ListPattern(element):
            return Array(resolved(element, bindings))
        case MapPattern(key, value):
            return Map(resolved(key, bindings), resolved(value, bindings))
        case Primitive():
            return pattern
        case Exact(kind):
            return kind
        case LambdaPattern():
            raise TypeError("a lambda function has no type")


def _typed_body(pattern: Pattern, argument: Argument, bindings: dict[str, SqlType]) -> Expression | None:
    """The body of a lambda function, whose type may be what a letter stands for."""
    if not isinstance(pattern, LambdaPattern) or not isinstance(argument, Lambda):
        return None
    if len(pattern.parameters) != len(argument.parameters):
        return None
    kinds = [resolved(one, bindings) for one in pattern.parameters]
    named = [Expression(quoted(name), kind) for name, kind in zip(argument.parameters, kinds, strict=True)]
    body = argument.body(named)
    if isinstance(pattern.result, Variable) and pattern.result.letter not in bindings:
        bindings[pattern.result.letter] = body.type
    return body if conversion_cost(body.type, resolved(pattern.result, bindings)) is not None else None


def entry_struct(value: SqlType) -> SqlType:
    """The items of ENTRIES."""
    return Struct((Field("K", STRING), Field("V", value)))
