"""A summary of a table: its columns, its files, and its rows if counting them is cheap."""

from typing import Final

import pyarrow as pa

from streams.spark.files import Files
from streams.spark.tables.catalog import CatalogEntry
from streams.spark.tables.layout import data_files
from streams.spark.tables.model import TableInfo
from streams.spark.tables.parquet_files import count_rows
from streams.spark.types import ddl_type

# Reading a footer takes about half a millisecond on a local disk.
_FOOTERS_MAX: Final = 2000


def table_info(files: Files, entry: CatalogEntry) -> TableInfo:
    """The summary of a table."""
    if entry.provider == "delta":
        return _delta_info(entry)
    found = data_files(files, entry.location)
    is_cheap = entry.provider == "parquet" and len(found) <= _FOOTERS_MAX and files.local(entry.location) is not None
    return TableInfo(
        name=entry.name,
        format=entry.provider,
        columns=_columns(entry),
        partitioned_by=entry.partition_by,
        location=entry.location,
        files=len(found),
        bytes=sum(file.size for file in found),
        rows=count_rows(files, found) if is_cheap else None,
        changed_ms=max((file.modified_ms for file in found), default=None),
    )


def _delta_info(entry: CatalogEntry) -> TableInfo:
    from deltalake import DeltaTable

    from streams.spark.tables.delta_table import arrow_schema, delta_uri

    uri = delta_uri(entry.location)
    table = DeltaTable(uri) if DeltaTable.is_deltatable(uri) else None
    actions = None if table is None else pa.table(table.get_add_actions(flatten=True))
    rows = [] if actions is None else actions.column("num_records").to_pylist()
    history = [] if table is None else table.history(1)
    return TableInfo(
        name=entry.name,
        format=entry.provider,
        columns=_columns(entry) if table is None else {f.name: ddl_type(f.type) for f in arrow_schema(table)},
        partitioned_by=() if table is None else tuple(table.metadata().partition_columns),
        location=entry.location,
        files=len(rows),
        bytes=0 if actions is None else sum(actions.column("size_bytes").to_pylist()),
        rows=None if any(count is None for count in rows) else sum(rows),
        changed_ms=history[0]["timestamp"] if history else None,
    )


def _columns(entry: CatalogEntry) -> dict[str, str]:
    try:
        return {field.name: ddl_type(field.type) for field in entry.schema}
    except TypeError:
        return {field["name"]: str(field["type"]) for field in entry.fields}
