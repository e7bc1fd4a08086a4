"""Options of the Spark sink."""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from typing_extensions import override

from connect.api.config import (
    BOOLEAN,
    INT,
    LIST,
    STRING,
    Check,
    Config,
    Importance,
    Problem,
    Width,
    at_least,
    between,
    not_empty,
    one_of,
    option,
    some_of,
)

_TABLES, _WRITES, _COLUMNS, _PACE = "Tables", "Writes", "Columns", "Pace"
METADATA: Final = ("topic", "partition", "offset", "timestamp", "key", "headers", "schema_id")
PERIODS: Final = ("year", "month", "day", "hour")
_PARTITION = re.compile(rf"(?:({'|'.join(PERIODS)})\((\w+)\)|(\w+))", re.ASCII)
_TABLE_NAME = re.compile(r"[a-z0-9_]{1,128}(\.[a-z0-9_]{1,128})?")
_TEMPLATE_PART = r"(?:[A-Za-z0-9_]|\$\{topic\})+"
_TEMPLATE = re.compile(rf"{_TEMPLATE_PART}(?:\.{_TEMPLATE_PART})?")
_TEMPLATES = Check(
    accepts=lambda template: _TEMPLATE.fullmatch(template) is not None,
    allowed="letters, digits, _ and ${topic}, with the database and a dot in front if need be",
)
_MAPPINGS = Check(
    accepts=lambda pairs: all(
        topic.strip() and _TABLE_NAME.fullmatch(table.strip()) for topic, _, table in (p.partition(":") for p in pairs)
    ),
    allowed="topic:table pairs, with table names of a-z, 0-9 and _, and a dot behind the database",
)
_PARTITIONS = Check(
    accepts=lambda parts: all(_PARTITION.fullmatch(part) for part in parts),
    allowed="names of columns, or year(column), month(column), day(column), hour(column)",
)


class PartitionColumn(NamedTuple):
    """A column by whose values a table's files lie in folders."""

    name: str
    source: str
    period: str | None


