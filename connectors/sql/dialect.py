"""The differences between databases: quoting, types of new columns, and statements that write."""

import re
from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import ClassVar, Final

import msgspec
from typing_extensions import override

from connect.api import data
from connect.api.data import Schema, Type, Value
from connect.api.errors import DataError
from connectors.sql.logical import NESTED, Logical, logical_of

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """The name of a table; `schema` is the database in MySQL."""

    name: str
    schema: str | None = None

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


class NewColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column that a table needs."""

    name: str
    schema: Schema
    is_key: bool = False

    @property
    def is_optional(self) -> bool:
        """Whether it may be null."""
        return not self.is_key and self.schema.optional

    def __str__(self) -> str:
        return f"{self.name} ({self.schema.name or self.schema.type.name})"


class Dialect:
    """The SQL of one family of databases; here, the standard and what most of them share."""

    family: ClassVar[str]
    mark: ClassVar[str] = "%s"
    """The placeholder of a parameter."""
    quote_mark: ClassVar[str] = '"'
    now: ClassVar[str] = "SELECT CURRENT_TIMESTAMP"
    types: ClassVar[dict[Type, str]]
    logical_types: ClassVar[dict[Logical, str]]
    json_type: ClassVar[str]
    has_arrays: ClassVar[bool] = False

    def __init__(self, *, quotes_always: bool = True) -> None:
        self._quotes_always = quotes_always

    def quote(self, name: str) -> str:
        """A name as it is written in a statement."""
        if not self._quotes_always and _PLAIN.fullmatch(name):
            return name
        mark = self.quote_mark
        # A percent sign would be read as the beginning of a placeholder.
        return f"{mark}{name.replace(mark, mark * 2)}{mark}".replace("%", "%%" if self.mark == "%s" else "%")

    def table(self, table: Table) -> str:
        """The name of a table as it is written in a statement."""
        return ".".join(self.quote(part) for part in (table.schema, table.name) if part)

    def columns(self, names: Sequence[str], *, prefix: str = "") -> str:
        """Names of columns, separated by commas."""
        return ", ".join(prefix + self.quote(name) for name in names)

    def literal_sql(self, text: str) -> str:
        """An operator's SQL, for statements with parameters."""
        return text.replace("%", "%%") if self.mark == "%s" else text

    # --- tables ---

    def create_table(self, table: Table, columns: Sequence[NewColumn]) -> str:
        """A statement that creates a table unless it exists."""
        lines = [self.column(column) for column in columns]
        keys = [column.name for column in columns if column.is_key]
        if keys:
            lines.append(f"PRIMARY KEY ({self.columns(keys)})")
        return f"CREATE TABLE IF NOT EXISTS {self.table(table)} ({', '.join(lines)})"

    def add_columns(self, table: Table, columns: Sequence[NewColumn]) -> list[str]:
        """Statements that add columns to a table."""
        added = ", ".join(f"ADD COLUMN {self.column(column)}" for column in columns)
        return [f"ALTER TABLE {self.table(table)} {added}"]

    def column(self, column: NewColumn) -> str:
        """A column in CREATE and ALTER."""
        parts = [self.quote(column.name), self.column_type(column.schema, is_key=column.is_key)]
        if column.schema.default is not None and not isinstance(column.schema.default, dict | list):
            parts.append(f"DEFAULT {self.literal(column.schema.default)}")
        elif column.is_optional:
            parts.append("NULL")
        if not column.is_optional:
            parts.append("NOT NULL")
        return " ".join(parts)

    def column_type(self, schema: Schema, *, is_key: bool = False) -> str:  # noqa: ARG002 - some families need it
        """The type of a column for values of this schema."""
        logical = logical_of(schema)
        if logical is Logical.DECIMAL:
            return self.decimal_type(int(schema.parameters.get("scale", "0")))
        if logical is not None and logical in self.logical_types:
            return self.logical_types[logical]
        if schema.type is Type.ARRAY and self.has_arrays and _is_plain(schema.value_schema):
            assert schema.value_schema is not None
            return f"{self.column_type(schema.value_schema)}[]"
        return self.json_type if schema.type in NESTED else self.types[schema.type]

    def decimal_type(self, scale: int) -> str:  # noqa: ARG002
        """The type of a column of decimals with this many digits after the point."""
        return "NUMERIC"

    def literal(self, value: Value) -> str:
        """A default as it is written in DDL."""
        match value:
            case bool():
                return "TRUE" if value else "FALSE"
            case int() | float() | Decimal():
                return str(value)
            case bytes():
                return self.bytes_literal(value)
            case datetime():
                return f"'{value.strftime('%Y-%m-%d %H:%M:%S.%f')}'"
            case date() | time():
                return f"'{value.isoformat()}'"
            case str():
                return self.text_literal(value)
            case _:
                raise DataError(f"a value of type {type(value).__name__} cannot be the default of a column")

    def text_literal(self, text: str) -> str:
        """Text in quotes."""
        return "'" + text.replace("'", "''") + "'"

    def bytes_literal(self, value: bytes) -> str:
        """Bytes in hexadecimal."""
        return f"X'{value.hex()}'"

    # --- rows ---

    def insert(self, table: Table, columns: Sequence[str]) -> str:
        """A statement that writes one row."""
        marks = ", ".join([self.mark] * len(columns))
        return f"INSERT INTO {self.table(table)} ({self.columns(columns)}) VALUES ({marks})"

    def upsert(self, table: Table, columns: Sequence[str], *, keys: Sequence[str]) -> str:
        """A statement that writes one row, or changes the one with these keys."""
        return f"{self.insert(table, columns)} {self.on_conflict(columns, keys=keys)}"

    def on_conflict(self, columns: Sequence[str], *, keys: Sequence[str]) -> str:
        """The clause that makes an insert an upsert."""
        changed = ", ".join(f"{self.quote(n)} = excluded.{self.quote(n)}" for n in columns if n not in keys)
        action = f"DO UPDATE SET {changed}" if changed else "DO NOTHING"
        return f"ON CONFLICT ({self.columns(keys)}) {action}"

    def update(self, table: Table, columns: Sequence[str], *, keys: Sequence[str]) -> str:
        """A statement that changes one row; its parameters are the other columns, then the keys."""
        changed = ", ".join(f"{self.quote(name)} = {self.mark}" for name in columns if name not in keys)
        return f"UPDATE {self.table(table)} SET {changed} WHERE {self.match(keys)}"

    def delete(self, table: Table, keys: Sequence[str]) -> str:
        """A statement that deletes one row."""
        return f"DELETE FROM {self.table(table)} WHERE {self.match(keys)}"

    def match(self, names: Sequence[str]) -> str:
        """The condition that columns have the values of parameters."""
        return " AND ".join(f"{self.quote(name)} = {self.mark}" for name in names)


