"""Tables of Spark and rows of statements. Values come from outside."""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from deploy.views.text import duration, printable, size

_NUMBERS: Final = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_CELL_CHARACTERS_MAX: Final = 200
Facts = Mapping[str, Any]
"""What the engine answers about a table, or about a statement."""


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


def is_numeric(column: Facts) -> bool:
    """Whether a column of a statement holds numbers."""
    return str(column["type"]).startswith(_NUMBERS)


def cell_text(value: object) -> str:
    """A value in a table, cut to what can be read there."""
    text = printable(_plain(value))
    return text if len(text) <= _CELL_CHARACTERS_MAX else f"{text[:_CELL_CHARACTERS_MAX]}…"


def describe_table(found: Facts, now_ms: int) -> Iterator[tuple[str, object]]:
    """All that is known about a table, but for its columns."""
    yield "Format", found["format"]
    if "location" not in found:
        return  # a view holds nothing
    yield "Rows", "unknown; use SELECT count(*)" if found["rows"] is None else found["rows"]
    yield "Files", found["files"]
    yield "Size", size(found["bytes"])
    yield "Partitioned by", ", ".join(found["partitioned_by"]) or "–"
    yield "Changed", ago(found["changed_ms"], now_ms=now_ms)
    yield "Location", found["location"]


def ago(moment_ms: int | None, *, now_ms: int) -> str:
    """A moment as people say it: `12 s ago`."""
    return "–" if moment_ms is None else f"{duration(max(0, now_ms - moment_ms) // 1000)} ago"


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
