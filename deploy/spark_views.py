"""Spark's tables and rows on a terminal. Values come from outside, and are shown without steering the terminal."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from deploy.traces import printable

if TYPE_CHECKING:
    from rich.text import Text

_NUMBERS: Final = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_CELL_CHARACTERS_MAX: Final = 200
_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB")
Facts = Mapping[str, Any]


def print_rows(answer: Facts) -> None:
    """The rows of a statement as a table, numbers to the right."""
    from deploy.output import table

    rows = [[_cell(value) for value in row] for row in answer["rows"]]
    table("", [_head(column) for column in answer["columns"]], rows)


def rows_as_objects(answer: Facts) -> list[dict[str, Any]]:
    """The rows of a statement by the names of its columns."""
    names = [column["name"] for column in answer["columns"]]
    return [dict(zip(names, row, strict=True)) for row in answer["rows"]]


def rows_as_csv(answer: Facts) -> str:
    """The rows of a statement for spreadsheets: a line of names first, empty for what is missing."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow([column["name"] for column in answer["columns"]])
    writer.writerows([_plain(value) for value in row] for row in answer["rows"])
    return written.getvalue()


def print_tables(tables: Iterable[Facts], *, now_ms: int) -> None:
    """All tables, one to a line."""
    from deploy.output import table

    rows = [
        (
            printable(item["name"]),
            item["format"],
            _count(item["rows"]),
            _count(item["files"]),
            size(item["bytes"]),
            printable(", ".join(item["partitioned_by"])) or "–",
            ago(item["changed_ms"], now_ms=now_ms),
        )
        for item in tables
    ]
    table("", ["Table", "Format", "Rows#", "Files#", "Size#", "Partitioned by", "Changed"], rows)


def print_table(found: Facts, *, now_ms: int) -> None:
    """One table: what it is, then its columns."""
    from deploy.output import facts, out, table

    told = [(name, printable(value) if isinstance(value, str) else value) for name, value in _facts(found, now_ms)]
    facts(f"Table {printable(found['name'])}", told)
    out.print()
    partitions = found.get("partitioned_by", [])
    rows = [(name, type_, "yes" if name in partitions else "") for name, type_ in found["columns"].items()]
    table("", ["Column", "Type", "Partition"], [[printable(cell) for cell in row] for row in rows])


def _facts(found: Facts, now_ms: int) -> Iterator[tuple[str, object]]:
    yield "Format", found["format"]
    if "location" not in found:
        return  # a view holds nothing
    yield "Rows", "unknown; SELECT count(*) tells" if found["rows"] is None else found["rows"]
    yield "Files", found["files"]
    yield "Size", size(found["bytes"])
    yield "Partitioned by", ", ".join(found["partitioned_by"]) or "–"
    yield "Changed", ago(found["changed_ms"], now_ms=now_ms)
    yield "Location", found["location"]


def size(count: int) -> str:
    """1536 as `1.5 kB`."""
    amount, unit = float(count), 0
    while amount >= 1000 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{count} B" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"


def ago(moment_ms: int | None, *, now_ms: int) -> str:
    """A moment as people tell it: `12 s ago`."""
    if moment_ms is None:
        return "–"
    seconds = max(0, now_ms - moment_ms) // 1000
    for length, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit} ago"
    return f"{seconds} s ago"


def _head(column: Facts) -> str:
    from rich.markup import escape

    name = escape(printable(column["name"]))
    return f"{name}#" if column["type"].startswith(_NUMBERS) else f"{name} "


def _cell(value: object) -> "str | Text":
    from rich.text import Text

    if value is None:
        return Text("null", style="dim")
    text = printable(_plain(value))
    return text if len(text) <= _CELL_CHARACTERS_MAX else f"{text[:_CELL_CHARACTERS_MAX]}…"


def _plain(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case dict() | list():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"