class Postgres(Dialect):
    """PostgreSQL."""

    family = "postgresql"
    json_type = "JSONB"
    has_arrays = True
    types = {
        Type.INT8: "SMALLINT",
        Type.INT16: "SMALLINT",
        Type.INT32: "INT",
        Type.INT64: "BIGINT",
        Type.FLOAT32: "REAL",
        Type.FLOAT64: "DOUBLE PRECISION",
        Type.BOOLEAN: "BOOLEAN",
        Type.STRING: "TEXT",
        Type.BYTES: "BYTEA",
    }
    logical_types = {
        Logical.DATE: "DATE",
        Logical.TIME: "TIME",
        Logical.TIMESTAMP: "TIMESTAMP",
        Logical.MICRO_TIMESTAMP: "TIMESTAMP",
        Logical.INSTANT: "TIMESTAMPTZ",
        Logical.JSON: "JSONB",
        Logical.UUID: "UUID",
        Logical.VARIABLE_DECIMAL: "DECIMAL",
    }

    @override
    def decimal_type(self, scale: int) -> str:
        return "DECIMAL"

    @override
    def bytes_literal(self, value: bytes) -> str:
        return f"'\\x{value.hex()}'"

    @override
    def add_columns(self, table: Table, columns: Sequence[NewColumn]) -> list[str]:
        # Another task may add the same column at the same time.
        added = ", ".join(f"ADD COLUMN IF NOT EXISTS {self.column(column)}" for column in columns)
        return [f"ALTER TABLE {self.table(table)} {added}"]


