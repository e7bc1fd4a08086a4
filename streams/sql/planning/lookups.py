"""Pull queries that the copy of a table answers alone: single columns, keys, and comparisons with literals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Final

import msgspec

from streams.model.pull import Filter, Lookup, Operator, Output
from streams.model.sources import Source
from streams.model.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING, SqlType
from streams.sql.analysis.literals import time_ms
from streams.sql.analysis.mistakes import typing
from streams.sql.analysis.projection import Item
from streams.sql.analysis.scope import Scope
from streams.sql.language.tree import expressions as tree

_KEYS_MAX: Final = 1000
"""With more keys, a scan is no slower."""
_FLIPPED: Final[dict[str, Operator]] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPERATORS: Final[dict[str, Operator]] = {one: one for one in _FLIPPED.values()}


class _NotSimple(Exception):
    """Only Spark can answer it."""


@dataclass(slots=True)
class _Conditions:
    """What WHERE asks: filters that all have to hold, and the values that key columns may have."""

    scope: Scope
    source: Source
    filters: list[Filter] = field(default_factory=list)
    keys: dict[str, list[msgspec.Raw]] = field(default_factory=dict)

    def add(self, node: tree.Expression) -> None:
        match node:
            case tree.Logical("AND", terms):
                for term in terms:
                    self.add(term)
            case tree.Logical("OR", terms):
                self._alternatives(terms)
            case tree.Comparison(operator, left, right) if isinstance(left, tree.ColumnReference):
                self._compare(left, _OPERATORS[operator], right)
            case tree.Comparison(operator, left, right) if isinstance(right, tree.ColumnReference):
                self._compare(right, _FLIPPED[operator], left)
            case tree.Between(value, low, high, False) if isinstance(value, tree.ColumnReference):
                self._compare(value, ">=", low)
                self._compare(value, "<=", high)
            case tree.InList(value, items, False) if isinstance(value, tree.ColumnReference):
                self._any_of(value, [item for item in items if not isinstance(item, tree.NullLiteral)])
            case tree.IsNull(value, negated) if isinstance(value, tree.ColumnReference):
                self.filters.append(Filter(column=value.name.name, operator="IS NOT NULL" if negated else "IS NULL"))
            case _:
                raise _NotSimple

    def _compare(self, column: tree.ColumnReference, operator: Operator, value: tree.Expression) -> None:
        literal = self._literal(column, value)
        if operator == "=" and self._is_key(column) and column.name.name not in self.keys:
            self.keys[column.name.name] = [literal]
        else:
            self.filters.append(Filter(column=column.name.name, operator=operator, literal=literal))

    def _any_of(self, column: tree.ColumnReference, values: Sequence[tree.Expression]) -> None:
        if not self._is_key(column) or column.name.name in self.keys:
            raise _NotSimple
        literals = [self._literal(column, value) for value in values]
        self.keys[column.name.name] = list({bytes(one): one for one in literals}.values())

    def _alternatives(self, terms: Sequence[tree.Expression]) -> None:
        """OR of values of one key column."""
        pairs = list(_equalities(terms))
        if len(pairs) != len(terms) or len({column.name.name for column, _ in pairs}) != 1:
            raise _NotSimple
        self._any_of(pairs[0][0], [value for _, value in pairs])

    def _is_key(self, column: tree.ColumnReference) -> bool:
        return any(one.name == column.name.name for one in self.source.key)

    def _literal(self, column: tree.ColumnReference, value: tree.Expression) -> msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(_value(value, self.scope.type(column), column)))


def _equalities(terms: Sequence[tree.Expression]) -> Iterator[tuple[tree.ColumnReference, tree.Expression]]:
    for term in terms:
        if isinstance(term, tree.Comparison) and term.operator == "=":
            if isinstance(term.left, tree.ColumnReference):
                yield term.left, term.right
            elif isinstance(term.right, tree.ColumnReference):
                yield term.right, term.left


def _value(node: tree.Expression, kind: SqlType, column: tree.ColumnReference) -> object:
    """A literal as a value of the column's type, if it is one without a loss."""
    match node:
        case tree.IntegerLiteral(number) if kind in {BIGINT, DOUBLE} or (
            kind == INTEGER and -(2**31) <= number < 2**31
        ):
            return float(number) if kind == DOUBLE and abs(number) < 2**53 else _exact(number, kind)
        case tree.DoubleLiteral(value) if kind == DOUBLE:
            return value
        case tree.DecimalLiteral(decimal) if kind == DOUBLE:
            return float(decimal)
        case tree.StringLiteral(text) if kind == STRING:
            return text
        case tree.StringLiteral(text) if column.name.name in {"ROWTIME", "WINDOWSTART", "WINDOWEND"}:
            with typing(node):
                return time_ms(text)
        case tree.BooleanLiteral(flag) if kind == BOOLEAN:
            return flag
        case _:
            raise _NotSimple


def _exact(number: int, kind: SqlType) -> int:
    if kind == DOUBLE:
        raise _NotSimple
    return number


def lookup_of(
    source: Source, items: Sequence[Item], where: tree.Expression | None, scope: Scope, limit: int | None
) -> Lookup | None:
    """What to look for in the copy; None if the query asks for more than it can answer."""
    conditions = _Conditions(scope, source)
    try:
        outputs = tuple(Output(name=item.name, path=_path(item.expression)) for item in items)
        if where is not None:
            conditions.add(where)
    except _NotSimple:
        return None
    keys = None
    if conditions.keys:
        columns = [column.name for column in source.key]
        if set(columns) != set(conditions.keys) or prod(map(len, conditions.keys.values())) > _KEYS_MAX:
            return None
        keys = tuple(product(*(conditions.keys[name] for name in columns)))
    return Lookup(source=source.name, keys=keys, filters=tuple(conditions.filters), outputs=outputs, limit=limit)


def _path(node: tree.Expression) -> tuple[str, ...]:
    match node:
        case tree.ColumnReference(name):
            return (name.name,)
        case tree.Access(tree.ColumnReference(name), steps):
            fields = tuple(step.name.name for step in steps if isinstance(step, tree.FieldAccess))
            if len(fields) == len(steps):
                return (name.name, *fields)
            raise _NotSimple
        case _:
            raise _NotSimple
