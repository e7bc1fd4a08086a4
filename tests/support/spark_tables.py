"""Tables of a Spark sink, read by others than us (pyarrow, delta-rs), and compared with what must be in them."""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as pads
from deltalake import DeltaTable

from tests.support.spark_records import Place

Row = dict[str, Any]
PLACE_COLUMNS: Final = ("_topic", "_partition", "_offset")
_SHOWN_MAX: Final = 10


def parquet_rows(folder: Path, *, partitions: pa.Schema | None = None) -> list[Row]:
    """All rows of a folder of parquet files, each with the columns that its file and the names of its folders have.

    Hidden files and folders do not count; `partitions` are the types of the columns that folders tell.
    """
    if not folder.exists():
        return []
    rows: list[Row] = []
    folders = pads.partitioning(partitions, flavor="hive") if partitions is not None else "hive"
    dataset = pads.dataset(folder, format="parquet", partitioning=folders, exclude_invalid_files=False)
    for fragment in dataset.get_fragments():
        partition = pads.get_partition_keys(fragment.partition_expression)
        rows += ({**row, **partition} for row in _listed(fragment.to_table(schema=fragment.physical_schema)))
    return rows


def delta_rows(folder: Path) -> list[Row]:
    """All rows of a Delta table."""
    if not DeltaTable.is_deltatable(str(folder)):
        return []
    return _listed(pa.table(DeltaTable(str(folder)).to_pyarrow_table()))


def table_rows(folder: Path) -> list[Row]:
    """All rows of a table of either format."""
    return delta_rows(folder) if (folder / "_delta_log").exists() else parquet_rows(folder)


def _listed(table: pa.Table) -> list[Row]:
    return [{name: _plain(value) for name, value in row.items()} for row in table.to_pylist()]


def _plain(value: Any) -> Any:
    """Maps are lists of pairs in Arrow, and moments have the zone that the file says."""
    if isinstance(value, list) and value and all(isinstance(item, tuple) for item in value):
        return dict(value)
    return value.astimezone(dt.UTC) if isinstance(value, dt.datetime) else value


def place_of(row: Mapping[str, Any]) -> Place:
    """Where a row comes from, by its columns of metadata."""
    return Place(*(row[column] for column in PLACE_COLUMNS))


def places(rows: Iterable[Mapping[str, Any]]) -> "Counter[Place]":
    """How often each record is there."""
    return Counter(place_of(row) for row in rows)


def differences(
    rows: Iterable[Mapping[str, Any]], wanted: Mapping[Place, Mapping[str, Any]], *, ignored: Sequence[str] = ()
) -> list[str]:
    """What is wrong with a table: rows lost, doubled, not asked for, and columns with other values.

    Columns that rows have beyond those of `wanted` must be metadata (`_…`), or named in `ignored`.
    """
    rows = list(rows)
    found = {place_of(row): row for row in rows}
    counts = places(rows)
    problems = _listing("lost", [place for place in wanted if place not in counts])
    problems += _listing("doubled", [place for place, count in counts.items() if count > 1])
    problems += _listing("not sent, or bad", [place for place in counts if place not in wanted])
    wrong = [
        f"{place}: {what}"
        for place, row in found.items()
        if place in wanted
        for what in _wrong_columns(row, wanted[place], ignored)
    ]
    return problems + _listing("different", wrong)


def _wrong_columns(row: Mapping[str, Any], wanted: Mapping[str, Any], ignored: Sequence[str]) -> list[str]:
    unknown = [
        f"column {name} was not asked for"
        for name in row
        if name not in wanted and name not in ignored and not name.startswith("_")
    ]
    return unknown + [
        f"{name} is {row.get(name)!r}, not {value!r}"
        for name, value in wanted.items()
        if not is_same(row.get(name), value)
    ]


def is_same(found: Any, wanted: Any) -> bool:
    """Whether two values are equal, and of the same type as far as tables tell."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(is_same(found.get(name), wanted[name]) for name in {*wanted, *found})
    if isinstance(wanted, list | tuple):
        return (
            isinstance(found, list | tuple)
            and len(found) == len(wanted)
            and all(is_same(one, other) for one, other in zip(found, wanted, strict=True))
        )
    if isinstance(wanted, bool | int | float | str | bytes | Decimal | dt.date):
        return type(found) is type(wanted) and bool(found == wanted)
    return bool(found == wanted)


def _listing(what: str, items: Sequence[object]) -> list[str]:
    return [f"{what}: {len(items)}, as {item}" for item in items[:_SHOWN_MAX]]
