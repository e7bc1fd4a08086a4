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
from connect.api.places import Place
from connectors.sql import url
from connectors.sql.dialect import Table
from connectors.sql.url import Address

_DATABASE: Final = "Database"


class ConnectionConfig(Config):
    """Options of both: how to connect to the database."""

    connection_url: str = option(
        STRING, check=not_empty(), importance=Importance.HIGH, group=_DATABASE, width=Width.LONG
    )
    """The URL of the database: `jdbc:postgresql://host:5432/name`, `jdbc:mysql://host/name`,
    `jdbc:mariadb://host/name`, `jdbc:sqlite:/path/file.db`, or SQLAlchemy's form of it."""
    connection_user: str | None = option(
        optional(STRING),
        default=None,
        aliases=("connection.username",),
        importance=Importance.HIGH,
        group=_DATABASE,
        width=Width.MEDIUM,
    )
    """The user; not set: the URL's."""
    connection_password: str | None = option(
        optional(PASSWORD), default=None, importance=Importance.HIGH, group=_DATABASE, width=Width.MEDIUM
    )
    """The password of that user; not set: the URL's."""
    connection_attempts: int = option(
        INT, default=3, check=at_least(1), importance=Importance.LOW, group=_DATABASE, width=Width.SHORT
    )
    """Attempts to open the first connection before the task reports an outage. A connection that is lost later is an
    outage at once."""
    connection_backoff_ms: int = option(
        LONG, default=10_000, check=at_least(0), importance=Importance.LOW, group=_DATABASE, width=Width.SHORT
    )
    """The pause between two such attempts."""
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
    """Whether names of tables and columns are quoted; never: only where they must be."""
    dialect_name: str = option(STRING, default="", importance=Importance.LOW, group=_DATABASE)
    """Accepted for compatibility: the database is known from the URL."""
    table_types: tuple[str, ...] = option(LIST, default=("TABLE",), importance=Importance.LOW, group=_DATABASE)
    """The types of tables: TABLE, VIEW, or both."""

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

    @override
    def places(self) -> Iterable[Place]:
        return self.address().places("connection.url")

    def address(self) -> Address:
        """The address of the database; raises ConfigError."""
        return url.parse(self.connection_url, user=self.connection_user, password=self.connection_password)

    def zone(self) -> ZoneInfo:
        """The time zone of the database; raises ConfigError."""
        try:
            return ZoneInfo(self.db_timezone)
        except (ZoneInfoNotFoundError, ValueError):
            reason = "must be a time zone such as Europe/Madrid"
            raise ConfigError(f"Invalid value {self.db_timezone} for configuration db.timezone: {reason}") from None

    @property
    def includes_views(self) -> bool:
        """Whether views are read, too."""
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
    """Options of the source."""

    mode: str = option(
        LOWER_CASE, check=one_of(BULK, INCREMENTING, TIMESTAMP, BOTH), importance=Importance.HIGH, group=_MODE
    )
    """bulk: all rows each time. incrementing: rows with a higher number than any before. timestamp: rows with a later
    timestamp. timestamp+incrementing: the same, with a number that distinguishes rows of one timestamp."""
    incrementing_column_name: str = option(STRING, default="", group=_MODE, width=Width.MEDIUM)
    """The column of strictly increasing numbers; not set: the one that the database generates."""
    incrementing_column_mapping: tuple[str, ...] = option(LIST, default=(), group=_MODE)
    """The same for each table: `regular expression of schema.table:column`."""
    timestamp_column_name: tuple[str, ...] = option(LIST, default=(), group=_MODE, width=Width.MEDIUM)
    """Columns with the time of the last change; of several, the first that is not null counts."""
    timestamp_columns_mapping: tuple[str, ...] = option(LIST, default=(), group=_MODE)
    """The same for each table: `regular expression of schema.table:[columns]`, with vertical bars between columns."""
    timestamp_initial: int | None = option(
        optional(LONG), default=None, check=at_least(-1), importance=Importance.LOW, group=_MODE
    )
    """Timestamp of the first rows to read, in milliseconds since 1970; -1: the current time; not set: all rows."""
    timestamp_delay_interval_ms: int = option(LONG, default=0, check=at_least(0), group=_MODE)
    """How old a row must be before it is read. Rows of a longer transaction may be missed."""
    open_transactions: str = option(LOWER_CASE, default="wait", check=one_of("wait", "ignore"), group=_MODE)
    """wait: rows of PostgreSQL are read only when no open transaction can still add rows before them. ignore: rows that
    are committed late may be missed, as in Kafka Connect."""
    timestamp_granularity: str = option(
        LOWER_CASE,
        default="connect_logical",
        check=one_of("connect_logical", "nanos_long", "nanos_string", "nanos_iso_datetime_string"),
        importance=Importance.LOW,
        group=_MODE,
    )
    """The type of columns with a date and a time: Connect's Timestamp, or nanoseconds since 1970."""
    validate_non_null: bool = option(BOOLEAN, default=True, importance=Importance.LOW, group=_MODE)
    """Whether incrementing and timestamp columns must be NOT NULL: rows with null in them would never be read."""
    query: str = option(STRING, default="", aliases=("query.masked",), group=_MODE, width=Width.LONG)
    """A query to read instead of tables. Unless the mode is bulk, WHERE is appended to it."""
    query_suffix: str = option(STRING, default="", importance=Importance.LOW, group=_MODE)
    """A text that is appended to each query."""
    transaction_isolation_mode: str = option(
        LOWER_CASE, default="default", check=one_of(*_ISOLATION), importance=Importance.LOW, group=_MODE
    )
    """The isolation level of transactions that read; default: the database's."""

    table_whitelist: tuple[str, ...] = option(LIST, default=(), group=_TABLES, width=Width.LONG)
    """Tables to read, with or without their schema; all when empty."""
    table_blacklist: tuple[str, ...] = option(LIST, default=(), group=_TABLES, width=Width.LONG)
    """Tables not to read."""
    table_include_list: tuple[str, ...] = option(LIST, default=(), group=_TABLES, width=Width.LONG)
    """The same as the whitelist, with regular expressions."""
    table_exclude_list: tuple[str, ...] = option(LIST, default=(), group=_TABLES, width=Width.LONG)
    """The same as the blacklist, with regular expressions."""
    schema_pattern: str | None = option(optional(STRING), default=None, importance=Importance.HIGH, group=_TABLES)
    """Schemas in which to look for tables, with `%` for any text and `_` for any character; all when not set."""
    catalog_pattern: str | None = option(optional(STRING), default=None, group=_TABLES)
    """Accepted for compatibility: tables of the database in the URL are read."""
    tables: str | None = option(optional(STRING), default=None, importance=Importance.LOW, group=_TABLES)
    """The tables of one task; set by the connector."""
    numeric_mapping: str = option(
        LOWER_CASE,
        default="none",
        check=one_of("none", "best_fit", "best_fit_eager_double", "precision_only"),
        importance=Importance.LOW,
        group=_TABLES,
    )
    """none: NUMERIC is Connect's Decimal. best_fit: integers and doubles where they fit. best_fit_eager_double: doubles
    even where they lose digits. precision_only: integers where the scale is 0."""

    topic_prefix: str = option(STRING, check=_TOPIC, importance=Importance.HIGH, group=_CONNECTOR, width=Width.MEDIUM)
    """The prefix of topics, before the name of the table; with `query` the name of the topic."""
    poll_interval_ms: int = option(INT, default=5000, check=at_least(1), importance=Importance.HIGH, group=_CONNECTOR)
    """The interval at which a table is read."""
    batch_max_rows: int = option(INT, default=1000, check=at_least(1), importance=Importance.LOW, group=_CONNECTOR)
    """Most rows of a batch."""
    table_poll_interval_ms: int = option(
        LONG, default=60_000, check=at_least(1), importance=Importance.LOW, group=_CONNECTOR
    )
    """The interval at which to look for new tables."""
    table_monitoring_startup_polling_limit_ms: int = option(
        LONG, default=10_000, check=at_least(0), importance=Importance.LOW, group=_CONNECTOR
    )
    """How long to wait for the first list of tables; then there are no tasks until the database answers."""

    @override
    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        yield from self._table_problems()
        if self.mode in (TIMESTAMP, BOTH) and not self.timestamp_column_name and not self.timestamp_columns_mapping:
            yield Problem.invalid("timestamp.column.name", "", f"must be set with mode={self.mode}")
        if self.mode in (INCREMENTING, BOTH) and self.query and not self.incrementing_column_name:
            yield Problem.invalid("incrementing.column.name", "", f"must be set with mode={self.mode} and a query")
        if self.mode == BULK and self.given.get("exactly.once.support") == "required":
            reason = "must not be bulk with exactly.once.support=required: it reads rows again"
            yield Problem.invalid("mode", BULK, reason)
        if self.query and not self.topic_prefix:
            yield Problem.invalid("topic.prefix", "", "must be the name of a topic with a query")

    def _table_problems(self) -> Iterable[Problem]:
        wanted = self.table_whitelist or self.table_include_list
        unwanted = self.table_blacklist or self.table_exclude_list
        if wanted and unwanted:
            yield Problem.invalid("table.whitelist", ",".join(wanted), "must be empty when there is a blacklist, too")
        if self.query and (wanted or unwanted):
            yield Problem.invalid("query", "[hidden]", "must be empty when tables are named")
        for key in ("table.include.list", "table.exclude.list"):
            for text in getattr(self, key.replace(".", "_")):
                try:
                    re.compile(text)
                except re.error as error:
                    yield Problem.invalid(key, text, f"must be regular expressions: {error}")

    @property
    def isolation(self) -> str | None:
        """SQLAlchemy's name of the isolation level; None for the default."""
        return _ISOLATION[self.transaction_isolation_mode]

    def wants(self, table: Table) -> bool:
        """Whether a table is to be read."""
        if self.schema_pattern is not None and not _is_like(table.schema or "", self.schema_pattern):
            return False
        if self.table_whitelist or self.table_include_list:
            return _is_named(table, self.table_whitelist) or _is_matched(table, self.table_include_list)
        return not _is_named(table, self.table_blacklist) and not _is_matched(table, self.table_exclude_list)

    def timestamp_columns_of(self, table: Table | None) -> tuple[str, ...]:
        """The columns with the time of the last change."""
        found = _find_mapping(table, self.timestamp_columns_mapping)
        return tuple(found.strip("[]").split("|")) if found else self.timestamp_column_name

    def incrementing_column_of(self, table: Table | None) -> str:
        """The column of increasing numbers; empty when the database is to be asked."""
        return _find_mapping(table, self.incrementing_column_mapping) or self.incrementing_column_name


