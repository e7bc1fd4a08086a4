"""Answers the look-ups of pull queries from a copy: SQLite checks what it can, the rest is checked on its rows."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain, islice
from typing import Any, Final

import msgspec

from streams.formats.json_values import from_json
from streams.materialized.row_format import Row, RowFormat
from streams.materialized.store import Condition, Store, StoredRow
from streams.model.pull import Filter, Lookup, Output
from streams.model.sources import ROWTIME, WINDOWEND, WINDOWSTART, Source
from streams.model.types import BIGINT, SqlType
from streams.model.types import Decimal as DecimalType

_STORED: Final[Mapping[str, str]] = {ROWTIME: "rowtime", WINDOWSTART: "window_start", WINDOWEND: "window_end"}
"""Columns that are columns of the file, too."""
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FIRST_PAGE: Final = 100
_PAGE_MAX: Final = 2000
_read_json: Final = msgspec.json.Decoder(float_hook=Decimal).decode

Test = Callable[[Row], bool]


class Answer:
    """What a look-up asks for, understood once: `rows` may be called for each store that is tried."""

    def __init__(self, plan: Lookup, source: Source, form: RowFormat) -> None:
        self._form = form
        self._types: dict[str, SqlType] = {column.name: column.sql_type for column in source.columns}
        self._limit = plan.limit
        self._keys = None if plan.keys is None else self._read_keys(plan.keys, source)
        conditions, tests = [], []
        for condition in plan.filters:
            if condition.column in _STORED and condition.operator in _COMPARISONS:
                conditions.append(self._stored_condition(condition))
            else:
                tests.append(self._test(condition))
        self._is_empty = None in conditions
        self._conditions = [condition for condition in conditions if condition is not None]
        self._tests = tests
        self._output = self._outputs(plan.outputs)

    def rows(self, store: Store) -> Iterator[tuple[object, ...]]:
        """The rows, read as they are asked for."""
        if self._is_empty:
            return iter(())
        found = self._by_key(store) if self._keys is not None else self._scan(store)
        rows: Iterator[Row] = map(self._form.row_of, found)
        for test in self._tests:
            rows = filter(test, rows)
        return map(self._output, islice(rows, self._limit))

    def _by_key(self, store: Store) -> Iterator[StoredRow]:
        assert self._keys is not None, "called for look-ups by key"
        return chain.from_iterable(store.find(key, self._conditions) for key in self._keys)

    def _scan(self, store: Store) -> Iterator[StoredRow]:
        count = min(_FIRST_PAGE, self._limit) if self._limit and not self._tests else _FIRST_PAGE
        last = None
        while page := store.page(last, count, self._conditions):
            yield from page
            if len(page) < count:
                return
            last = page[-1][:3]
            count = min(2 * count, _PAGE_MAX)

    def _read_keys(self, keys: Sequence[tuple[msgspec.Raw, ...]], source: Source) -> list[bytes]:
        kinds = [self._types[column.name] for column in source.key]
        return list(
            dict.fromkeys(
                self._form.key([_value(literal, kind) for literal, kind in zip(key, kinds, strict=True)])
                for key in keys
            )
        )

    def _stored_condition(self, condition: Filter) -> Condition | None:
        """None if it never holds."""
        number = _value(condition.literal, BIGINT)
        return None if number is None else Condition(_STORED[condition.column], condition.operator, number)

    def _test(self, condition: Filter) -> Test:
        index = self._index(condition.column)
        match condition.operator:
            case "IS NULL":
                return lambda row: row[index] is None
            case "IS NOT NULL":
                return lambda row: row[index] is not None
            case _:
                literal = _value(condition.literal, self._types[condition.column])
                if literal is None:
                    return lambda _: False
                compare = _COMPARISONS[condition.operator]
                return lambda row: row[index] is not None and compare(row[index], literal)

    def _outputs(self, outputs: Sequence[Output]) -> Callable[[Row], tuple[object, ...]]:
        paths = [(self._index(output.path[0]), output.path[1:]) for output in outputs]
        if any(fields for _, fields in paths) or not paths:
            return lambda row: tuple(_inside(row[index], fields) for index, fields in paths)
        pick = operator.itemgetter(*(index for index, _ in paths))
        return pick if len(paths) > 1 else lambda row: (pick(row),)

    def _index(self, column: str) -> int:
        return self._form.names.index(column)


def _value(literal: msgspec.Raw, kind: SqlType) -> Any:
    json = _read_json(literal)
    if isinstance(kind, DecimalType) and isinstance(json, Decimal | int):
        return Decimal(json)  # not rounded to the digits of the column, with which it is only compared
    return from_json(json, kind)


def _inside(value: Any, fields: Sequence[str]) -> object:
    for field in fields:
        if value is None:
            return None
        value = value.get(field)
    return value
