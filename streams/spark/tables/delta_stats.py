"""What Delta's log says about a file so that readers can skip it: rows, bounds and nulls, from the file's footer."""

import datetime as dt
import json
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

# Delta's own writers describe that many columns, too.
_COLUMNS_MAX: Final = 32
_TEXT_CHARACTERS_MAX: Final = 64


def stats(metadata: pq.FileMetaData, schema: pa.Schema) -> str:
    """The JSON text for a file."""
    smallest: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for index in range(metadata.num_columns):
        name = metadata.schema.column(index).path
        # Fields of structs have a longer path; and a name with a dot is none of ours to describe.
        if len(nulls) >= _COLUMNS_MAX or name not in schema.names or "." in name:
            continue
        parts = [metadata.row_group(group).column(index).statistics for group in range(metadata.num_row_groups)]
        if not parts or any(part is None or not part.has_null_count for part in parts):
            continue
        nulls[name] = sum(part.null_count for part in parts)
        found = _bounds(parts)
        if found is not None:
            smallest[name], greatest[name] = found
    content = {"numRecords": metadata.num_rows, "minValues": smallest, "maxValues": greatest, "nullCount": nulls}
    return json.dumps(content)


def _bounds(parts: list[Any]) -> tuple[Any, Any] | None:
    if not all(part.has_min_max for part in parts):
        return None
    low, high = min(part.min for part in parts), max(part.max for part in parts)
    first, last = _value(low), _value(high)
    return None if first is None or last is None else (first, last)


def _value(value: Any) -> Any:
    """A bound as Delta writes it; None for those that are better left out."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        return value if len(value) <= _TEXT_CHARACTERS_MAX else None
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if value.tzinfo else None
    if isinstance(value, dt.date):
        return value.isoformat()
    return None
