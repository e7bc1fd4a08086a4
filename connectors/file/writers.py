"""Writers of each format.

Records are encoded first, which may fail; what was encoded is then added to a file, which cannot fail.
"""

import base64
import csv
import datetime as dt
import io
import os
import zlib
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
from typing_extensions import override

from connect.api.checking import checker_of
from connect.api.data import Schema, Type, Value
from connect.api.errors import DataError
from connect.api.record import SinkRecord
from connect.api.values import text_of
from connectors.file.config import DirectorySinkConfig
from connectors.file.spool import Spool

_CACHE_MAX: Final = 1_000
_ROW_GROUP_ROWS: Final = 50_000
_ROW_GROUP_BYTES: Final = 32 << 20


class Body:
    """The content of a file that is being written: one encoded part after the other, unless overridden."""

    def __init__(self, spool: Spool, head: bytes = b"") -> None:
        self.spool = spool
        self.spool.write(head)

    def add(self, encoded: Any) -> None:
        """Add what `Format.encode` returned."""
        self.spool.write(encoded)

    def end(self) -> None:
        """Finish the content."""

    @property
    def size(self) -> int:
        """About how many bytes there are."""
        return self.spool.tell()

    @property
    def pending(self) -> int:
        """How many of them are in memory, besides those of the spool."""
        return 0


class Format:
    """A line of text for each record, unless overridden."""

    extension = "txt"

    def __init__(self, config: DirectorySinkConfig) -> None:
        self.config = config

    def shape(self, record: SinkRecord) -> Hashable:  # noqa: ARG002 - used by other formats
        """What all records of a file must have in common; DataError when the format cannot hold the record."""
        return None

    def encode(self, shape: Any, records: Sequence[SinkRecord]) -> Any:  # noqa: ARG002 - used by other formats
        """Encode records of one shape; raises DataError."""
        lines = [text_of(record.value_schema, record.value) for record in records]
        return "\n".join([*lines, ""]).encode("utf-8", "surrogatepass")

    def body(self, shape: Any, spool: Spool) -> Body:  # noqa: ARG002 - used by other formats
        """The content of a new file."""
        return Body(spool)


class JsonFormat(Format):
    """A JSON value per line: times as ISO 8601, decimals as text, bytes as base64."""

    extension = "json"
    _encoder: Final = msgspec.json.Encoder()

    @override
    def encode(self, shape: Any, records: Sequence[SinkRecord]) -> bytes:
        try:
            return self._encoder.encode_lines([record.value for record in records])
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise DataError(f"a value cannot be written as JSON: {error}") from error


class CsvFormat(Format):
    """A row per record, with nested values as JSON. Records with other columns begin another file."""

    extension = "csv"

    @override
    def shape(self, record: SinkRecord) -> Hashable:
        if record.value_schema is not None and record.value_schema.type is Type.STRUCT:
            return tuple(record.value_schema.by_name)
        if record.value_schema is None and type(record.value) is dict:
            return tuple(map(str, record.value))
        raise DataError("a CSV row needs columns: the value must be a struct, or an object without a schema")

    @override
    def encode(self, shape: Any, records: Sequence[SinkRecord]) -> bytes:
        try:
            return self._rows([[_cell(record.value.get(name)) for name in shape] for record in records])
        except (TypeError, ValueError, csv.Error) as error:
            raise DataError(f"a value cannot be written as CSV: {error}") from error

    @override
    def body(self, shape: Any, spool: Spool) -> Body:
        return Body(spool, self._rows([shape]) if self.config.csv_header else b"")

    def _rows(self, rows: Sequence[Sequence[str]]) -> bytes:
        text = io.StringIO(newline="")
        separator, quote = self.config.separator, self.config.csv_quote
        csv.writer(text, delimiter=separator, quotechar=quote, lineterminator="\n").writerows(rows)
        return text.getvalue().encode("utf-8", "surrogatepass")


def _cell(value: Value) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case bytes():
            return base64.b64encode(value).decode()
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case dict() | list() | tuple():
            return msgspec.json.encode(value).decode()
        case _:
            return str(value)


