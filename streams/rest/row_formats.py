"""How rows are written into a response, by its media type."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from typing_extensions import override

from streams.model.types import quoted
from streams.rest.media_types import DELIMITED, JSON, V1_JSON
from streams.server.errors import ServiceError
from streams.server.row_streams import Batch, RowStream

encode: Final = msgspec.json.Encoder(decimal_format="number").encode
"""Writes JSON; decimals are numbers."""


class RowFormat(ABC):
    """One way of writing rows."""

    media_type: bytes

    @abstractmethod
    def begin(self, rows: RowStream) -> bytes:
        """What stands before the first row."""

    @abstractmethod
    def write(self, batch: Batch) -> bytes:
        """Rows."""

    @abstractmethod
    def fail(self, error: ServiceError) -> bytes:
        """An error after the beginning; `end` follows."""

    @abstractmethod
    def end(self, rows: RowStream | None) -> bytes:
        """What stands behind the last row; None after an error."""


class Delimited(RowFormat):
    """A JSON document per line: the columns, and then each row."""

    media_type = DELIMITED

    @override
    def begin(self, rows: RowStream) -> bytes:
        return encode(_columns(rows)) + b"\n"

    @override
    def write(self, batch: Batch) -> bytes:
        return b"".join(encode(row) + b"\n" for row in batch.rows)

    @override
    def fail(self, error: ServiceError) -> bytes:
        return encode(error.body()) + b"\n"

    @override
    def end(self, rows: RowStream | None) -> bytes:
        return b""


class JsonArray(RowFormat):
    """One JSON array: the columns, and then each row."""

    media_type = JSON

    @override
    def begin(self, rows: RowStream) -> bytes:
        return b"[" + encode(_columns(rows))

    @override
    def write(self, batch: Batch) -> bytes:
        return b"".join(b",\n" + encode(row) for row in batch.rows)

    @override
    def fail(self, error: ServiceError) -> bytes:
        return b",\n" + encode(error.body())

    @override
    def end(self, rows: RowStream | None) -> bytes:
        return b"]\n"


class StreamedRows(RowFormat):
    """One JSON array of objects that say what they are: ksqlDB's first format, which its CLI reads."""

    def __init__(self, media_type: bytes = V1_JSON) -> None:
        self.media_type = media_type

    @override
    def begin(self, rows: RowStream) -> bytes:
        return b"[" + encode({"header": {"queryId": rows.query_id, "schema": schema_of(rows)}})

    @override
    def write(self, batch: Batch) -> bytes:
        return b"".join(b",\n" + encode(row) for row in row_objects(batch))

    @override
    def fail(self, error: ServiceError) -> bytes:
        return b",\n" + encode({"errorMessage": error.body()})

    @override
    def end(self, rows: RowStream | None) -> bytes:
        final = final_message(rows)
        return b"]\n" if final is None else b",\n" + encode({"finalMessage": final}) + b"]\n"


class PlainLines(RowFormat):
    """The lines of a PRINT, whatever the client has asked for."""

    media_type = DELIMITED

    @override
    def begin(self, rows: RowStream) -> bytes:
        return b""

    @override
    def write(self, batch: Batch) -> bytes:
        return "".join(f"{line}\n" for (line,) in batch.rows).encode()

    @override
    def fail(self, error: ServiceError) -> bytes:
        return encode(error.body()) + b"\n"

    @override
    def end(self, rows: RowStream | None) -> bytes:
        return b""


def row_objects(batch: Batch) -> Iterable[dict[str, Any]]:
    """Rows as objects; those that delete say so."""
    for number, row in enumerate(batch.rows):
        is_tombstone = bool(batch.tombstones) and batch.tombstones[number]
        columns: dict[str, Any] = {"columns": row}
        yield {"row": {**columns, "tombstone": True} if is_tombstone else columns}


def schema_of(rows: RowStream) -> str:
    """The columns as SQL declares them."""
    return ", ".join(
        f"{quoted(column.name)} {column.type}{' KEY' if number < rows.key_columns else ''}"
        for number, column in enumerate(rows.columns)
    )


def final_message(rows: RowStream | None) -> str | None:
    """Why a push query has ended; None for a pull query, and after an error."""
    if rows is None or rows.kind != "push":
        return None
    return "Limit Reached" if rows.has_reached_limit else "Query Completed"


def _columns(rows: RowStream) -> dict[str, Any]:
    return {
        "queryId": rows.query_id,
        "columnNames": [column.name for column in rows.columns],
        "columnTypes": [column.type for column in rows.columns],
    }
