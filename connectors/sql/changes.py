"""The changes of a batch to a table: the same key may occur many times, but only its last state is written."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from connect.api.errors import DataError
from connectors.sql.row_plan import Row

Columns = tuple[str, ...]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """Rows that one statement writes, or keys of rows that one statement deletes."""

    columns: Columns
    rows: list[Row]
    is_delete: bool = False


class KeyedChanges:
    """Upserts, updates and deletes: the last one of a key wins, and keeps fields that only earlier ones have."""

    def __init__(self, *, only_existing: bool = False) -> None:
        self._only_existing = only_existing
        self._rows: dict[Row, tuple[Columns, Row]] = {}
        self._deleted: dict[Row, None] = {}

    def write(self, columns: Columns, row: Row, *, key_count: int) -> None:
        """Write a row, which begins with its key."""
        key = row[:key_count]
        try:
            # Removed and added again: rows are written in the order of their last change, in which constraints hold.
            earlier = self._rows.pop(key, None)
        except TypeError:
            raise DataError(f"the key {key!r} cannot be compared") from None
        if self._only_existing and key in self._deleted:
            return
        if earlier is not None and earlier[0] != columns:
            values: dict[str, Any] = dict(zip(*earlier, strict=True))
            values.update(zip(columns, row, strict=True))
            columns, row = tuple(values), tuple(values.values())
        self._rows[key] = (columns, row)

    def delete(self, key: Row) -> None:
        """Delete a row."""
        self._rows.pop(key, None)
        self._deleted[key] = None

    def steps(self, keys: Columns) -> Iterator[Step]:
        """The fewest statements with the same result: deletes first, since a write after a delete is a new row."""
        if self._deleted:
            yield Step(columns=keys, rows=list(self._deleted), is_delete=True)
        groups: dict[Columns, list[Row]] = {}
        for columns, row in self._rows.values():
            groups.setdefault(columns, []).append(row)
        for columns, rows in groups.items():
            yield Step(columns=columns, rows=rows)


class PlainChanges:
    """Inserts, and deletes between them, in their order."""

    def __init__(self) -> None:
        self._steps: list[Step] = []

    def write(self, columns: Columns, row: Row, *, key_count: int) -> None:  # noqa: ARG002 - as in KeyedChanges
        """Insert a row."""
        self._add(columns, row, is_delete=False)

    def delete(self, key: Row) -> None:
        """Delete a row."""
        self._add((), key, is_delete=True)

    def _add(self, columns: Columns, row: Row, *, is_delete: bool) -> None:
        last = self._steps[-1] if self._steps else None
        if last is None or last.columns != columns or last.is_delete != is_delete:
            last = Step(columns=columns, rows=[], is_delete=is_delete)
            self._steps.append(last)
        last.rows.append(row)

    def steps(self, keys: Columns) -> Iterator[Step]:
        """The statements, in order."""
        for step in self._steps:
            yield msgspec.structs.replace(step, columns=keys) if step.is_delete else step


def parts(rows: Sequence[Row], size: int) -> Iterator[Sequence[Row]]:
    """Rows in parts of at most this many."""
    if len(rows) <= size:
        yield rows
        return
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
