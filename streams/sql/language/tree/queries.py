"""SELECT and its clauses."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from streams.sql.language.tree.expressions import Expression, IntegerLiteral
from streams.sql.language.tree.node import Identifier, Node


class Unit(StrEnum):
    """Units of time of windows and other durations."""

    MILLISECONDS = "MILLISECONDS"
    SECONDS = "SECONDS"
    MINUTES = "MINUTES"
    HOURS = "HOURS"
    DAYS = "DAYS"


UNITS: Final = {name: unit for unit in Unit for name in (unit.value, unit.value.removesuffix("S"))}
"""The units by all names they have."""
_MILLISECONDS: Final = {
    Unit.MILLISECONDS: 1,
    Unit.SECONDS: 1000,
    Unit.MINUTES: 60_000,
    Unit.HOURS: 3_600_000,
    Unit.DAYS: 86_400_000,
}


@dataclass(frozen=True, slots=True)
class Duration(Node):
    """A number of units of time."""

    amount: int
    unit: Unit

    @property
    def ms(self) -> int:
        """The same in milliseconds."""
        return self.amount * _MILLISECONDS[self.unit]


@dataclass(frozen=True, slots=True)
class SelectExpression(Node):
    """expression [AS alias]."""

    expression: Expression
    alias: Identifier | None = None


@dataclass(frozen=True, slots=True)
class SelectAll(Node):
    """* or source.*."""

    source: Identifier | None = None


@dataclass(frozen=True, slots=True)
class SelectFields(Node):
    """struct->*."""

    struct: Expression


SelectItem: TypeAlias = SelectExpression | SelectAll | SelectFields


@dataclass(frozen=True, slots=True)
class QuerySource(Node):
    """A stream or table, and the name it has in the query."""

    name: Identifier
    alias: Identifier | None = None

    @property
    def known_as(self) -> str:
        """The name by which its columns are qualified."""
        return (self.alias or self.name).name


class JoinKind(StrEnum):
    """Which rows without a partner stay."""

    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"


@dataclass(frozen=True, slots=True)
class Within(Node):
    """How far apart in time two records of streams may be: the right one before, and after the left one."""

    before: Duration
    after: Duration
    grace: Duration | None = None


@dataclass(frozen=True, slots=True)
class Join(Node):
    """kind JOIN source [WITHIN ...] ON condition."""

    kind: JoinKind
    source: QuerySource
    condition: Expression
    within: Within | None = None


@dataclass(frozen=True, slots=True)
class TumblingWindow(Node):
    """Windows next to each other."""

    size: Duration
    retention: Duration | None = None
    grace: Duration | None = None


@dataclass(frozen=True, slots=True)
class HoppingWindow(Node):
    """Windows that overlap: one begins every `advance`."""

    size: Duration
    advance: Duration
    retention: Duration | None = None
    grace: Duration | None = None


@dataclass(frozen=True, slots=True)
class SessionWindow(Node):
    """Windows that end when nothing has come for as long as the gap."""

    gap: Duration
    retention: Duration | None = None
    grace: Duration | None = None


Window: TypeAlias = TumblingWindow | HoppingWindow | SessionWindow


class Emit(StrEnum):
    """What a push query sends: every change, or each window once, when it is complete."""

    CHANGES = "CHANGES"
    FINAL = "FINAL"


@dataclass(frozen=True, slots=True)
class Query(Node):
    """SELECT. Without `emit` it is a pull query, unless a statement stores its result."""

    items: tuple[SelectItem, ...]
    source: QuerySource
    joins: tuple[Join, ...] = ()
    window: Window | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    partition_by: tuple[Expression, ...] = ()
    having: Expression | None = None
    emit: Emit | None = None
    limit: IntegerLiteral | None = None

    @property
    def sources(self) -> tuple[QuerySource, ...]:
        """All streams and tables that it reads."""
        return (self.source, *(join.source for join in self.joins))
