"""A database: its engine, connections that are restored after an outage, and the definitions of its tables."""

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import psycopg
from psycopg.abc import AdaptContext, Buffer
from psycopg.abc import Loader as AbstractLoader
from psycopg.adapt import Loader
from psycopg.pq import Format
from psycopg.types.string import TextLoader
from sqlalchemy import Connection, Engine, create_engine, event, inspect
from sqlalchemy.exc import NoSuchTableError, SAWarning
from sqlalchemy.pool import NullPool
from typing_extensions import override

from connect.api.errors import RetriableError
from connectors.sql import errors
from connectors.sql.column_types import ColumnType, from_reflection
from connectors.sql.config import ConnectionConfig
from connectors.sql.dialect import DIALECTS, Dialect, Table

log = logging.getLogger(__name__)

Wait = Callable[[float], bool]

_SYSTEM_SCHEMAS = frozenset(("information_schema", "pg_catalog", "mysql", "performance_schema", "sys"))
# Types that records hold as text, though the driver would make objects of them.
_RANGES = ("int4", "int8", "num", "ts", "tstz", "date")
_AS_TEXT = (
    *("json", "jsonb", "uuid", "inet", "cidr", "interval", "timetz"),
    *(f"{name}{kind}" for name in _RANGES for kind in ("range", "multirange")),
)


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column as it is in the database."""

    name: str
    type: ColumnType
    is_nullable: bool
    has_default: bool = False
    is_automatic: bool = False
    """Whether the database generates its numbers."""
    resolution_digits: int = 6
    """For timestamps: the number of digits of a second."""


class TableDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A table as it is in the database."""

    table: Table
    columns: Mapping[str, Column]
    primary_key: tuple[str, ...]
    is_view: bool = False

    def column(self, name: str) -> Column | None:
        """The column of this name, or else one that differs only in case."""
        found = self.columns.get(name)
        if found is None:
            folded = name.lower()
            found = next((column for column in self.columns.values() if column.name.lower() == folded), None)
        return found


class Database:
    """One database and at most one connection to it; for one thread."""

    def __init__(self, config: ConnectionConfig, *, wait: Wait, isolation: str | None = None) -> None:
        self._config = config
        self._wait = wait
        self._address = config.address()
        self._engine = _engine(config, isolation)
        self._connection: Connection | None = None
        self._was_connected = False
        self.dialect: Dialect = DIALECTS[self._address.family](quotes_always=config.quote_sql_identifiers == "always")

    @property
    def family(self) -> str:
        """postgresql, mysql or sqlite."""
        return self._address.family

    def connection(self) -> Connection:
        """The open connection, or a new one; RetriableError when the database cannot be reached."""
        if self._connection is None or self._connection.closed or self._connection.invalidated:
            self.disconnect()
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> Connection:
        # After the first connection, the worker makes further attempts, and does other things in between.
        attempts = 1 if self._was_connected else self._config.connection_attempts
        failed: Exception | None = None
        for attempt in range(1, attempts + 1):
            try:
                connection = self._engine.connect()
                self._was_connected = True
                return connection
            except errors.DRIVER_ERRORS as error:
                failed = errors.map_error(error, doing="cannot connect to the database")
            if attempt < attempts and self._wait(self._config.connection_backoff_ms / 1000):
                break
        # No record is to blame, whatever the reason, such as a password that is being changed.
        raise RetriableError(str(failed)) from None

    def packet_bytes(self) -> int | None:
        """The size of the largest statement that MySQL accepts; None elsewhere, and when it cannot be asked."""
        if self.family != "mysql":
            return None
        try:
            with self.transaction() as connection:
                return int(connection.exec_driver_sql("SELECT @@max_allowed_packet").scalar_one())
        except (*errors.DRIVER_ERRORS, RetriableError):
            return None

    def disconnect(self) -> None:
        """Close the connection, broken or not; the next use opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.invalidate()
                connection.close()
            except errors.DRIVER_ERRORS as error:
                log.debug("a broken connection could not be closed", extra={"error": errors.describe(error)})

    def close(self) -> None:
        """Close the connection and the engine."""
        self.disconnect()
        self._engine.dispose()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction: committed at the end of the block, rolled back when it fails."""
        connection = self.connection()
        if connection.in_transaction():
            connection.rollback()
        # Begun here, since statements that go directly to the driver would not begin it.
        connection.begin()
        try:
            yield connection
            connection.commit()
        except BaseException:
            try:
                connection.rollback()
            except errors.DRIVER_ERRORS:
                self.disconnect()
            raise

    # --- tables ---

    def tables(self) -> list[Table]:
        """All tables except system tables, in the order of their names; views too if they are wanted."""
        with self.transaction() as connection:
            inspector = inspect(connection)
            schemas: list[str | None] = [None if self.family == "sqlite" else self._address.url.database]
            if self.family == "postgresql":
                schemas = [name for name in inspector.get_schema_names() if name not in _SYSTEM_SCHEMAS]
            found = [
                Table(name=name, schema=schema)
                for schema in schemas
                for name in (
                    *inspector.get_table_names(schema),
                    *(inspector.get_view_names(schema) if self._config.includes_views else ()),
                )
            ]
        return sorted(found, key=str)

    def definition(self, table: Table) -> TableDefinition | None:
        """The current definition of a table; None when it does not exist."""
        with self.transaction() as connection:
            return self._reflect(table, connection)

    def definition_beside(self, table: Table) -> TableDefinition | None:
        """The same over a connection of its own, while the other one is reading a result."""
        with self._engine.connect() as connection:
            return self._reflect(table, connection)

    def _reflect(self, table: Table, connection: Connection) -> TableDefinition | None:
        inspector = inspect(connection)
        try:
            with warnings.catch_warnings():
                # About types that SQLAlchemy does not know, which are handled as text.
                warnings.simplefilter("ignore", SAWarning)
                columns = inspector.get_columns(table.name, schema=table.schema)
                keys = inspector.get_pk_constraint(table.name, schema=table.schema)
        except NoSuchTableError:
            return None
        if not columns:
            return None
        is_view = table.name in inspector.get_view_names(table.schema)
        return TableDefinition(
            table=table,
            columns={item["name"]: self._column(item, keys["constrained_columns"]) for item in columns},
            primary_key=tuple(keys["constrained_columns"]),
            is_view=is_view,
        )

    def _column(self, found: Mapping[str, Any], keys: Sequence[str]) -> Column:
        automatic = bool(found.get("autoincrement") is True or found.get("identity"))
        return Column(
            name=found["name"],
            type=from_reflection(found["type"], family=self.family),
            is_nullable=bool(found["nullable"]) and found["name"] not in keys,  # SQLite reports even row ids as such.
            has_default=bool(found.get("default") is not None or automatic or found.get("computed")),
            is_automatic=automatic,
            resolution_digits=self._digits(found["type"]),
        )

    def _digits(self, type_: Any) -> int:
        if self.family == "sqlite":
            return 0  # The resolution of CURRENT_TIMESTAMP there.
        digits = getattr(type_, "fsp", None) if self.family == "mysql" else getattr(type_, "precision", None)
        default = 0 if self.family == "mysql" else 6
        return digits if isinstance(digits, int) else default


