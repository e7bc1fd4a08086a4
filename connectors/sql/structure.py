"""Creates tables, and adds columns to them, where the configuration allows it."""

import logging
from collections.abc import Sequence
from typing import Final

from connect.api.errors import ConfigError, DataError
from connectors.sql import errors
from connectors.sql.config import SqlSinkConfig
from connectors.sql.database import Database, TableDefinition
from connectors.sql.dialect import NewColumn, Table

log = logging.getLogger(__name__)

_ATTEMPTS: Final = 5
"""How often DDL is tried: other tasks may do the same at the same time, and all but one fail."""


class Structure:
    """The definitions of a sink's tables as last seen, and changes to them."""

    def __init__(self, database: Database, config: SqlSinkConfig) -> None:
        self._database = database
        self._config = config
        self._known: dict[Table, TableDefinition] = {}

    def forget(self) -> None:
        """Reflect all tables again, since they may have changed."""
        self._known.clear()

    def definition(self, table: Table) -> TableDefinition | None:
        """The definition of a table; None when it does not exist."""
        found = self._known.get(table)
        if found is None:
            found = self._database.definition(table)
            if found is not None:
                self._known[table] = found
        return found

    def ensure(self, table: Table, columns: Sequence[NewColumn]) -> TableDefinition:
        """Create a table or add columns if that is allowed, else DataError or ConfigError; returns the definition."""
        for attempt in range(1, _ATTEMPTS + 1):
            definition = self.definition(table)
            missing = [] if definition is None else [item for item in columns if definition.column(item.name) is None]
            may_lack = self._config.unknown_fields == "ignore" and not self._config.evolves
            if definition is not None and (not missing or (may_lack and not any(item.is_key for item in missing))):
                return definition
            statements = self._statements(table, definition, columns=columns, missing=missing)
            try:
                with self._database.transaction() as connection:
                    for statement in statements:
                        log.info("changing a table", extra={"statement": statement})
                        connection.exec_driver_sql(statement)
            except errors.DRIVER_ERRORS as error:
                # Another task may have made the same change, which the next round will show.
                if attempt == _ATTEMPTS:
                    raise errors.map_error(error, doing=f"cannot create or amend table {table}") from error
                log.info("a table could not be changed", extra={"table": str(table), "error": errors.describe(error)})
            self._known.pop(table, None)
        raise ConfigError(f"table {table} still lacks columns after {_ATTEMPTS} attempts to add them")

    def _statements(
        self,
        table: Table,
        definition: TableDefinition | None,
        *,
        columns: Sequence[NewColumn],
        missing: Sequence[NewColumn],
    ) -> list[str]:
        dialect = self._database.dialect
        if definition is None:
            if not self._config.creates:
                raise ConfigError(f"Table {table} is missing and auto-creation is disabled")
            if not columns:
                raise DataError(f"No fields found using key and value for table {table}")
            return [dialect.create_table(table, columns)]
        names = ", ".join(map(str, missing))
        if definition.is_view:
            raise DataError(f"View {table} is missing fields ({names}) and ALTER VIEW is unsupported")
        if not self._config.evolves:
            raise DataError(f"Table {table} is missing fields ({names}) and auto-evolution is disabled")
        for column in missing:
            if not column.is_optional and column.schema.default is None:
                why = "as the field is not optional and does not have a default value"
                raise DataError(f"Cannot ALTER TABLE {table} to add missing field {column}, {why}")
        return dialect.add_columns(table, missing)
