"""What is known about the tables of the catalog without reading their rows."""

from typing import TYPE_CHECKING, Any

import msgspec

from streams.spark.engine.job import EnginePlace
from streams.spark.engine.messages import JSON

if TYPE_CHECKING:
    from streams.spark.tables import TableInfo


def inventory(place: EnginePlace, database: str | None) -> list[JSON]:
    """Every table of a database, or of all of them."""
    found = sorted(place.tables.tables(), key=lambda info: info.name)
    return [msgspec.to_builtins(info) for info in found if database is None or _database(info) == database]


def described(place: EnginePlace, table: str) -> JSON:
    """One table, or view, with its columns in their order."""
    # Spark's own word on what is not there, and on what a name means.
    fields = place.session.table(table).schema.fields
    columns = {field.name: field.dataType.simpleString() for field in fields}
    info = _found(place, table)
    facts: dict[str, Any] = {"name": table, "format": "view"} if info is None else msgspec.to_builtins(info)
    return {**facts, "columns": columns}


def _found(place: EnginePlace, table: str) -> "TableInfo | None":
    from streams.spark.tables.catalog import Catalog
    from streams.spark.tables.overview import table_info

    entry = Catalog(place.session).find(table)
    return None if entry is None else table_info(place.files, entry)


def _database(info: "TableInfo") -> str:
    return info.name.rpartition(".")[0] or "default"
