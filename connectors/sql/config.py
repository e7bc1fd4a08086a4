"""Options of the source and the sink, and those that both have: where the database is, and how to connect."""

import re
from collections.abc import Iterable, Sequence
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from typing_extensions import override

from connect.api.config import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    LOWER_CASE,
    PASSWORD,
    STRING,
    Check,
    Config,
    Importance,
    Problem,
    Width,
    at_least,
    not_empty,
    one_of,
    option,
    optional,
)
from connect.api.errors import ConfigError
from connectors.sql import url
from connectors.sql.dialect import Table
from connectors.sql.url import Address

_DATABASE: Final = "Database"


class ConnectionConfig(Config):
    """How to reach a database."""

    connection_url: str = option(
        STRING, check=not_empty(), importance=Importance.HIGH, group=_DATABASE, width=Width.LONG
    )
    """Where the database is: `jdbc:postgresql://host:5432/name`, `jdbc:mysql://host/name`, `jdbc:mariadb://host/name`,
    `jdbc:sqlite:/path/file.db`, or the same as SQLAlchemy writes it."""
    connection_user: str | None = option(
        optional(STRING),
        default=None,
        aliases=("connection.username",),
        importance=Importance.HIGH,
        group=_DATABASE,
        width=Width.MEDIUM,
    )
    """Who connects; not set: as the URL says."""
    connection_password: str | None = option(
        optional(PASSWORD), default=None, importance=Importance.HIGH, group=_DATABASE, width=Width.MEDIUM
    )
    """The password of that user; not set: as the URL says."""
    connection_attempts: int = option(
        INT, default=3, check=at_least(1), importance=Importance.LOW, group=_DATABASE, width=Width.SHORT
    )
    """How often the first connection is tried at once before the worker is told to try again later. When one is lost
    afterwards, the worker tries again as after any outage."""
    connection_backoff_ms: int = option(
        LONG, default=10_000, check=at_least(0), importance=Importance.LOW, group=_DATABASE, width=Width.SHORT
    )
    """How long to wait between two such attempts."""
    db_timezone: str = option(
        STRING, default="UTC", aliases=("database.time_zone",), importance=Importance.MEDIUM, group=_DATABASE
    )
    """The time zone of columns that have a date and a time but no zone."""
    quote_sql_identifiers: str = option(
        LOWER_CASE,
        default="always",
        check=one_of("always", "never"),
        importance=Importance.MEDIUM,
        group=_DATABASE,
        width=Width.SHORT,
    )
    """Whether names of tables and columns are quoted; never: only where they would not work without."""
    dialect_name: str = option(STRING, default="", importance=Importance.LOW, group=_DATABASE)
    """Taken for compatibility: the URL tells which database it is."""
    table_types: tuple[str, ...] = option(LIST, default=("TABLE",), importance=Importance.LOW, group=_DATABASE)
    """Which kinds of tables are meant: TABLE, VIEW, or both."""

    @override
    def problems(self) -> Iterable[Problem]:
        try:
            self.address()
        except ConfigError as error:
            yield Problem("connection.url", str(error))
        try:
            self.zone()
        except ConfigError as error:
            yield Problem("db.timezone", str(error))

    def address(self) -> Address:
        """Where the database is; raises ConfigError."""
        return url.parse(self.connection_url, user=self.connection_user, password=self.connection_password)

    def zone(self) -> ZoneInfo:
        """The time zone of the database; raises ConfigError."""
        try:
            return ZoneInfo(self.db_timezone)
        except (ZoneInfoNotFoundError, ValueError):
            told = (
                f"Invalid value {self.db_timezone} for configuration db.timezone: must be a name such as Europe/Madrid"
            )
            raise ConfigError(told) from None

    @property
    def includes_views(self) -> bool:
        """Whether views are tables, too."""
        return "VIEW" in {name.upper() for name in self.table_types}


