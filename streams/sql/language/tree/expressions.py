"""Expressions. A chain of operators is one node, so that a tree is no deeper than its text is nested."""

from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from streams.sql.language.tree.node import Identifier, Node
from streams.sql.language.tree.types import Type


@dataclass(frozen=True, slots=True)
class StringLiteral(Node):
    """'text'."""

    value: str


@dataclass(frozen=True, slots=True)
class IntegerLiteral(Node):
    """A whole number: an INTEGER if it fits, else a BIGINT."""

    value: int


@dataclass(frozen=True, slots=True)
class DecimalLiteral(Node):
    """A number with a point: a DECIMAL of exactly its digits."""

    value: Decimal


@dataclass(frozen=True, slots=True)
class DoubleLiteral(Node):
    """A number with an exponent."""

    value: float


@dataclass(frozen=True, slots=True)
class BooleanLiteral(Node):
    """TRUE or FALSE."""

    value: bool


@dataclass(frozen=True, slots=True)
class NullLiteral(Node):
    """NULL."""


Literal: TypeAlias = StringLiteral | IntegerLiteral | DecimalLiteral | DoubleLiteral | BooleanLiteral | NullLiteral


@dataclass(frozen=True, slots=True)
class ColumnReference(Node):
    """A column, or the parameter of a lambda; `source.column` in a join."""

    name: Identifier
    source: Identifier | None = None


@dataclass(frozen=True, slots=True)
class FieldAccess(Node):
    """->field."""

    name: Identifier


@dataclass(frozen=True, slots=True)
class ElementAccess(Node):
    """[index] of an array, or [key] of a map."""

    index: "Expression"


@dataclass(frozen=True, slots=True)
class Access(Node):
    """Parts of a value: base->a->b[1]."""

    base: "Expression"
    steps: tuple[FieldAccess | ElementAccess, ...]


@dataclass(frozen=True, slots=True)
class Sign(Node):
    """A sign before anything but a number."""

    operator: str
    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Operand(Node):
    """An operator and what stands on its right."""

    operator: str
    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """A chain of either + and -, or of * / and %, from left to right."""

    first: "Expression"
    rest: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Concatenation(Node):
    """a || b || ..."""

    parts: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    """= <> < <= > >=."""

    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Between(Node):
    """[NOT] BETWEEN low AND high."""

    value: "Expression"
    low: "Expression"
    high: "Expression"
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class InList(Node):
    """[NOT] IN (...)."""

    value: "Expression"
    items: tuple["Expression", ...]
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Like(Node):
    """[NOT] LIKE pattern [ESCAPE 'c']."""

    value: "Expression"
    pattern: "Expression"
    escape: StringLiteral | None = None
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull(Node):
    """IS [NOT] NULL."""

    value: "Expression"
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class IsDistinct(Node):
    """IS [NOT] DISTINCT FROM."""

    left: "Expression"
    right: "Expression"
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Not(Node):
    """NOT operand."""

    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Logical(Node):
    """A chain of AND, or of OR."""

    operator: str
    terms: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class When(Node):
    """WHEN condition THEN result."""

    condition: "Expression"
    result: "Expression"


@dataclass(frozen=True, slots=True)
class Case(Node):
    """CASE [operand] WHEN ... [ELSE ...] END."""

    operand: "Expression | None"
    branches: tuple[When, ...]
    otherwise: "Expression | None" = None


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """CAST(value AS type)."""

    value: "Expression"
    type: Type


@dataclass(frozen=True, slots=True)
class AllRows(Node):
    """The * of COUNT(*)."""


@dataclass(frozen=True, slots=True)
class UnitArgument(Node):
    """A unit of time as an argument: TIMESTAMPADD(DAYS, ...)."""

    unit: str


@dataclass(frozen=True, slots=True)
class Lambda(Node):
    """(a, b) => body."""

    parameters: tuple[Identifier, ...]
    body: "Expression"


@dataclass(frozen=True, slots=True)
class FunctionCall(Node):
    """name(arguments)."""

    name: Identifier
    arguments: tuple["Argument", ...]


@dataclass(frozen=True, slots=True)
class ArrayConstructor(Node):
    """ARRAY[a, b]."""

    items: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class MapEntry(Node):
    """key := value."""

    key: "Expression"
    value: "Expression"


@dataclass(frozen=True, slots=True)
class MapConstructor(Node):
    """MAP(k := v, ...)."""

    entries: tuple[MapEntry, ...]


@dataclass(frozen=True, slots=True)
class StructEntry(Node):
    """name := value."""

    name: Identifier
    value: "Expression"


@dataclass(frozen=True, slots=True)
class StructConstructor(Node):
    """STRUCT(f := v, ...)."""

    entries: tuple[StructEntry, ...]


Expression: TypeAlias = (
    Literal
    | ColumnReference
    | Access
    | Sign
    | Arithmetic
    | Concatenation
    | Comparison
    | Between
    | InList
    | Like
    | IsNull
    | IsDistinct
    | Not
    | Logical
    | Case
    | Cast
    | FunctionCall
    | ArrayConstructor
    | MapConstructor
    | StructConstructor
)
Argument: TypeAlias = Expression | Lambda | UnitArgument | AllRows
