"""Writing with one statement for many rows, as every driver can: SQLite, MySQL, and PostgreSQL where it must be."""

from collections.abc import Sequence
from typing import Final, Protocol

from sqlalchemy import Connection

from connectors.sql.changes import Columns, parts
from connectors.sql.dialect import Dialect, Table
from connectors.sql.row_plan import Row

_KEYS_AT_ONCE: Final = 500


class Writer(Protocol):
    """Writes rows within the transaction of a connection."""

    def insert(self, connection: Connection, table: Table, *, columns: Columns, rows: Sequence[Row]) -> None:
        """Add rows."""

    def upsert(
        self, connection: Connection, table: Table, *, columns: Columns, rows: Sequence[Row], keys: Columns
    ) -> None:
        """Add rows, or change those that are there; no key comes twice."""

    def update(
        self, connection: Connection, table: Table, *, columns: Columns, rows: Sequence[Row], keys: Columns
    ) -> None:
        """Change rows that are there; no key comes twice."""

    def delete(self, connection: Connection, table: Table, *, keys: Columns, rows: Sequence[Row]) -> None:
        """Remove rows by their keys."""

    def forget(self) -> None:
        """A transaction has failed, or tables have changed."""


class StatementWriter:
    """Lets the driver repeat statements; pymysql makes one of many rows."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def insert(self, connection: Connection, table: Table, *, columns: Columns, rows: Sequence[Row]) -> None:
        """Add rows."""
        connection.exec_driver_sql(self._dialect.insert(table, columns), list(rows))

    def upsert(
        self, connection: Connection, table: Table, *, columns: Columns, rows: Sequence[Row], keys: Columns
    ) -> None:
        """Add rows, or change those that are there."""
        connection.exec_driver_sql(self._dialect.upsert(table, columns, keys=keys), list(rows))

    def update(
        self, connection: Connection, table: Table, *, columns: Columns, rows: Sequence[Row], keys: Columns
    ) -> None:
        """Change rows that are there."""
        order = [index for index, name in enumerate(columns) if name not in keys]
        if order:
            order += [columns.index(name) for name in keys]
            turned = [tuple(row[index] for index in order) for row in rows]
            connection.exec_driver_sql(self._dialect.update(table, columns, keys=keys), turned)

    def delete(self, connection: Connection, table: Table, *, keys: Columns, rows: Sequence[Row]) -> None:
        """Remove rows by their keys."""
        dialect = self._dialect
        if len(keys) > 1:
            connection.exec_driver_sql(dialect.delete(table, keys), list(rows))
            return
        for some in parts(rows, _KEYS_AT_ONCE):
            marks = ", ".join([dialect.mark] * len(some))
            statement = f"DELETE FROM {dialect.table(table)} WHERE {dialect.quote(keys[0])} IN ({marks})"
            connection.exec_driver_sql(statement, tuple(row[0] for row in some))

    def forget(self) -> None:
        """Nothing is kept."""
