"""Operations that every engine has: statements of SQL, a look at the tables, and their upkeep."""

from typing import TYPE_CHECKING, Any, Final

from streams.errors import WrongOption
from streams.spark.engine.inventory import described, inventory
from streams.spark.engine.job import EnginePlace, Operation
from streams.spark.engine.messages import JSON
from streams.spark.engine.values import plain
from streams.spark.tables import operations as upkeep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LIMIT_MAX: Final = 1_000_000
_LIMIT: Final = 1000


def sql(place: EnginePlace, arguments: dict[str, Any]) -> JSON:
    """Run a statement: its columns with their types, at most `limit` rows, and whether there were more."""
    statement = text_of(arguments, "statement").strip().rstrip(";")
    limit = number_of(arguments, "limit", default=_LIMIT, maximum=LIMIT_MAX)
    frame = place.session.sql(statement)
    if frame.isStreaming:
        raise WrongOption("statement", statement[:100], "it reads a stream, which has no end: read a table")
    rows = _rows(frame, limit)
    columns = [{"name": field.name, "type": field.dataType.simpleString()} for field in frame.schema.fields]
    return {"columns": columns, "rows": rows[:limit], "truncated": len(rows) > limit}


def tables(place: EnginePlace, arguments: dict[str, Any]) -> JSON:
    """All tables of the catalog with what is cheaply known about them."""
    database = arguments.get("database")
    return inventory(place, None if database is None else text_of(arguments, "database"))


def describe(place: EnginePlace, arguments: dict[str, Any]) -> JSON:
    """One table: its columns, partitions, properties and size."""
    return described(place, text_of(arguments, "table"))


OPERATIONS: Final[dict[str, Operation]] = {
    "compact": upkeep.compact,
    "describe": describe,
    "expire": upkeep.expire,
    "recover": upkeep.recover,
    "remove-range": upkeep.remove_range,
    "sql": sql,
    "tables": tables,
}


def text_of(arguments: dict[str, Any], key: str) -> str:
    """An argument that must be a text that says something."""
    value = arguments.get(key)
    if not isinstance(value, str) or not value.strip():
        raise WrongOption(key, value, "must be a text")
    return value


def number_of(arguments: dict[str, Any], key: str, *, default: int, maximum: int) -> int:
    """An argument that must be a whole number from 0 to a maximum."""
    value = arguments.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= maximum:
        raise WrongOption(key, value, f"must be a whole number from 0 to {maximum}")
    return value


def _rows(frame: "DataFrame", limit: int) -> list[list[JSON]]:
    """One row more than the limit tells that there are more."""
    return [[plain(value) for value in row] for row in frame.limit(limit + 1).collect()] if frame.columns else []
