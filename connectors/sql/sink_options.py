"""Options of the sink."""

from collections.abc import Iterable
from typing import Final

from typing_extensions import override

from connect.api.config import (
    BOOLEAN,
    INT,
    LIST,
    STRING,
    Importance,
    Problem,
    Width,
    at_least,
    not_empty,
    one_of,
    option,
)
from connectors.sql.options import CHOICE, ConnectionConfig

_WRITES, _MAPPING, _DDL, _RETRIES = "Writes", "Data Mapping", "DDL Support", "Retries"
KAFKA_COLUMNS: Final = ("__connect_topic", "__connect_partition", "__connect_offset")


class SqlSinkConfig(ConnectionConfig):
    """What an operator may say about writing to tables."""

    insert_mode: str = option(
        CHOICE,
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
        CHOICE,
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
    unknown_fields: str = option(CHOICE, default="fail", check=one_of("fail", "ignore"), group=_MAPPING)
    """What becomes of a field that the table has no column for, when columns are not added: fail the record, or leave
    the field out."""
    nested_mode: str = option(CHOICE, default="json", check=one_of("json", "fail"), group=_MAPPING)
    """What becomes of structs, maps and arrays: written as JSON (PostgreSQL: arrays as arrays), or the record fails."""
    replace_null_with_default: bool = option(BOOLEAN, default=True, group=_MAPPING)
    """Whether null becomes the default of the field's schema, where it has one."""
    string_output_value_column_name: str = option(STRING, default="", group=_MAPPING)
    """The column for values that are plain text; not set: such records fail."""

    auto_create: bool = option(BOOLEAN, default=False, group=_DDL, width=Width.SHORT)
    """Whether a table that is missing is created, as the first records need it."""
    auto_evolve: bool = option(BOOLEAN, default=False, group=_DDL, width=Width.SHORT)
    """Whether columns that are missing are added. Nothing is ever dropped, renamed or made wider."""
    schema_evolution: str = option(CHOICE, default="none", check=one_of("none", "basic"), group=_DDL)
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
