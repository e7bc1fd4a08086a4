"""The types of SQL as values: their names, the JSON by which the REST API tells them, and Spark's names for them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from typing_extensions import override

PRECISION_MAX: Final = 38
"""Digits of a decimal in Spark; ksqlDB has no limit."""


class Name(StrEnum):
    """The types without parameters."""

    BOOLEAN = "BOOLEAN"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    BYTES = "BYTES"
    TIME = "TIME"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    NULL = "NULL"
    """The type of a bare NULL, which takes the type of what stands beside it."""
    UNIT = "INTERVAL UNIT"
    """A word such as SECONDS, as the first argument of TIMESTAMPADD."""


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without parameters."""

    name: Name

    @override
    def __str__(self) -> str:
        return self.name.value


@dataclass(frozen=True, slots=True)
class Decimal:
    """DECIMAL(precision, scale)."""

    precision: int
    scale: int

    @override
    def __str__(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class Array:
    """ARRAY<element>."""

    element: "SqlType"

    @override
    def __str__(self) -> str:
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True, slots=True)
class Map:
    """MAP<key, value>."""

    key: "SqlType"
    value: "SqlType"

    @override
    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a STRUCT."""

    name: str
    type: "SqlType"

    @override
    def __str__(self) -> str:
        return f"{quoted(self.name)} {self.type}"


@dataclass(frozen=True, slots=True)
class Struct:
    """STRUCT<name type, ...>."""

    fields: tuple[Field, ...]

    def field(self, name: str) -> "SqlType | None":
        """The type of a field, if there is one of exactly this name."""
        return next((field.type for field in self.fields if field.name == name), None)

    @override
    def __str__(self) -> str:
        return f"STRUCT<{', '.join(map(str, self.fields))}>"


SqlType: TypeAlias = Primitive | Decimal | Array | Map | Struct

BOOLEAN: Final = Primitive(Name.BOOLEAN)
INTEGER: Final = Primitive(Name.INTEGER)
BIGINT: Final = Primitive(Name.BIGINT)
DOUBLE: Final = Primitive(Name.DOUBLE)
STRING: Final = Primitive(Name.STRING)
BYTES: Final = Primitive(Name.BYTES)
TIME: Final = Primitive(Name.TIME)
DATE: Final = Primitive(Name.DATE)
TIMESTAMP: Final = Primitive(Name.TIMESTAMP)
NULL: Final = Primitive(Name.NULL)
UNIT: Final = Primitive(Name.UNIT)

PRIMITIVES: Final[Mapping[str, Primitive]] = {
    **{name.value: Primitive(name) for name in Name if name not in {Name.NULL, Name.UNIT}},
    "INT": INTEGER,
    "VARCHAR": STRING,
}
"""The types without parameters, by all names they have in statements."""

_SPARK: Final = {
    Name.BOOLEAN: "boolean",
    Name.INTEGER: "int",
    Name.BIGINT: "bigint",
    Name.DOUBLE: "double",
    Name.STRING: "string",
    Name.BYTES: "binary",
    Name.TIME: "time(3)",
    Name.DATE: "date",
    Name.TIMESTAMP: "timestamp",
    Name.NULL: "void",
    Name.UNIT: "string",
}


def quoted(name: str) -> str:
    """A name between backticks, as ksqlDB prints it and as Spark reads it."""
    return "`" + name.replace("`", "``") + "`"


_TOKEN: Final = re.compile(r"\s*(?:`((?:[^`]|``)*)`|(\w+)|([<>(),]))")


def parse_type(text: str) -> SqlType:
    """The type that `str` prints like this; ValueError for any other text."""
    tokens: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ValueError(f"not a type: {text}")
        position = found.end()
        name, word, symbol = found.groups()
        tokens.append(("name", name.replace("``", "`")) if name is not None else ("", word or symbol))
    tokens.reverse()
    try:
        parsed = _parsed(tokens)
    except (IndexError, KeyError) as error:
        raise ValueError(f"not a type: {text}") from error
    if tokens:
        raise ValueError(f"not a type: {text}")
    return parsed


def _parsed(tokens: list[tuple[str, str]]) -> SqlType:
    word = tokens.pop()[1]
    match word:
        case "ARRAY":
            _expect(tokens, "<")
            kind: SqlType = Array(_parsed(tokens))
        case "MAP":
            _expect(tokens, "<")
            key = _parsed(tokens)
            _expect(tokens, ",")
            kind = Map(key, _parsed(tokens))
        case "STRUCT":
            _expect(tokens, "<")
            fields: list[Field] = []
            while tokens[-1] != ("", ">"):
                if fields:
                    _expect(tokens, ",")
                name = tokens.pop()[1]
                fields.append(Field(name, _parsed(tokens)))
            kind = Struct(tuple(fields))
        case "DECIMAL":
            _expect(tokens, "(")
            precision = int(tokens.pop()[1])
            _expect(tokens, ",")
            kind = Decimal(precision, int(tokens.pop()[1]))
            _expect(tokens, ")")
            return kind
        case _:
            return PRIMITIVES[word]
    _expect(tokens, ">")
    return kind


def _expect(tokens: list[tuple[str, str]], symbol: str) -> None:
    if tokens.pop() != ("", symbol):
        raise KeyError(symbol)


def spark_type(kind: SqlType) -> str:
    """A type in Spark's SQL; decimals have as many digits as Spark can hold."""
    match kind:
        case Primitive(name):
            return _SPARK[name]
        case Decimal():
            fitting = bounded(kind.precision, kind.scale)
            return f"decimal({fitting.precision},{fitting.scale})"
        case Array(element):
            return f"array<{spark_type(element)}>"
        case Map(key, value):
            return f"map<{spark_type(key)},{spark_type(value)}>"
        case Struct(fields):
            return f"struct<{','.join(f'{quoted(field.name)}:{spark_type(field.type)}' for field in fields)}>"


def bounded(precision: int, scale: int) -> Decimal:
    """The decimal, or what Spark makes of one with too many digits: up to six digits of the fraction are kept."""
    if precision <= PRECISION_MAX:
        return Decimal(precision, scale)
    return Decimal(PRECISION_MAX, max(min(scale, 6), PRECISION_MAX - (precision - scale), 0))


def json_schema(kind: SqlType) -> dict[str, object]:
    """A type as the REST API tells it."""
    schema: dict[str, object] = {"type": base_name(kind), "fields": None, "memberSchema": None}
    match kind:
        case Decimal(precision, scale):
            schema["parameters"] = {"precision": precision, "scale": scale}
        case Array(element) | Map(_, element):
            schema["memberSchema"] = json_schema(element)
        case Struct(fields):
            schema["fields"] = [{"name": field.name, "schema": json_schema(field.type)} for field in fields]
        case Primitive():
            pass
    return schema


def base_name(kind: SqlType) -> str:
    """The first word of a type."""
    return kind.name.value if isinstance(kind, Primitive) else type(kind).__name__.upper()


def contains(kind: SqlType, part: SqlType | type[SqlType]) -> bool:
    """Whether values of a type may hold values of another type, or of another kind of type, somewhere inside."""
    if kind == part or (isinstance(part, type) and isinstance(kind, part)):
        return True
    match kind:
        case Array(element):
            return contains(element, part)
        case Map(key, value):
            return contains(key, part) or contains(value, part)
        case Struct(fields):
            return any(contains(field.type, part) for field in fields)
        case _:
            return False