def _engine(config: ConnectionConfig, isolation: str | None) -> Engine:
    address = config.address()
    arguments = dict(address.arguments)
    engine = create_engine(address.url, connect_args=arguments, poolclass=NullPool, hide_parameters=True)
    if isolation is not None and address.family != "sqlite":
        engine = engine.execution_options(isolation_level=isolation)
    zone = config.zone().key
    prepare = {"postgresql": _prepare_postgres, "mysql": _prepare_mysql, "sqlite": _prepare_sqlite}[address.family]

    @event.listens_for(engine.pool, "connect")
    def on_connect(connection: Any, _: object) -> None:
        prepare(connection, zone)

    return engine


def _prepare_postgres(connection: "psycopg.Connection[Any]", zone: str) -> None:
    for name in _AS_TEXT:
        connection.adapters.register_loader(name, TextLoader)
    for name in ("date", "timestamp", "timestamptz"):
        found = connection.adapters.get_loader(connection.adapters.types[name].oid, Format.TEXT)
        if found is not None:
            connection.adapters.register_loader(name, _lenient(found))
    connection.execute("SELECT set_config('TimeZone', %s, false)", (zone,))
    connection.commit()


def _lenient(loader: type[AbstractLoader]) -> type[Loader]:
    """A loader that returns values that Python does not have, such as infinity, as text: only that cell is bad."""

    class Lenient(Loader):
        def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
            super().__init__(oid, context)
            self._load = loader(oid, context).load

        @override
        def load(self, data: Buffer) -> Any:
            try:
                return self._load(data)
            except psycopg.DataError:
                return bytes(data).decode()

    return Lenient


def _prepare_mysql(connection: Any, zone: str) -> None:
    with connection.cursor() as cursor:
        # Named zones work only if an administrator has loaded them; UTC always works.
        cursor.execute("SET time_zone = %s", ("+00:00" if zone == "UTC" else zone,))
        # Values that do not fit are errors instead of being truncated silently, and quotes have their usual meaning.
        cursor.execute("SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO'")


def _prepare_sqlite(connection: Any, _: str) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