_MODE, _TABLES, _CONNECTOR = "Mode", "Database", "Connector"
BULK, INCREMENTING, TIMESTAMP, BOTH = "bulk", "incrementing", "timestamp", "timestamp+incrementing"
_TOPIC: Final = Check(
    accepts=lambda text: len(text) <= 249 and re.fullmatch(r"[a-zA-Z0-9._-]*", text) is not None,
    allowed="letters, digits, dots, underscores and hyphens, as topics have them",
)
_ISOLATION: Final = {
    "default": None,
    "read_uncommited": "READ UNCOMMITTED",
    "read_uncommitted": "READ UNCOMMITTED",
    "read_commited": "READ COMMITTED",
    "read_committed": "READ COMMITTED",
    "repeatable_read": "REPEATABLE READ",
    "serializable": "SERIALIZABLE",
}


class SqlSourceConfig(ConnectionConfig):
    """What an operator may say about reading from tables."""

    mode: str = option(
        LOWER_CASE, check=one_of(BULK, INCREMENTING, TIMESTAMP, BOTH), importance=Importance.HIGH, group=_MODE
    )
    """bulk: all rows each time. incrementing: rows with a larger number than any before. timestamp: rows that were
    changed after those before. timestamp+incrementing: the same, with a number that tells rows of one moment apart."""
    incrementing_column_name: str = option(STRING, default="", group=_MODE, width=Width.MEDIUM)
    """The column of strictly growing numbers; not set: the one that the database counts itself."""
    incrementing_column_mapping: tuple[str, ...] = option(LIST, default=(), group=_MODE)
    """The same for each table: `regular expression of schema.table:column`."""
    timestamp_column_name: tuple[str, ...] = option(LIST, default=(), group=_MODE, width=Width.MEDIUM)
    """Columns with the moment of the last change; of several the first that is not null counts."""
    timestamp_columns_mapping: tuple[str, ...] = option(LIST, default=(), group=_MODE)
    """The same for each table: `regular expression of schema.table:[columns]`, several with vertical bars between."""
    timestamp_initial: int | None = option(
        optional(LONG), default=None, check=at_least(-1), importance=Importance.LOW, group=_MODE
    )
    """From when on rows are read at first, in milliseconds since 1970; -1: from now on; not set: all."""
    timestamp_delay_interval_ms: int = option(LONG, default=0, check=at_least(0), group=_MODE)
    """How long to wait before a row is read. What a transaction that takes longer has written may be missed."""
    open_transactions: str = option(LOWER_CASE, default="wait", check=one_of("wait", "ignore"), group=_MODE)
    """wait: PostgreSQL's rows are read only when no transaction is open that may still add rows before them. ignore: as
    Kafka Connect does, rows that are committed late may be missed."""
    timestamp_granularity: str = option(
        LOWER_CASE,
        default="connect_logical",
        check=one_of("connect_logical", "nanos_long", "nanos_string", "nanos_iso_datetime_string"),
        importance=Importance.LOW,
        group=_MODE,
    )
    """How columns with a date and a time are told: as Connect's Timestamp, or as nanoseconds since 1970."""
    validate_non_null: bool = option(BOOLEAN, default=True, importance=Importance.LOW, group=_MODE)
    """Whether columns that tell how far was read must be NOT NULL: a row with null in them would never be read."""
    query: str = option(STRING, default="", aliases=("query.masked",), group=_MODE, width=Width.LONG)
    """What to read instead of tables. It must be possible to add WHERE to it, unless the mode is bulk."""
    query_suffix: str = option(STRING, default="", importance=Importance.LOW, group=_MODE)
    """What is added to the end of each query."""
    transaction_isolation_mode: str = option(
        LOWER_CASE, default="default", check=one_of(*_ISOLATION), importance=Importance.LOW, group=_MODE
    )
    """How transactions that read are kept apart from others; default: as the database does."""

    table_whitelist: tuple[str, ...] = option(LIST, default=(), group=_TABLES, width=Width.LONG)
    """Tables to read, with their schema or without; all when empty."""
    table_blacklist: tuple[str, ...] = option(LIST, default=(), group=_TABLES, width=Width.LONG)
    """Tables not to read."""
    table_include_list: tuple[str, ...] = option(LIST, default=(), group=_TABLES, width=Width.LONG)
    """The same as the whitelist, with regular expressions."""
    table_exclude_list: tuple[str, ...] = option(LIST, default=(), group=_TABLES, width=Width.LONG)
    """The same as the blacklist, with regular expressions."""
    schema_pattern: str | None = option(optional(STRING), default=None, importance=Importance.HIGH, group=_TABLES)
    """Schemas to look for tables in, `%` for any text and `_` for any character; all when not set."""
    catalog_pattern: str | None = option(optional(STRING), default=None, group=_TABLES)
    """Taken for compatibility: tables of the database in the URL are read."""
    tables: str | None = option(optional(STRING), default=None, importance=Importance.LOW, group=_TABLES)
    """The tables of one task; set by the connector."""
    numeric_mapping: str = option(
        LOWER_CASE,
        default="none",
        check=one_of("none", "best_fit", "best_fit_eager_double", "precision_only"),
        importance=Importance.LOW,
        group=_TABLES,
    )
    """none: NUMERIC is Connect's Decimal. best_fit: whole numbers and doubles where they hold it.
    best_fit_eager_double: doubles even where they do not hold all digits. precision_only: whole numbers where there is
    no scale."""

    topic_prefix: str = option(STRING, check=_TOPIC, importance=Importance.HIGH, group=_CONNECTOR, width=Width.MEDIUM)
    """What comes before the name of the table in the name of the topic; with `query` the name of the topic."""
    poll_interval_ms: int = option(INT, default=5000, check=at_least(1), importance=Importance.HIGH, group=_CONNECTOR)
    """How long to wait between two looks at a table."""
    batch_max_rows: int = option(INT, default=1000, check=at_least(1), importance=Importance.LOW, group=_CONNECTOR)
    """Most rows that are read at once."""
    table_poll_interval_ms: int = option(
        LONG, default=60_000, check=at_least(1), importance=Importance.LOW, group=_CONNECTOR
    )
    """How long to wait between two looks for new tables."""
    table_monitoring_startup_polling_limit_ms: int = option(
        LONG, default=10_000, check=at_least(0), importance=Importance.LOW, group=_CONNECTOR
    )
    """How long to wait for the first look at the tables; after that there are no tasks until the database answers."""

    @override
    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        yield from self._wrong_tables()
        if self.mode in (TIMESTAMP, BOTH) and not self.timestamp_column_name and not self.timestamp_columns_mapping:
            yield _problem("timestamp.column.name", "", f"must be set with mode={self.mode}")
        if self.mode in (INCREMENTING, BOTH) and self.query and not self.incrementing_column_name:
            yield _problem("incrementing.column.name", "", f"must be set with mode={self.mode} and a query")
        if self.mode == BULK and self.given.get("exactly.once.support") == "required":
            yield _problem("mode", BULK, "must be another one with exactly.once.support=required: it reads rows again")
        if self.query and not self.topic_prefix:
            yield _problem("topic.prefix", "", "must be the name of a topic with a query")

    def _wrong_tables(self) -> Iterable[Problem]:
        wanted = self.table_whitelist or self.table_include_list
        unwanted = self.table_blacklist or self.table_exclude_list
        if wanted and unwanted:
            yield _problem("table.whitelist", ",".join(wanted), "must be empty when there is a blacklist, too")
        if self.query and (wanted or unwanted):
            yield _problem("query", "[hidden]", "must be empty when tables are named")
        for key in ("table.include.list", "table.exclude.list"):
            for text in getattr(self, key.replace(".", "_")):
                try:
                    re.compile(text)
                except re.error as error:
                    yield _problem(key, text, f"must be regular expressions: {error}")

    @property
    def isolation(self) -> str | None:
        """SQLAlchemy's word for the isolation; None for the default."""
        return _ISOLATION[self.transaction_isolation_mode]

    def wants(self, table: Table) -> bool:
        """Whether a table is to be read."""
        if self.schema_pattern is not None and not _is_like(table.schema or "", self.schema_pattern):
            return False
        if self.table_whitelist or self.table_include_list:
            return _is_named(table, self.table_whitelist) or _is_matched(table, self.table_include_list)
        return not _is_named(table, self.table_blacklist) and not _is_matched(table, self.table_exclude_list)

    def timestamp_columns_of(self, table: Table | None) -> tuple[str, ...]:
        """The columns with the moment of the last change."""
        found = _mapped(table, self.timestamp_columns_mapping)
        return tuple(found.strip("[]").split("|")) if found else self.timestamp_column_name

    def incrementing_column_of(self, table: Table | None) -> str:
        """The column of growing numbers; empty when the database tells."""
        return _mapped(table, self.incrementing_column_mapping) or self.incrementing_column_name


