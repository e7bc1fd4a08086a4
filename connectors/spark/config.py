"""Options of the Spark sink."""

import re
from collections import Counter
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
from connect.api.places import Place

_TABLES, _WRITES, _COLUMNS, _PACE = "Tables", "Writes", "Columns", "Pace"
METADATA: Final = ("topic", "partition", "offset", "timestamp", "key", "headers", "schema_id")
PERIODS: Final = ("year", "month", "day", "hour")
_PARTITION = re.compile(rf"(?:({'|'.join(PERIODS)})\((\w+)\)|(\w+))", re.ASCII)
_TABLE_NAME = re.compile(r"[a-z0-9_]{1,128}(\.[a-z0-9_]{1,128})?")
_TEMPLATE_PART = r"(?:[A-Za-z0-9_]|\$\{topic\})+"
_TEMPLATE = re.compile(rf"{_TEMPLATE_PART}(?:\.{_TEMPLATE_PART})?")
_TEMPLATES = Check(
    accepts=lambda template: _TEMPLATE.fullmatch(template) is not None,
    allowed="letters, digits, _ and ${topic}, optionally after a database and a dot",
)
_MAPPINGS = Check(
    accepts=lambda pairs: all(
        topic.strip() and _TABLE_NAME.fullmatch(table.strip()) for topic, _, table in (p.partition(":") for p in pairs)
    ),
    allowed="topic:table pairs, with table names of a-z, 0-9 and _, optionally after a database and a dot",
)
_PARTITIONS = Check(
    accepts=lambda parts: all(_PARTITION.fullmatch(part) for part in parts),
    allowed="names of columns, or year(column), month(column), day(column), hour(column)",
)


class PartitionColumn(NamedTuple):
    """A column whose values are the names of a table's folders."""

    name: str
    source: str
    period: str | None