class SparkSinkConfig(Config):
    """What an operator may say about tables, and how they are written."""

    table: str = option(
        STRING,
        default="${topic}",
        check=_TEMPLATES,
        aliases=("table.name.format",),
        importance=Importance.HIGH,
        group=_TABLES,
        width=Width.LONG,
    )
    """The name of the table, `${topic}` is the topic; `database.table` where a database is wanted. Characters other
    than a-z, 0-9 and _ become _ in the topic's place."""
    topic2table_map: tuple[str, ...] = option(
        LIST, default=(), check=_MAPPINGS, key="topic2table.map", group=_TABLES, width=Width.LONG
    )
    """Tables of some topics by name: `orders:shop.orders,users:people`. Goes before `table`."""
    table_format: str = option(
        STRING, default="parquet", check=one_of("parquet", "delta"), importance=Importance.HIGH, group=_TABLES
    )
    """parquet: plain files in Spark's catalog. delta: a Delta table, which can also be changed by key."""
    partition_by: tuple[str, ...] = option(LIST, default=(), check=_PARTITIONS, group=_TABLES, width=Width.LONG)
    """Columns by which files lie in folders: of the values, or of the metadata; `day(_timestamp)` makes a column
    `_timestamp_day`. Used when a table is created."""
    schema_evolution: tuple[str, ...] = option(
        LIST, default=("add", "widen"), check=some_of("add", "widen", "none"), group=_TABLES
    )
    """What may happen to a table when schemas change: `add` columns, `widen` types, or `none`. Records that do not fit
    are errors, which errors.tolerance decides about."""

    write_mode: str = option(
        STRING, default="append", check=one_of("append", "upsert"), importance=Importance.HIGH, group=_WRITES
    )
    """append: each record is a row. upsert: a row with the same key is replaced (needs table.format=delta)."""
    pk_mode: str = option(STRING, default="none", check=one_of("none", "record_key", "record_value"), group=_WRITES)
    """Where the columns of the key come from: nowhere, the record's key, or fields of its value."""
    pk_fields: tuple[str, ...] = option(LIST, default=(), group=_WRITES, width=Width.LONG)
    """record_key: which fields of the key, all when empty; the name of the column for a key that is no struct (`key`
    when not set). record_value: which fields of the value."""
    delete_enabled: bool = option(BOOLEAN, default=True, group=_WRITES)
    """Whether a record without a value deletes the row with its key, in upsert mode with pk.mode=record_key."""
    behavior_on_null_values: str = option(
        STRING, default="write", check=one_of("write", "ignore", "fail"), group=_WRITES
    )
    """What becomes of a record without a value that deletes nothing: a row with empty columns, nothing, or an error."""
    compression: str = option(
        STRING, default="zstd", check=one_of("zstd", "snappy", "gzip", "lz4", "none"), group=_WRITES
    )
    """How files are compressed."""

    metadata_columns: tuple[str, ...] = option(
        LIST, default=("topic", "partition", "offset", "timestamp"), check=some_of(*METADATA, "none"), group=_COLUMNS
    )
    """What else is kept of a record, in columns that begin with _: where it was and when, its key, headers and the id
    of its schema; or `none`."""
    value_column: str = option(STRING, default="value", check=not_empty(), group=_COLUMNS)
    """The column for values that are no structs: text, numbers, bytes, lists."""

    trigger_interval_ms: int = option(INT, default=1000, check=between(0, 86_400_000), group=_PACE)
    """How often what has come is written. Shorter: seen sooner, in more and smaller files. 0: at once."""
    batch_max_records: int = option(INT, default=1_000_000, check=at_least(1), group=_PACE)
    """Most records that are written at once."""
    task_max_records: int = option(INT, default=250_000, check=at_least(1000), group=_PACE)
    """From how many records on the reading of a partition is shared by several tasks of Spark."""

    @property
    def metadata(self) -> tuple[str, ...]:
        """Which columns of metadata there are."""
        return tuple(name for name in self.metadata_columns if name != "none")

    @property
    def tables_by_topic(self) -> Mapping[str, str]:
        """Tables that were named for their topics."""
        pairs = (pair.partition(":") for pair in self.topic2table_map)
        return {topic.strip(): table.strip() for topic, _, table in pairs}

    @property
    def partitions(self) -> tuple[PartitionColumn, ...]:
        """By which columns files lie in folders."""
        return tuple(_partition(part) for part in self.partition_by)

    @property
    def deletes(self) -> bool:
        """Whether records without a value delete rows."""
        return self.write_mode == "upsert" and self.pk_mode == "record_key" and self.delete_enabled

    @override
    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        if self.write_mode == "upsert":
            yield from self._upsert_problems()
        if self.pk_mode == "record_value" and not self.pk_fields:
            yield _problem("pk.fields", "", "must name fields of the value with pk.mode=record_value")
        if "none" in self.metadata_columns and len(self.metadata_columns) > 1:
            yield _problem("metadata.columns", ",".join(self.metadata_columns), "must be none, or names without none")
        told = {f"_{name}" for name in METADATA} - {f"_{name}" for name in self.metadata}
        for part in self.partitions:
            if part.source in told:
                wanted = f"must not name {part.source}, unless metadata.columns has {part.source[1:]}"
                yield _problem("partition.by", ",".join(self.partition_by), wanted)
        for name, count in _counted(part.name for part in self.partitions).items():
            if count > 1:
                yield _problem("partition.by", ",".join(self.partition_by), f"must name column {name} once")

    def _upsert_problems(self) -> Iterable[Problem]:
        if self.table_format != "delta":
            yield _problem("write.mode", "upsert", "must be append, unless table.format=delta")
        if self.pk_mode == "none":
            yield _problem("pk.mode", "none", "must be record_key or record_value with write.mode=upsert")
        if "offset" not in self.metadata:
            told = "must have offset with write.mode=upsert: it tells which of two records is the later one"
            yield _problem("metadata.columns", ",".join(self.metadata_columns), told)


def _partition(text: str) -> PartitionColumn:
    found = _PARTITION.fullmatch(text)
    assert found is not None, "checked when it was given"
    period, source, plain = found.groups()
    return PartitionColumn(plain, plain, None) if plain else PartitionColumn(f"{source}_{period}", source, period)


def _counted(names: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts


def _problem(key: str, value: str, told: str) -> Problem:
    return Problem(key, f"Invalid value {value} for configuration {key}: {told}")