class AvroFormat(Format):
    """Avro container files, with a block for each batch. Another schema begins another file."""

    extension = "avro"

    def __init__(self, config: DirectorySinkConfig) -> None:
        super().__init__(config)
        self._schema = lru_cache(_CACHE_MAX)(_parse_avro)

    @override
    def shape(self, record: SinkRecord) -> Hashable:
        if record.value_schema is None:
            raise DataError("an Avro file needs a schema: use a converter that provides one, or format=json")
        return record.value_schema

    @override
    def encode(self, shape: Schema, records: Sequence[SinkRecord]) -> tuple[int, bytes]:
        import fastavro

        parsed, check, data = self._schema(shape), checker_of(shape), io.BytesIO()
        try:
            for record in records:
                check(record.value, "")
                fastavro.schemaless_writer(data, parsed, record.value)
        except (TypeError, ValueError, KeyError, OverflowError, AttributeError) as error:
            raise DataError(f"a value cannot be written as Avro: {error}") from error
        return len(records), data.getvalue()

    @override
    def body(self, shape: Schema, spool: Spool) -> Body:
        return _AvroBlocks(spool, self._schema(shape), self.config.compression)


def _parse_avro(schema: Schema) -> Any:
    import fastavro
    from fastavro.schema import SchemaParseException

    from connectors.file.avro_schemas import avro_schema

    try:
        return fastavro.parse_schema(avro_schema(schema))
    except (SchemaParseException, ValueError) as error:
        raise DataError(f"the schema has no counterpart in Avro: {error}") from error


class _AvroBlocks(Body):
    """https://avro.apache.org/docs/1.12.0/specification/#object-container-files"""

    def __init__(self, spool: Spool, schema: Any, compression: str) -> None:
        import fastavro

        self._deflates = compression == "deflate"
        self._sync = os.urandom(16)
        head = io.BytesIO()
        codec = "deflate" if self._deflates else "null"
        fastavro.writer(head, schema, [], codec=codec, sync_marker=self._sync)
        super().__init__(spool, head.getvalue())

    @override
    def add(self, encoded: tuple[int, bytes]) -> None:
        count, data = encoded
        if self._deflates:
            compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
            data = compressor.compress(data) + compressor.flush()
        self.spool.write(_long(count) + _long(len(data)) + data + self._sync)


def _long(number: int) -> bytes:
    """A number, not negative, in Avro's encoding."""
    number <<= 1
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


class ParquetFormat(Format):
    """Parquet files. Another schema begins another file."""

    extension = "parquet"

    def __init__(self, config: DirectorySinkConfig) -> None:
        from connect.api.columns import arrow_schema

        super().__init__(config)
        self._schema = lru_cache(_CACHE_MAX)(arrow_schema)

    @override
    def shape(self, record: SinkRecord) -> Hashable:
        if record.value_schema is None:
            raise DataError("a Parquet file needs a schema: use a converter that provides one, or format=json")
        return record.value_schema

    @override
    def encode(self, shape: Schema, records: Sequence[SinkRecord]) -> Any:
        import pyarrow as pa

        from connect.api.columns import value_change

        columns, check, change = self._schema(shape), checker_of(shape), value_change(shape)
        values = [record.value for record in records]
        for value in values:
            check(value, "")
        try:
            if change is not None:
                values = list(map(change, values))
            return pa.RecordBatch.from_pylist(values, schema=columns)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"a value cannot be written as Parquet: {error}") from error

    @override
    def body(self, shape: Schema, spool: Spool) -> Body:
        return _RowGroups(spool, self._schema(shape), self.config.compression)


class _RowGroups(Body):
    """Batches are collected in memory until they make a row group."""

    def __init__(self, spool: Spool, columns: Any, compression: str) -> None:
        from pyarrow import parquet

        super().__init__(spool)
        self._columns = columns
        self._pending: list[Any] = []
        self._pending_bytes = 0
        self._pending_rows = 0
        self._writer = parquet.ParquetWriter(spool, columns, compression=compression)

    @override
    def add(self, encoded: Any) -> None:
        self._pending.append(encoded)
        self._pending_bytes += encoded.nbytes
        self._pending_rows += encoded.num_rows
        if self._pending_rows >= _ROW_GROUP_ROWS or self._pending_bytes >= _ROW_GROUP_BYTES:
            self._write()

    @override
    def end(self) -> None:
        self._write()
        self._writer.close()

    @property
    @override
    def size(self) -> int:
        return self.spool.tell() + self._pending_bytes

    @property
    @override
    def pending(self) -> int:
        return self._pending_bytes

    def _write(self) -> None:
        import pyarrow as pa

        if self._pending:
            self._writer.write_table(pa.Table.from_batches(self._pending, schema=self._columns))
        self._pending, self._pending_bytes, self._pending_rows = [], 0, 0


FORMATS: Final[dict[str, type[Format]]] = {
    "json": JsonFormat,
    "csv": CsvFormat,
    "parquet": ParquetFormat,
    "avro": AvroFormat,
    "text": Format,
}
"""The writer of each format."""