class SparkSinkConfig(Config):
    """Options of the sink."""

    table: str = option(
        STRING,
        default="${topic}",
        check=_TEMPLATES,
        aliases=("table.name.format",),
        importance=Importance.HIGH,
        group=_TABLES,
        width=Width.LONG,
    )
    """The name of the table, or `database.table`; `${topic}` is the topic, with _ for characters other than a-z, 0-9
    and _."""
    topic2table_map: tuple[str, ...] = option(
        LIST, default=(), check=_MAPPINGS, key="topic2table.map", group=_TABLES, width=Width.LONG
    )
    """Tables of single topics: `orders:shop.orders,users:people`. Takes precedence over `table`."""
    table_format: str = option(
        STRING, default="parquet", check=one_of("parquet", "delta"), importance=Importance.HIGH, group=_TABLES
    )
    """parquet: plain files in Spark's catalog. delta: a Delta table, which also takes upserts."""
    partition_by: tuple[str, ...] = option(LIST, default=(), check=_PARTITIONS, group=_TABLES, width=Width.LONG)
    """Partition columns of new tables, from values or metadata; `day(_timestamp)` makes a column `_timestamp_day`."""
    schema_evolution: tuple[str, ...] = option(
        LIST, default=("add", "widen"), check=some_of("add", "widen", "none"), group=_TABLES
    )
    """How tables may follow schemas: `add` columns, `widen` types, or `none`. Records that do not fit are errors, which
    errors.tolerance decides about."""

    write_mode: str = option(
        STRING, default="append", check=one_of("append", "upsert"), importance=Importance.HIGH, group=_WRITES
    )
    """append: each record is a row. upsert: a row with the same key is replaced (requires table.format=delta)."""
    pk_mode: str = option(STRING, default="none", check=one_of("none", "record_key", "record_value"), group=_WRITES)
    """Where the key columns come from: nowhere, the record's key, or fields of its value."""
    pk_fields: tuple[str, ...] = option(LIST, default=(), group=_WRITES, width=Width.LONG)
    """record_key: fields of the key, all when empty; for a key that is not a struct, the name of its column (`key` when
    empty). record_value: fields of the value."""
    delete_enabled: bool = option(BOOLEAN, default=True, group=_WRITES)
    """Whether a record without a value deletes the row with its key, in upsert mode with pk.mode=record_key."""
    behavior_on_null_values: str = option(
        STRING, default="write", check=one_of("write", "ignore", "fail"), group=_WRITES
    )
    """What happens to a record without a value that deletes nothing: a row of nulls, no row, or an error."""
    compression: str = option(
        STRING, default="zstd", check=one_of("zstd", "snappy", "gzip", "lz4", "none"), group=_WRITES
    )
    """The compression of files."""

    metadata_columns: tuple[str, ...] = option(
        LIST, default=("topic", "partition", "offset", "timestamp"), check=some_of(*METADATA, "none"), group=_COLUMNS
    )
    """Metadata of records that is stored in columns whose names begin with _; or `none`."""
    value_column: str = option(STRING, default="value", check=not_empty(), group=_COLUMNS)
    """The column for values that are not structs: text, numbers, bytes, lists."""

    trigger_interval_ms: int = option(INT, default=1000, check=between(0, 86_400_000), group=_PACE)
    """How often new records are written. Shorter: visible sooner, in more and smaller files. 0: at once."""
    batch_max_records: int = option(INT, default=1_000_000, check=at_least(1), group=_PACE)
    """Most records of one batch."""
    task_max_records: int = option(INT, default=250_000, check=at_least(1000), group=_PACE)
    """Most records of a partition that one Spark task reads; more are divided among several tasks."""

    @property
    def metadata(self) -> tuple[str, ...]:
        """The metadata columns, without _."""
        return tuple(name for name in self.metadata_columns if name != "none")

    @property
    def tables_by_topic(self) -> Mapping[str, str]:
        """The tables of single topics."""
        pairs = (pair.partition(":") for pair in self.topic2table_map)
        return {topic.strip(): table.strip() for topic, _, table in pairs}

    @property
    def partitions(self) -> tuple[PartitionColumn, ...]:
        """The partition columns."""
        return tuple(_partition(part) for part in self.partition_by)

    @property
    def deletes(self) -> bool:
        """Whether records without a value delete rows."""
        return self.write_mode == "upsert" and self.pk_mode == "record_key" and self.delete_enabled

    @override
    def places(self) -> Iterable[Place]:
        return ()  # where tables and the engine are is up to the worker's settings

    @override
    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        if self.write_mode == "upsert":
            yield from self._upsert_problems()
        if self.pk_mode == "record_value" and not self.pk_fields:
            yield Problem.invalid("pk.fields", "", "must name fields of the value with pk.mode=record_value")
        columns = ",".join(self.metadata_columns)
        if "none" in self.metadata_columns and len(self.metadata_columns) > 1:
            yield Problem.invalid("metadata.columns", columns, "must be none, or names without none")
        partition_by = ",".join(self.partition_by)
        for part in self.partitions:
            if part.source in {f"_{name}" for name in METADATA if name not in self.metadata}:
                reason = f"must not name {part.source}, unless metadata.columns has {part.source[1:]}"
                yield Problem.invalid("partition.by", partition_by, reason)
        for name, count in Counter(part.name for part in self.partitions).items():
            if count > 1:
                yield Problem.invalid("partition.by", partition_by, f"must name column {name} only once")

    def _upsert_problems(self) -> Iterable[Problem]:
        if self.table_format != "delta":
            yield Problem.invalid("write.mode", "upsert", "must be append, unless table.format=delta")
        if self.pk_mode == "none":
            yield Problem.invalid("pk.mode", "none", "must be record_key or record_value with write.mode=upsert")
        if "offset" not in self.metadata:
            reason = "must have offset with write.mode=upsert: the higher offset is the later record"
            yield Problem.invalid("metadata.columns", ",".join(self.metadata_columns), reason)


def _partition(text: str) -> PartitionColumn:
    found = _PARTITION.fullmatch(text)
    assert found is not None, "checked when it was parsed"
    period, source, plain = found.groups()
    return PartitionColumn(plain, plain, None) if plain else PartitionColumn(f"{source}_{period}", source, period)
