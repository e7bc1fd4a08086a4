"""Pull queries: what tables and streams hold now, from the copies on this server or by Spark over them."""

import secrets
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from typing_extensions import override

from streams.errors import StreamsError
from streams.formats.json_values import to_json
from streams.materialized.errors import CopyMissing, CopyUnavailable
from streams.model.pull import PullPlan
from streams.model.sources import PSEUDO_COLUMNS, WINDOW_COLUMNS, Source
from streams.model.types import SqlType
from streams.server.engine_rows import row_reader
from streams.server.errors import NotReady
from streams.server.failures import service_error
from streams.server.row_streams import Batch, RowStream
from streams.server.service import Service

_BATCH_ROWS: Final = 1000
_COPY_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 0.05


class PullRows(RowStream):
    """The rows of a pull query."""

    def __init__(self, service: Service, plan: PullPlan) -> None:
        super().__init__(f"query_{secrets.randbits(63)}", "pull", plan.columns, key_columns=plan.key_columns)
        self._service = service
        self._plan = plan
        self._types = [column.sql_type for column in plan.columns]
        self._rows: Iterator[list[Any]] | None = None
        self._left = plan.limit

    @override
    def take(self) -> Batch | None:
        if self.is_closed():
            return None
        count = _BATCH_ROWS if self._left is None else min(_BATCH_ROWS, self._left)
        try:
            if self._rows is None:
                self._rows = self._begin()
            rows = list(islice(self._rows, count))
        except CopyUnavailable as error:
            raise NotReady(str(error), retry_after_seconds=1) from error
        except StreamsError as error:
            raise service_error(error) from error
        if self._left is not None:
            self._left -= len(rows)
        return Batch(rows) if rows else None

    @override
    def release(self) -> None:
        pass  # a lookup holds nothing open between batches that the garbage collector does not close

    def _begin(self) -> Iterator[list[Any]]:
        if self._plan.lookup is not None:
            return _as_json(self._service.copies.lookup(self._plan.lookup), self._types)
        names = self._plan.tables
        tables = {name: _table(self._service, name) for name in names}
        return map(row_reader(self._types), self._service.engine.select(self._plan, tables))


def check_lag(service: Service, plan: PullPlan, lag_max: int) -> None:
    """Wait until there are copies, and raise NotReady if they lack more records than is allowed."""
    for name in (plan.lookup.source,) if plan.lookup is not None else plan.tables:
        _await_copy(service, name)
        if service.copies.lag(name) > lag_max:
            raise NotReady(
                f"The copy of table {name} is still too far behind its topic (ksql.query.pull.max.allowed.offset.lag)",
                code=50302,
                retry_after_seconds=1,
            )


def _await_copy(service: Service, name: str) -> None:
    """Wait until there is a copy: that of a table which has just been made takes a moment to begin."""
    deadline = time.monotonic() + _COPY_SECONDS
    while True:
        try:
            service.copies.problem(name)
            return
        except CopyMissing:
            source = service.catalog.source(name)
            if source is None or not source.is_materialized or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_SECONDS)


def _as_json(rows: Iterator[tuple[object, ...]], types: list[SqlType]) -> Iterator[list[Any]]:
    for row in rows:
        yield [None if value is None else to_json(value, kind) for value, kind in zip(row, types, strict=True)]


def _table(service: Service, name: str) -> Mapping[str, Any]:
    """A table for Spark: a file with its rows, and the columns of that file."""
    source = service.catalog.source(name)
    assert source is not None, "the plan was made with this catalog"
    return {"file": str(service.copies.snapshot(name)), "columns": snapshot_columns(source)}


def snapshot_columns(source: Source) -> list[list[str]]:
    """Names and types of the columns in the snapshot of a table."""
    own = [[column.name, column.type] for column in source.columns]
    pseudo = [["ROWTIME", PSEUDO_COLUMNS["ROWTIME"]]]
    windows = [[name, kind] for name, kind in WINDOW_COLUMNS.items()] if source.window is not None else []
    return [*own, *pseudo, *windows]
