"""What is known about the tables of the catalog without reading their rows."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from streams.spark.engine.job import EnginePlace
from streams.spark.engine.messages import JSON

if TYPE_CHECKING:
    from pathlib import Path

    from streams.spark.files import FileInfo, Files

_FILES_MAX: Final = 20_000
"""Of a table with more of them, files are no longer counted to the end."""
_FOOTERS_MAX: Final = 200
"""Rows are counted from the ends of so many files; more of them would take too long to open."""
_DELTA_LOG: Final = "_delta_log"


class Holding(msgspec.Struct, kw_only=True):
    """How much a table holds; None for what would be dear to find out."""

    files: int = 0
    bytes: int = 0
    rows: int | None = None
    partitions: int = 0
    changed_ms: int | None = None
    is_counted: bool = True


def inventory(place: EnginePlace, database: str | None) -> list[JSON]:
    """Every table of a database, or of all of them."""
    catalog = place.session.catalog
    databases = [database] if database else [found.name for found in catalog.listDatabases()]
    names = [(base, table.name) for base in databases for table in catalog.listTables(base) if not table.isTemporary]
    return [_summary(place, base, name) for base, name in sorted(names)]


def described(place: EnginePlace, table: str) -> JSON:
    """One table with its columns."""
    facts = _facts(place, table)
    database, name = facts.get("namespace", ["default"])[-1], facts.get("table_name", table)
    columns = [
        {"name": column["name"], "type": _type_text(column["type"]), "comment": column.get("comment", "")}
        for column in facts.get("columns", [])
    ]
    return {
        **_told(database, name, facts, _holding(place, facts)),
        "columns": columns,
        "properties": facts.get("table_properties", {}),
        "owner": facts.get("owner"),
        "created": facts.get("created_time"),
    }


def _summary(place: EnginePlace, database: str, name: str) -> JSON:
    facts = _facts(place, f"{_quoted(database)}.{_quoted(name)}")
    return _told(database, name, facts, _holding(place, facts))


def _told(database: str, name: str, facts: dict[str, Any], holding: Holding) -> JSON:
    return {
        "name": name if database == "default" else f"{database}.{name}",
        "format": facts.get("provider") or facts.get("type", "").lower(),
        "rows": holding.rows,
        "files": holding.files,
        "bytes": holding.bytes,
        "partitions": holding.partitions,
        "partition_columns": facts.get("partition_columns", []),
        "location": facts.get("location"),
        "changed_ms": holding.changed_ms,
        "is_counted": holding.is_counted,
    }


def _facts(place: EnginePlace, table: str) -> dict[str, Any]:
    rows = place.session.sql(f"DESCRIBE TABLE EXTENDED {table} AS JSON").collect()
    found: dict[str, Any] = json.loads(rows[0][0])
    return found


def _holding(place: EnginePlace, facts: dict[str, Any]) -> Holding:
    location = facts.get("location")
    if not location or facts.get("type") == "VIEW":
        return Holding()
    local = place.files.local(location)
    if local is not None and (local / _DELTA_LOG).is_dir():
        return _of_delta(local)
    return _of_files(place.files, location, is_parquet=(facts.get("provider") or "").lower() == "parquet")


def _of_delta(path: "Path") -> Holding:
    """What the table's own log says: files that were replaced are still on disk, but no longer part of it."""
    import pyarrow as pa
    from deltalake import DeltaTable

    table = DeltaTable(str(path))
    actions = pa.table(table.get_add_actions(flatten=True)).to_pydict()
    sizes, rows = actions.get("size_bytes", []), actions.get("num_records", [])
    values = zip(*(actions[name] for name in actions if name.startswith("partition.")), strict=True)
    return Holding(
        files=len(sizes),
        bytes=sum(sizes),
        rows=None if None in rows else sum(rows),
        partitions=len(set(values)),
        changed_ms=table.history(1)[0].get("timestamp"),
    )


def _of_files(files: "Files", location: str, *, is_parquet: bool) -> Holding:
    holding, parquet, folders = Holding(), [], set()
    for found in _walked(files, location):
        if holding.files >= _FILES_MAX:
            holding.is_counted = False
            break
        holding.files += 1
        holding.bytes += found.size
        holding.changed_ms = max(found.modified_ms, holding.changed_ms or 0)
        folders.add(found.path.rpartition("/")[0])
        parquet.append(found.path)
    holding.partitions = sum("=" in folder.rpartition("/")[2] for folder in folders)
    holding.rows = _rows(files, parquet) if is_parquet and holding.is_counted else None
    return holding


def _walked(files: "Files", path: str) -> Iterator["FileInfo"]:
    """The data files below a folder; what begins with `_` or `.` is somebody's notes, for Spark as for us."""
    for found in files.list(path):
        if found.name.startswith(("_", ".")):
            continue
        if found.is_dir:
            yield from _walked(files, found.path)
        else:
            yield found


def _rows(files: "Files", paths: list[str]) -> int | None:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_metadata

    local = [files.local(path) for path in paths[: _FOOTERS_MAX + 1]]
    if len(local) > _FOOTERS_MAX or None in local:
        return None
    try:
        return sum(int(read_metadata(path).num_rows) for path in local)
    except (OSError, ArrowException):
        return None  # it is being written, or taken away, this very moment


def _type_text(type_: Any) -> str:
    """A type of the description as SQL writes it."""
    match type_:
        case {"name": "struct", "fields": fields}:
            inner = ",".join(f"{field['name']}:{_type_text(field['type'])}" for field in fields)
            return f"struct<{inner}>"
        case {"name": "array", "element_type": element}:
            return f"array<{_type_text(element)}>"
        case {"name": "map", "key_type": key, "value_type": value}:
            return f"map<{_type_text(key)},{_type_text(value)}>"
        case {"name": "decimal", "precision": precision, "scale": scale}:
            return f"decimal({precision},{scale})"
        case {"name": name}:
            return {"timestamp_ltz": "timestamp"}.get(name, str(name))
        case _:
            return str(type_)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