def _find_mapping(table: Table | None, mappings: Sequence[str]) -> str:
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
    """Options of the sink."""

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
    """Most rows that are sent to the database at once."""
    delete_enabled: bool = option(BOOLEAN, default=False, group=_WRITES, width=Width.SHORT)
    """Whether a record without a value deletes the row with its key; requires pk.mode=record_key."""
    exactly_once: bool = option(BOOLEAN, default=False, group=_WRITES)
    """Whether offsets are stored in the database, in one transaction with the rows, so that no record is written twice
    even in insert mode."""
    exactly_once_table: str = option(STRING, default="connect_offsets", check=not_empty(), group=_WRITES)
    """The table of those offsets; created when it is missing."""

    table_name_format: str = option(
        STRING,
        default="${topic}",
        check=not_empty(),
        aliases=("collection.name.format",),
        group=_MAPPING,
        width=Width.LONG,
    )
    """The name of the table; `${topic}` is the topic. The schema (the database in MySQL) may stand before a dot."""
    pk_mode: str = option(
        LOWER_CASE,
        default="none",
        check=one_of("none", "kafka", "record_key", "record_value"),
        aliases=("primary.key.mode",),
        importance=Importance.HIGH,
        group=_MAPPING,
        width=Width.MEDIUM,
    )
    """Where the primary key comes from: none; kafka: topic, partition and offset; the record's key, or its value."""
    pk_fields: tuple[str, ...] = option(
        LIST, default=(), aliases=("primary.key.fields",), group=_MAPPING, width=Width.LONG
    )
    """kafka: the names of three columns for topic, partition and offset. record_key: fields of the key, all when empty;
    for a key that is not a struct, the name of its column. record_value: fields of the value, all when empty."""
    fields_whitelist: tuple[str, ...] = option(
        LIST, default=(), aliases=("field.include.list", "fields.included"), group=_MAPPING, width=Width.LONG
    )
    """The fields of the value that are written besides the key; all when empty."""
    unknown_fields: str = option(LOWER_CASE, default="fail", check=one_of("fail", "ignore"), group=_MAPPING)
    """What happens to a field without a column, when columns are not added: the record fails, or the field is left
    out."""
    nested_mode: str = option(LOWER_CASE, default="json", check=one_of("json", "fail"), group=_MAPPING)
    """What happens to structs, maps and arrays: written as JSON (PostgreSQL: arrays as arrays), or the record fails."""
    replace_null_with_default: bool = option(BOOLEAN, default=True, group=_MAPPING)
    """Whether null becomes the default of the field's schema, where it has one."""
    string_output_value_column_name: str = option(STRING, default="", group=_MAPPING)
    """The column for values that are plain text; not set: such records fail."""

    auto_create: bool = option(BOOLEAN, default=False, group=_DDL, width=Width.SHORT)
    """Whether missing tables are created, with columns for the first records."""
    auto_evolve: bool = option(BOOLEAN, default=False, group=_DDL, width=Width.SHORT)
    """Whether missing columns are added. Nothing is ever dropped, renamed or widened."""
    schema_evolution: str = option(LOWER_CASE, default="none", check=one_of("none", "basic"), group=_DDL)
    """Debezium's option for the two above: basic means both."""

    max_retries: int = option(
        INT, default=10, check=at_least(0), aliases=("flush.max.retries",), group=_RETRIES, width=Width.SHORT
    )
    """After how many failures in a row an outage is logged as an error. The sink keeps trying: no record is to blame,
    and a task that has stopped does not write either."""
    retry_backoff_ms: int = option(
        INT, default=3000, check=at_least(0), aliases=("flush.retry.delay.ms",), group=_RETRIES, width=Width.SHORT
    )
    """The pause before the same records are written again."""
    trim_sensitive_log: bool = option(BOOLEAN, default=False, importance=Importance.LOW, group=_RETRIES)
    """Whether error messages leave out values of records, which are in PostgreSQL's details."""

    @override
    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        needs_key = self.insert_mode != "insert" or self.delete_enabled
        if needs_key and self.pk_mode == "none":
            reason = "must be kafka, record_key or record_value with insert.mode=upsert or update"
            yield Problem.invalid("pk.mode", "none", reason)
        if self.delete_enabled and self.pk_mode != "record_key":
            yield Problem.invalid("delete.enabled", "true", "must be false unless pk.mode=record_key")
        if self.pk_mode == "kafka" and len(self.pk_fields) not in (0, 3):
            reason = "must be three names (topic, partition, offset) or empty with pk.mode=kafka"
            yield Problem.invalid("pk.fields", ",".join(self.pk_fields), reason)

    @property
    def creates(self) -> bool:
        """Whether missing tables are created."""
        return self.auto_create or self.schema_evolution == "basic"

    @property
    def evolves(self) -> bool:
        """Whether missing columns are added."""
        return self.auto_evolve or self.schema_evolution == "basic"
