"""Readers of each format, which read files in chunks of records.

A reader skips the first `skip` entries of a file. An entry is a line, a row or a record, whether it can be read or not,
so that their number shows how far a file has been read.
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Protocol

import msgspec

from connect.api.data import STRING, Schema, Value
from connect.api.errors import DataError
from connectors.file.columns import column_reader
from connectors.file.config import DirectorySourceConfig


class Bad(NamedTuple):
    """An entry that cannot become a record."""

    data: bytes
    error: DataError


class Chunk(NamedTuple):
    """Some entries of a file; `bad` has the indices of entries without a value: why, or None for an empty line."""

    schema: Schema | None
    values: list[Value]
    bad: Mapping[int, Bad | None]


class Reader(Protocol):
    """Reads files of one format."""

    def __call__(self, path: Path, config: DirectorySourceConfig, *, skip: int) -> Iterator[Chunk]:
        """The entries after the first `skip`; DataError when the file cannot be read at all."""
        ...


def read_json(path: Path, config: DirectorySourceConfig, *, skip: int) -> Iterator[Chunk]:
    """A JSON value per line, without a schema."""
    decode = msgspec.json.Decoder().decode
    with path.open("rb") as stream:
        for lines in _lines(stream, config, skip):
            try:
                yield Chunk(None, [decode(line) for line in lines], {})
            except (msgspec.DecodeError, UnicodeDecodeError):
                yield _one_by_one(None, lines, decode)


def read_text(path: Path, config: DirectorySourceConfig, *, skip: int) -> Iterator[Chunk]:
    """A line per record."""
    with path.open("rb") as stream:
        for lines in _lines(stream, config, skip):
            try:
                yield Chunk(STRING, [str(line, "utf-8").rstrip("\r\n") for line in lines], {})
            except UnicodeDecodeError:
                yield _one_by_one(STRING, lines, lambda line: str(line, "utf-8").rstrip("\r\n"))


def read_csv(path: Path, config: DirectorySourceConfig, *, skip: int) -> Iterator[Chunk]:
    """A row per record: a struct of text, or of the configured types."""
    # The limit is that of the whole process, so it is never lowered.
    csv.field_size_limit(max(csv.field_size_limit(), config.line_max_bytes))
    with path.open("rb") as raw, io.TextIOWrapper(raw, "utf-8-sig", errors="replace", newline="") as stream:
        rows = csv.reader(stream, delimiter=config.separator, quotechar=config.csv_quote, strict=True)
        try:
            header = next(rows, None) if config.csv_header else None
        except csv.Error as error:
            raise DataError(f"the header of {path.name} cannot be read: {error}") from error
        names = list(config.csv_columns) or header
        if names is None:
            return
        read_row = column_reader(names, config)
        entries = _csv_entries(rows)
        _drop(entries, skip)
        while chunk := list(islice(entries, config.batch_size)):
            yield _csv_values(read_row.schema, read_row.read, chunk)


def read_parquet(path: Path, config: DirectorySourceConfig, *, skip: int) -> Iterator[Chunk]:
    """A row per record, with the schema of the columns."""
    import pyarrow as pa
    from pyarrow import parquet

    from connect.api.columns import brought_to, connect_schema

    try:
        with parquet.ParquetFile(path) as file:
            schema, columns = connect_schema(file.schema_arrow)
            rows_of_groups = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
            groups, skip = _groups_behind(rows_of_groups, skip)
            for batch in file.iter_batches(batch_size=config.batch_size, row_groups=groups):
                rows = batch.slice(min(skip, batch.num_rows))
                skip -= batch.num_rows - rows.num_rows
                if rows.num_rows:
                    yield Chunk(schema, brought_to(columns, rows).to_pylist(maps_as_pydicts="strict"), {})
    except (pa.ArrowException, ValueError, KeyError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # An error of the disk, not of the file.
        raise DataError(f"{path.name} is not a readable Parquet file: {error}") from error


def read_avro(path: Path, config: DirectorySourceConfig, *, skip: int) -> Iterator[Chunk]:
    """A record per record, with the schema of the file."""
    import fastavro

    from connectors.file.avro_schemas import connect_schema

    with path.open("rb") as stream:
        try:
            records = fastavro.reader(stream)
            schema, fit = connect_schema(records.writer_schema)
            _drop(records, skip)
            while values := list(islice(records, config.batch_size)):
                yield Chunk(schema, values if fit is None else list(map(fit, values)), {})
        except (ValueError, EOFError, KeyError, IndexError, TypeError) as error:
            raise DataError(f"{path.name} is not a readable Avro container file: {error}") from error


READERS: Final[dict[str, Reader]] = {
    "json": read_json,
    "text": read_text,
    "csv": read_csv,
    "parquet": read_parquet,
    "avro": read_avro,
}
"""The reader of each format."""


def _lines(stream: BinaryIO, config: DirectorySourceConfig, skip: int) -> Iterator[list[bytes]]:
    limit = config.line_max_bytes
    lines = iter(partial(stream.readline, limit + 2), b"")
    _drop(lines, skip)
    while chunk := list(islice(lines, config.batch_size)):
        if len(max(chunk, key=len)) > limit + 1:
            raise DataError(f"a line is longer than line.max.bytes={limit}")
        yield chunk


def _drop(entries: Iterator[object], count: int) -> None:
    next(islice(entries, count, count), None)


def _one_by_one(schema: Schema | None, lines: list[bytes], decode: Callable[[bytes], Value]) -> Chunk:
    values: list[Value] = []
    bad: dict[int, Bad | None] = {}
    for index, line in enumerate(lines):
        try:
            values.append(decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            values.append(None)
            bad[index] = Bad(line, DataError(f"a line cannot be read: {error}")) if line.strip() else None
    return Chunk(schema, values, bad)


_Row = list[str] | csv.Error


def _csv_entries(rows: Iterator[list[str]]) -> Iterator[_Row]:
    """Rows, and an error for each row that cannot be split. Empty lines are not rows."""
    while True:
        try:
            for row in rows:
                if row:
                    yield row
            return
        except csv.Error as error:
            yield error


def _csv_values(schema: Schema, read: Callable[[list[str]], Value], rows: list[_Row]) -> Chunk:
    values: list[Value] = []
    bad: dict[int, Bad] = {}
    for index, row in enumerate(rows):
        try:
            if isinstance(row, csv.Error):
                raise DataError(f"a row cannot be read: {row}")
            values.append(read(row))
        except DataError as error:
            values.append(None)
            shown = "" if isinstance(row, csv.Error) else ",".join(row)
            bad[index] = Bad(shown.encode("utf-8", "surrogatepass"), error)
    return Chunk(schema, values, bad)


def _groups_behind(rows_of_groups: list[int], skip: int) -> tuple[list[int], int]:
    """The row groups after those that are skipped as a whole, and how many of their rows to skip."""
    first = 0
    while first < len(rows_of_groups) and skip >= rows_of_groups[first]:
        skip -= rows_of_groups[first]
        first += 1
    return list(range(first, len(rows_of_groups))), skip