def _problem(key: str, value: str, reason: str) -> Problem:
    return Problem(key, f"Invalid value {value} for configuration {key}: {reason}")


def _mapped(table: Table | None, mappings: Sequence[str]) -> str:
    pairs = [text.rpartition(":") for text in mappings]
    return next((column.strip() for pattern, _, column in pairs if table and _is_matched(table, [pattern])), "")


def _is_named(table: Table, names: Sequence[str]) -> bool:
    plain = {name.replace('"', "").replace("`", "") for name in names}
    return table.name in plain or any(name == str(table) or name.endswith(f".{table}") for name in plain)


def _is_matched(table: Table, patterns: Sequence[str]) -> bool:
    return any(re.fullmatch(pattern, text) for pattern in patterns for text in (table.name, str(table)))


def _is_like(text: str, pattern: str) -> bool:
    wanted = "".join({"%": ".*", "_": "."}.get(character, re.escape(character)) for character in pattern)
    return re.fullmatch(wanted, text, re.IGNORECASE) is not None


_WRITES, _MAPPING, _DDL, _RETRIES = "Writes", "Data Mapping", "DDL Support", "Retries"
KAFKA_COLUMNS: Final = ("__connect_topic", "__connect_partition", "__connect_offset")


class SqlSinkConfig(ConnectionConfig):
    """What an operator may say about writing to tables."""

    insert_mode: str = option(
        LOWER_CASE,
        default="insert",
        check=one_of("insert", "upsert", "update"),
        importance=Importance.HIGH,
        group=_WRITES,
        width=Width.MEDIUM,
    )
    """insert: each record is a new row. upsert: a row with the same key is changed. update: only existing rows are."""
    batch_size: int = option(INT, default=3000, check=at_least(1), group=_WRITES, width=Width.SHORT)
    """Most rows that go to the database at once."""
    delete_enabled: bool = option(BOOLEAN, default=False, group=_WRITES, width=Width.SHORT)
    """Whether a record without a value deletes the row with its key; needs pk.mode=record_key."""
    exactly_once: bool = option(BOOLEAN, default=False, group=_WRITES)
    """Whether offsets are kept in the database, in one transaction with the rows: no record is then written twice, in
    insert mode neither."""
    exactly_once_table: str = option(STRING, default="connect_offsets", check=not_empty(), group=_WRITES)
    """The table that those offsets are kept in; it is created when it is missing."""

    table_name_format: str = option(
        STRING,
        default="${topic}",
        check=not_empty(),
        aliases=("collection.name.format",),
        group=_MAPPING,
        width=Width.LONG,
    )
    """The name of the table; `${topic}` is the topic. A dot separates the schema (the database in MySQL) from it."""
    pk_mode: str = option(
        LOWER_CASE,
        default="none",
        check=one_of("none", "kafka", "record_key", "record_value"),
        aliases=("primary.key.mode",),
        importance=Importance.HIGH,
        group=_MAPPING,
        width=Width.MEDIUM,
    )
    """Where the primary key comes from: none, the record's place in Kafka, its key, or its value."""
    pk_fields: tuple[str, ...] = option(
        LIST, default=(), aliases=("primary.key.fields",), group=_MAPPING, width=Width.LONG
    )
    """kafka: names of three columns for topic, partition and offset. record_key: which fields of the key, all when
    empty; the name of the column for a key that is no struct. record_value: which fields of the value, or all."""
    fields_whitelist: tuple[str, ...] = option(
        LIST, default=(), aliases=("field.include.list", "fields.included"), group=_MAPPING, width=Width.LONG
    )
    """Which fields of the value are written, beside those of the key; all when empty."""
    unknown_fields: str = option(LOWER_CASE, default="fail", check=one_of("fail", "ignore"), group=_MAPPING)
    """What becomes of a field that the table has no column for, when columns are not added: fail the record, or leave
    the field out."""
    nested_mode: str = option(LOWER_CASE, default="json", check=one_of("json", "fail"), group=_MAPPING)
    """What becomes of structs, maps and arrays: written as JSON (PostgreSQL: arrays as arrays), or the record fails."""
    replace_null_with_default: bool = option(BOOLEAN, default=True, group=_MAPPING)
    """Whether null becomes the default of the field's schema, where it has one."""
    string_output_value_column_name: str = option(STRING, default="", group=_MAPPING)
    """The column for values that are plain text; not set: such records fail."""

    auto_create: bool = option(BOOLEAN, default=False, group=_DDL, width=Width.SHORT)
    """Whether a table that is missing is created, as the first records need it."""
    auto_evolve: bool = option(BOOLEAN, default=False, group=_DDL, width=Width.SHORT)
    """Whether columns that are missing are added. Nothing is ever dropped, renamed or made wider."""
    schema_evolution: str = option(LOWER_CASE, default="none", check=one_of("none", "basic"), group=_DDL)
    """Debezium's word for the two above: basic means both."""

    max_retries: int = option(
        INT, default=10, check=at_least(0), aliases=("flush.max.retries",), group=_RETRIES, width=Width.SHORT
    )
    """After how many failures in a row an outage is told as an error in the log. The sink goes on trying: an outage is
    not the fault of a record, and a task that has stopped does not write either."""
    retry_backoff_ms: int = option(
        INT, default=3000, check=at_least(0), aliases=("flush.retry.delay.ms",), group=_RETRIES, width=Width.SHORT
    )
    """How long to wait before the same records are written again."""
    trim_sensitive_log: bool = option(BOOLEAN, default=False, importance=Importance.LOW, group=_RETRIES)
    """Whether values of records are kept out of errors (PostgreSQL tells them as details)."""

    @override
    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        needs_key = self.insert_mode != "insert" or self.delete_enabled
        if needs_key and self.pk_mode == "none":
            told = "must be kafka, record_key or record_value with insert.mode=upsert or update"
            yield Problem("pk.mode", f"Invalid value none for configuration pk.mode: {told}")
        if self.delete_enabled and self.pk_mode != "record_key":
            told = "must be false unless pk.mode=record_key"
            yield Problem("delete.enabled", f"Invalid value true for configuration delete.enabled: {told}")
        if self.pk_mode == "kafka" and len(self.pk_fields) not in (0, 3):
            told = (
                f"must be three names (topic, partition, offset) or none with pk.mode=kafka: {','.join(self.pk_fields)}"
            )
            yield Problem("pk.fields", f"Invalid value for configuration pk.fields: {told}")

    @property
    def creates(self) -> bool:
        """Whether missing tables are created."""
        return self.auto_create or self.schema_evolution == "basic"

    @property
    def evolves(self) -> bool:
        """Whether missing columns are added."""
        return self.auto_evolve or self.schema_evolution == "basic"
