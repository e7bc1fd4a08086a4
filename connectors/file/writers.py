"""How files of each format are written.

Encoding comes first and may refuse records; what was encoded is then added to a file, which cannot fail.
"""

import base64
import csv
import datetime as dt
import io
import os
import zlib
from collections.abc import Hashable, Sequence
from typing import Any, Final, Protocol

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


class Body(Protocol):
    """What is inside of a file that is being written."""

    def add(self, encoded: Any) -> None:
        """Add what `Format.encode` gave."""

    def end(self) -> None:
        """Nothing more comes."""

    @property
    def size(self) -> int:
        """About how many bytes there are."""

    @property
    def pending(self) -> int:
        """How many of them are in memory, beside those of the spool."""


class Format:
    """Lines, one for each record; other formats override."""

    extension = "txt"

    def __init__(self, config: DirectorySinkConfig) -> None:
        self.config = config

    def shape(self, record: SinkRecord) -> Hashable:  # noqa: ARG002 - others use it
        """What all records of a file have in common; raises DataError when the record can be in none."""
        return None

    def encode(self, shape: Any, records: Sequence[SinkRecord]) -> Any:  # noqa: ARG002 - others use it
        """Records of one shape; raises DataError."""
        lines = [text_of(record.value_schema, record.value) for record in records]
        return "\n".join([*lines, ""]).encode("utf-8", "surrogatepass")

    def body(self, shape: Any, spool: Spool) -> Body:  # noqa: ARG002 - others use it
        """Begin a file."""
        return _Bytes(spool)


class _Bytes:
    """A file that is one encoded part after the other."""

    def __init__(self, spool: Spool, head: bytes = b"") -> None:
        self.spool = spool
        self.spool.write(head)

    def add(self, encoded: bytes) -> None:
        self.spool.write(encoded)

    def end(self) -> None:
        pass

    @property
    def size(self) -> int:
        return self.spool.tell()

    @property
    def pending(self) -> int:
        return 0


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
    """A row per record; nested values as JSON. Other columns begin another file."""

    extension = "csv"

    @override
    def shape(self, record: SinkRecord) -> Hashable:
        if record.value_schema is not None and record.value_schema.type is Type.STRUCT:
            return tuple(record.value_schema.by_name)
        if record.value_schema is None and type(record.value) is dict:
            return tuple(map(str, record.value))
        raise DataError("a row has columns: the value must be a struct, or a dict without schema")

    @override
    def encode(self, shape: Any, records: Sequence[SinkRecord]) -> bytes:
        try:
            return self._rows([[_cell(record.value.get(name)) for name in shape] for record in records])
        except (TypeError, ValueError, csv.Error) as error:
            raise DataError(f"a value cannot be written as CSV: {error}") from error

    @override
    def body(self, shape: Any, spool: Spool) -> Body:
        return _Bytes(spool, self._rows([shape]) if self.config.csv_header else b"")

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
    """Avro container files: a block for each batch. Another schema begins another file."""

    extension = "avro"

    def __init__(self, config: DirectorySinkConfig) -> None:
        super().__init__(config)
        self._parsed: dict[Schema, Any] = {}

    @override
    def shape(self, record: SinkRecord) -> Hashable:
        if record.value_schema is None:
            raise DataError("an Avro file needs a schema: use a converter that gives one, or format=json")
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

    def _schema(self, schema: Schema) -> Any:
        if schema not in self._parsed:
            import fastavro
            from fastavro.schema import SchemaParseException

            from connectors.file.avro_schemas import avro_schema

            if len(self._parsed) >= _CACHE_MAX:
                self._parsed.clear()
            try:
                self._parsed[schema] = fastavro.parse_schema(avro_schema(schema))
            except (SchemaParseException, ValueError) as error:
                raise DataError(f"a schema has no counterpart in Avro: {error}") from error
        return self._parsed[schema]


class _AvroBlocks:
    """https://avro.apache.org/docs/1.12.0/specification/#object-container-files"""

    def __init__(self, spool: Spool, schema: Any, compression: str) -> None:
        import fastavro

        self.spool = spool
        self._deflates = compression == "deflate"
        self._sync = os.urandom(16)
        head = io.BytesIO()
        codec = "deflate" if self._deflates else "null"
        fastavro.writer(head, schema, [], codec=codec, sync_marker=self._sync)
        spool.write(head.getvalue())

    def add(self, encoded: tuple[int, bytes]) -> None:
        count, data = encoded
        if self._deflates:
            compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
            data = compressor.compress(data) + compressor.flush()
        self.spool.write(_long(count) + _long(len(data)) + data + self._sync)

    def end(self) -> None:
        pass

    @property
    def size(self) -> int:
        return self.spool.tell()

    @property
    def pending(self) -> int:
        return 0


def _long(number: int) -> bytes:
    """A number that is not negative, as Avro writes it."""
    number <<= 1
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


class ParquetFormat(Format):
    """Parquet files with row groups of some size. Another schema begins another file."""

    extension = "parquet"

    def __init__(self, config: DirectorySinkConfig) -> None:
        super().__init__(config)
        self._columns: dict[Schema, Any] = {}

    @override
    def shape(self, record: SinkRecord) -> Hashable:
        if record.value_schema is None:
            raise DataError("a Parquet file needs a schema: use a converter that gives one, or format=json")
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

    def _schema(self, schema: Schema) -> Any:
        if schema not in self._columns:
            from connect.api.columns import arrow_schema

            if len(self._columns) >= _CACHE_MAX:
                self._columns.clear()
            self._columns[schema] = arrow_schema(schema)
        return self._columns[schema]


class _RowGroups:
    def __init__(self, spool: Spool, columns: Any, compression: str) -> None:
        from pyarrow import parquet

        self.spool = spool
        self._columns = columns
        self._pending: list[Any] = []
        self._pending_bytes = 0
        self._pending_rows = 0
        self._writer = parquet.ParquetWriter(spool, columns, compression=compression)

    def add(self, encoded: Any) -> None:
        self._pending.append(encoded)
        self._pending_bytes += encoded.nbytes
        self._pending_rows += encoded.num_rows
        if self._pending_rows >= _ROW_GROUP_ROWS or self._pending_bytes >= _ROW_GROUP_BYTES:
            self._write()

    def end(self) -> None:
        self._write()
        self._writer.close()

    @property
    def size(self) -> int:
        return self.spool.tell() + self._pending_bytes

    @property
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
