"""The operations that every engine has: SQL statements, a look at the tables, and their upkeep."""

import datetime as dt
import decimal
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from streams.errors import WrongOption
from streams.spark.engine.job import EngineContext, Operation
from streams.spark.engine.messages import JSON
from streams.spark.tables.catalog import Catalog
from streams.spark.tables.model import TableSpec
from streams.spark.tables.overview import table_info
from streams.spark.tables.tables import TARGET_BYTES, TIMESTAMP_COLUMN

LIMIT_MAX: Final = 1_000_000
_LIMIT: Final = 1000
_DEPTH_MAX: Final = 100


def sql(context: EngineContext, arguments: dict[str, Any]) -> JSON:
    """Run a statement: its columns with their types, at most `limit` rows, and whether there were more."""
    statement = _text(arguments, "statement").strip().rstrip(";")
    limit = arguments.get("limit", _LIMIT)
    if not isinstance(limit, int) or isinstance(limit, bool) or not 0 <= limit <= LIMIT_MAX:
        raise WrongOption("limit", limit, f"must be a whole number from 0 to {LIMIT_MAX}")
    frame = context.session.sql(statement)
    if frame.isStreaming:
        raise WrongOption("statement", statement[:100], "it reads a stream, which has no end: read a table")
    # One row more than the limit shows whether there are more.
    found = frame.limit(limit + 1).collect() if frame.columns else []
    rows = [[json_value(value) for value in row] for row in found]
    columns = [{"name": field.name, "type": field.dataType.simpleString()} for field in frame.schema.fields]
    return {"columns": columns, "rows": rows[:limit], "truncated": len(rows) > limit}


def tables(context: EngineContext, arguments: dict[str, Any]) -> JSON:
    """Every table of a database, or of all databases, with what is known without reading rows."""
    database = None if arguments.get("database") is None else _text(arguments, "database")
    found = sorted(context.tables.tables(), key=lambda info: info.name)
    return [
        msgspec.to_builtins(info)
        for info in found
        if database is None or (info.name.rpartition(".")[0] or "default") == database
    ]


def describe(context: EngineContext, arguments: dict[str, Any]) -> JSON:
    """One table or view: its columns in order, partitions, properties and size."""
    name = _text(arguments, "table")
    # Spark resolves the name, and its error says what is wrong with one that does not exist.
    columns = {field.name: field.dataType.simpleString() for field in context.session.table(name).schema.fields}
    entry = Catalog(context.session).find(name)
    if entry is None:
        return {"name": name, "format": "view", "columns": columns}
    return {**msgspec.to_builtins(table_info(context.files, entry)), "columns": columns}


def compact(context: EngineContext, arguments: dict[str, Any]) -> JSON:
    """Merge a table's small files into large ones. Arguments: table, target_bytes, retention_hours, dry_run."""
    _check(arguments, {"table": str, "target_bytes": int, "retention_hours": int, "dry_run": bool})
    result = context.tables.compact(
        _text(arguments, "table"),
        target_bytes=arguments.get("target_bytes", TARGET_BYTES),
        retention_hours=arguments.get("retention_hours", 168),
        dry_run=arguments.get("dry_run", False),
    )
    return msgspec.to_builtins(result)


def expire(context: EngineContext, arguments: dict[str, Any]) -> JSON:
    """Remove a table's old rows. Arguments: table, older_than_ms, column, dry_run."""
    _check(arguments, {"table": str, "older_than_ms": int, "column": str, "dry_run": bool}, "older_than_ms")
    result = context.tables.expire(
        _text(arguments, "table"),
        arguments["older_than_ms"],
        column=arguments.get("column", TIMESTAMP_COLUMN),
        dry_run=arguments.get("dry_run", False),
    )
    return msgspec.to_builtins(result)


def remove_range(context: EngineContext, arguments: dict[str, Any]) -> JSON:
    """Remove rows that came from a range of offsets. Arguments: table, topic, partition, first, last, dry_run."""
    kinds = {"table": str, "topic": str, "partition": int, "first": int, "last": int, "dry_run": bool}
    _check(arguments, kinds, "topic", "partition", "first", "last")
    result = context.tables.remove_range(
        _text(arguments, "table"),
        arguments["topic"],
        partition=arguments["partition"],
        first=arguments["first"],
        last=arguments["last"],
        dry_run=arguments.get("dry_run", False),
    )
    return msgspec.to_builtins(result)


def recover(context: EngineContext, arguments: dict[str, Any]) -> JSON:
    """Finish a table's interrupted upkeep. Arguments: table."""
    _check(arguments, {"table": str})
    return {"exchanges": context.tables.recover(TableSpec(name=_text(arguments, "table")))}


OPERATIONS: Final[dict[str, Operation]] = {
    "compact": compact,
    "describe": describe,
    "expire": expire,
    "recover": recover,
    "remove-range": remove_range,
    "sql": sql,
    "tables": tables,
}


def _text(arguments: dict[str, Any], key: str) -> str:
    value = arguments.get(key)
    if not isinstance(value, str) or not value.strip():
        raise WrongOption(key, value, "must be a non-empty string")
    return value


def _check(arguments: dict[str, Any], kinds: Mapping[str, type], *required: str) -> None:
    for key, value in arguments.items():
        kind = kinds.get(key)
        if kind is None:
            raise WrongOption(key, value, f"unknown argument; allowed are {', '.join(kinds)}")
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise WrongOption(key, value, f"must be of type {kind.__name__}")
    for key in required:
        if key not in arguments:
            raise WrongOption(key, None, "must be given")


def json_value(value: object, *, depth: int = 0) -> JSON:
    """A value without Spark's classes: times are ISO 8601, decimals are text, bytes are hexadecimal."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if depth > _DEPTH_MAX:
        return "…"
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, dt.datetime):
        # Spark returns times of the session's zone, which is UTC, without the zone.
        return value.isoformat() if value.tzinfo is not None else f"{value.isoformat()}Z"
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    return _nested(value, depth + 1)


def _nested(value: object, depth: int) -> JSON:
    if isinstance(value, tuple) and hasattr(value, "__fields__"):
        # If a struct has two fields of one name, the later one wins, as usual in JSON.
        return {name: json_value(item, depth=depth) for name, item in zip(value.__fields__, value, strict=True)}
    if isinstance(value, Mapping):
        return {str(json_value(key)): json_value(item, depth=depth) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [json_value(item, depth=depth) for item in value]
    return str(value)
