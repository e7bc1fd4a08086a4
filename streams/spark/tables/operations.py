"""What the engine can be asked to do to tables: entry points of the group `caudal.spark.operations`."""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from streams.errors import WrongOption
from streams.spark.tables.model import TableSpec
from streams.spark.tables.tables import TARGET_BYTES, TIMESTAMP_COLUMN, Tables

Arguments = Mapping[str, Any]


class TopicPartition(Protocol):
    """What these operations need of the engine."""

    @property
    def tables(self) -> Tables:
        """The tables of its catalog."""
        ...


def tables(place: TopicPartition, arguments: Arguments) -> Any:
    """All tables with format, columns, files, bytes and rows."""
    _check(arguments, {})
    return msgspec.to_builtins(place.tables.tables())


def compact(place: TopicPartition, arguments: Arguments) -> Any:
    """Make large files out of a table's small ones. Arguments: table, target_bytes, retention_hours, dry_run."""
    _check(arguments, {"table": str, "target_bytes": int, "retention_hours": int, "dry_run": bool})
    result = place.tables.compact(
        _table(arguments),
        target_bytes=arguments.get("target_bytes", TARGET_BYTES),
        retention_hours=arguments.get("retention_hours", 168),
        dry_run=arguments.get("dry_run", False),
    )
    return msgspec.to_builtins(result)


def expire(place: TopicPartition, arguments: Arguments) -> Any:
    """Remove a table's old rows. Arguments: table, older_than_ms, column, dry_run."""
    _check(arguments, {"table": str, "older_than_ms": int, "column": str, "dry_run": bool}, "older_than_ms")
    result = place.tables.expire(
        _table(arguments),
        arguments["older_than_ms"],
        column=arguments.get("column", TIMESTAMP_COLUMN),
        dry_run=arguments.get("dry_run", False),
    )
    return msgspec.to_builtins(result)


def remove_range(place: TopicPartition, arguments: Arguments) -> Any:
    """Remove what came from a range of offsets. Arguments: table, topic, partition, first, last, dry_run."""
    kinds = {"table": str, "topic": str, "partition": int, "first": int, "last": int, "dry_run": bool}
    _check(arguments, kinds, "topic", "partition", "first", "last")
    result = place.tables.remove_range(
        _table(arguments),
        arguments["topic"],
        partition=arguments["partition"],
        first=arguments["first"],
        last=arguments["last"],
        dry_run=arguments.get("dry_run", False),
    )
    return msgspec.to_builtins(result)


def recover(place: TopicPartition, arguments: Arguments) -> Any:
    """Finish a table's interrupted upkeep. Arguments: table."""
    _check(arguments, {"table": str})
    return {"exchanges": place.tables.recover(TableSpec(name=_table(arguments)))}


def _table(arguments: Arguments) -> str:
    if not arguments.get("table"):
        raise WrongOption("table", arguments.get("table"), "the name of a table")
    return str(arguments["table"])


def _check(arguments: Arguments, kinds: Mapping[str, type], *required: str) -> None:
    for key, value in arguments.items():
        kind = kinds.get(key)
        if kind is None:
            raise WrongOption(key, value, f"one of {', '.join(kinds) or 'no arguments'}")
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise WrongOption(key, value, f"a value of type {kind.__name__}")
    for key in required:
        if key not in arguments:
            raise WrongOption(key, None, "must be given")