class Sqlite(Dialect):
    """SQLite."""

    family = "sqlite"
    mark = "?"
    now = "SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')"
    json_type = "TEXT"
    types = {
        Type.INT8: "INTEGER",
        Type.INT16: "INTEGER",
        Type.INT32: "INTEGER",
        Type.INT64: "INTEGER",
        Type.FLOAT32: "REAL",
        Type.FLOAT64: "REAL",
        Type.BOOLEAN: "INTEGER",
        Type.STRING: "TEXT",
        Type.BYTES: "BLOB",
    }
    logical_types = {
        Logical.DATE: "NUMERIC",
        Logical.TIME: "NUMERIC",
        Logical.TIMESTAMP: "NUMERIC",
        Logical.MICRO_TIMESTAMP: "NUMERIC",
        Logical.INSTANT: "NUMERIC",
        Logical.JSON: "TEXT",
        Logical.VARIABLE_DECIMAL: "NUMERIC",
    }

    @override
    def literal(self, value: Value) -> str:
        return str(int(value)) if isinstance(value, bool) else super().literal(value)

    @override
    def add_columns(self, table: Table, columns: Sequence[NewColumn]) -> list[str]:
        return [f"ALTER TABLE {self.table(table)} ADD COLUMN {self.column(column)}" for column in columns]


class MySql(Dialect):
    """MySQL and MariaDB."""

    family = "mysql"
    quote_mark = "`"
    now = "SELECT CURRENT_TIMESTAMP(6)"
    json_type = "JSON"
    types = {
        Type.INT8: "TINYINT",
        Type.INT16: "SMALLINT",
        Type.INT32: "INT",
        Type.INT64: "BIGINT",
        Type.FLOAT32: "FLOAT",
        Type.FLOAT64: "DOUBLE",
        Type.BOOLEAN: "TINYINT",
        Type.STRING: "TEXT",
        Type.BYTES: "VARBINARY(1024)",
    }
    logical_types = {
        Logical.DATE: "DATE",
        Logical.TIME: "TIME(3)",
        Logical.TIMESTAMP: "DATETIME(3)",
        Logical.MICRO_TIMESTAMP: "DATETIME(6)",
        Logical.INSTANT: "DATETIME(6)",
        Logical.JSON: "JSON",
        Logical.UUID: "VARCHAR(36)",
        Logical.VARIABLE_DECIMAL: "DECIMAL(65,30)",
    }

    @override
    def column_type(self, schema: Schema, *, is_key: bool = False) -> str:
        text = super().column_type(schema, is_key=is_key)
        # A key needs a length, and so does text with a default.
        return "VARCHAR(256)" if text == "TEXT" and (is_key or schema.default is not None) else text

    @override
    def decimal_type(self, scale: int) -> str:
        if not 0 <= scale <= 38:
            raise DataError(f"MySQL has no decimals with {scale} digits after the point, only with 0 to 38")
        return f"DECIMAL(65,{scale})"

    @override
    def literal(self, value: Value) -> str:
        return str(int(value)) if isinstance(value, bool) else super().literal(value)

    @override
    def text_literal(self, text: str) -> str:
        return super().text_literal(text.replace("\\", "\\\\"))

    @override
    def on_conflict(self, columns: Sequence[str], *, keys: Sequence[str]) -> str:
        changed = [name for name in columns if name not in keys] or list(keys[:1])
        return "ON DUPLICATE KEY UPDATE " + ", ".join(f"{self.quote(n)} = VALUES({self.quote(n)})" for n in changed)


def _is_plain(schema: Schema | None) -> bool:
    return schema is not None and schema.type not in NESTED and schema.type is not data.Type.BYTES


DIALECTS: Final[dict[str, type[Dialect]]] = {item.family: item for item in (Postgres, MySql, Sqlite)}
