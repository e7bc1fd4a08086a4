"""Records as columns of Arrow and back, many at once."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schema_registry.serdes.arrow import joining
from schema_registry.serdes.arrow.binary import places
from schema_registry.serdes.framing import header_name
from streams.formats.arrays import arrow_type
from streams.formats.codecs import NoneCodec
from streams.formats.delimited_columns import DelimitedColumns
from streams.formats.errors import EncodeError, Part
from streams.formats.json_columns import JsonColumns
from streams.formats.kafka_columns import KafkaColumns
from streams.formats.layout import Layout, layout_of
from streams.formats.part_columns import ByRecord, PartColumns
from streams.formats.registry import RegistrySettings, Schemas
from streams.formats.schema_columns import SchemaColumns
from streams.formats.sharing import shared_schemas
from streams.formats.values import HEADER_KEY, HEADER_VALUE
from streams.formats.windows import suffix_bytes
from streams.model.plan import DELETED
from streams.model.sources import REGISTRY_FORMATS, WINDOWEND, WINDOWSTART, HeaderColumn, Source, WindowInfo

_HEADER_FIELDS: Final = [pa.field(HEADER_KEY, pa.string()), pa.field(HEADER_VALUE, pa.binary())]
HEADERS: Final = pa.list_(pa.struct(_HEADER_FIELDS))
"""The type of a column with all headers."""
_FAULTS: Final = (pa.ArrowException, ArithmeticError, TypeError, ValueError)


class Failure(NamedTuple):
    """A record that cannot be decoded."""

    row: int
    part: Part
    message: str


class DecodedColumns(NamedTuple):
    """Columns with a row for each record; those of a part that cannot be decoded, or that is null, are null."""

    columns: dict[str, pa.Array]
    """The columns of key and value, of headers, and WINDOWSTART and WINDOWEND if keys are windowed."""
    failures: list[Failure]
    """In ascending order of rows, one for each row at most."""


class ColumnDecoder:
    """Reads the records of a source; raises ClientError when the registry does not answer.

    Each process must make its own, from a fork on; those for equal sources share schemas and connections.
    """

    def __init__(self, source: Source, registry: RegistrySettings) -> None:
        schemas = shared_schemas(registry)
        self._source = source
        self._parts = [(layout, part_columns(layout, schemas)) for layout in _layouts(source)]

    def decode(self, keys: pa.Array, values: pa.Array, headers: pa.Array | None = None) -> DecodedColumns:
        """Decode records: binary keys and values, and headers as list<struct<key: string, value: binary>>."""
        columns: dict[str, pa.Array] = {}
        failures: dict[int, Failure] = {}
        info = self._source.window
        if info is not None:
            keys = _split_windows(keys, info, columns, failures)
        for (layout, part), data in zip(self._parts, (keys, values), strict=True):
            data = _with_header(layout, data, headers)
            is_there = joining.is_valid(data)
            found = part.decode(data if is_there.all() else data.drop_null())
            rows = np.flatnonzero(is_there)
            for row, message in found.bad.items():
                at = int(rows[row])
                failures.setdefault(at, Failure(at, layout.part, message))
            for column, array in zip(layout.columns, found.columns, strict=True):
                columns[column.name] = _spread(array, is_there)
        for header in self._source.headers:
            columns[header.name] = header_column(header, headers, len(values))
        return DecodedColumns(columns, sorted(failures.values()))


class ColumnEncoder:
    """Writes the records of a sink; raises ClientError when the registry does not answer."""

    def __init__(self, source: Source, registry: RegistrySettings) -> None:
        schemas = shared_schemas(registry)
        self._source = source
        self._parts = [(layout, part_columns(layout, schemas)) for layout in _layouts(source)]

    def encode(self, batch: pa.RecordBatch | pa.Table) -> tuple[pa.Array, pa.Array]:
        """Keys and values of rows as binary arrays. Raises EncodeError.

        Columns are found by their names; WINDOWSTART and WINDOWEND must be there if the sink is windowed. `__deleted`
        may be there; where it is true, the value is null.
        """
        is_deleted = np.zeros(batch.num_rows, dtype=np.bool_)
        if DELETED in batch.schema.names:
            is_deleted = _column(batch, DELETED).fill_null(False).to_numpy(zero_copy_only=False)
        key, value = self._parts
        keys = _encoded(*key, batch)
        if self._source.window is not None:
            keys = _add_windows(keys, self._source.window, batch)
        if not is_deleted.any():
            return keys, _encoded(*value, batch)
        some = _encoded(*value, batch.filter(pa.array(~is_deleted)))
        return keys, _spread(some, ~is_deleted)


def _layouts(source: Source) -> tuple[Layout, Layout]:
    return layout_of(source, "key"), layout_of(source, "value")


@lru_cache(maxsize=200)
def part_columns(layout: Layout, schemas: Schemas) -> PartColumns:
    """What reads and writes keys or values; raises FormatError if the format cannot hold the columns.

    Kept, because batches of all sizes come with decoders and encoders of their own, and a schema takes time to compile.
    """
    if not layout.columns and layout.is_key:
        return ByRecord(layout, NoneCodec())
    match layout.format.name:
        case "JSON":
            return JsonColumns(layout)
        case "KAFKA":
            return KafkaColumns(layout)
        case "DELIMITED":
            return DelimitedColumns(layout)
        case "NONE":
            return ByRecord(layout, NoneCodec())
        case "AVRO" | "PROTOBUF" | "PROTOBUF_NOSR" | "JSON_SR":
            return SchemaColumns(layout, schemas)


def _encoded(layout: Layout, part: PartColumns, batch: pa.RecordBatch | pa.Table) -> pa.Array:
    """The bytes of all rows; a key of which all columns are null is null."""
    count = batch.num_rows
    if not layout.columns and layout.is_key:
        return pa.nulls(count, pa.binary())
    try:
        columns = [_fitted(_column(batch, column.name), arrow_type(column.sql_type)) for column in layout.columns]
        if not layout.is_key or not any(column.null_count for column in columns):
            return part.encode(columns)
        is_there = np.logical_or.reduce([joining.is_valid(column) for column in columns])
        mask = pa.array(is_there)
        return _spread(part.encode([column.filter(mask) for column in columns]), is_there)
    except KeyError as error:
        raise EncodeError(layout.part, f"there is no column {error.args[0]}") from error
    except _FAULTS as error:
        raise EncodeError(layout.part, str(error)) from error


def _column(batch: pa.RecordBatch | pa.Table, name: str) -> pa.Array:
    column = batch.column(name)
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def _fitted(column: pa.Array, type_: pa.DataType) -> pa.Array:
    return column if column.type == type_ else column.cast(type_)


def _spread(some: pa.Array, is_there: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> pa.Array:
    """Values of some rows as a column of all of them, null elsewhere."""
    if is_there.all():
        return some
    return some.take(pa.array(np.cumsum(is_there) - 1, mask=~is_there))


# --- headers and windows ---------------------------------------------------------------------------------------------


def header_column(column: HeaderColumn, headers: pa.Array | None, count: int) -> pa.Array:
    """The column of all headers, or of the last one with a key."""
    found = pa.nulls(count, HEADERS) if headers is None else headers
    lengths = pc.fill_null(pc.list_value_length(found), 0).to_numpy(zero_copy_only=False)
    names, values = found.flatten().flatten()
    if column.key is None:
        pairs = pa.StructArray.from_arrays([names.cast(pa.string()), values.cast(pa.binary())], fields=_HEADER_FIELDS)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), pairs, type=HEADERS)
    rows = np.repeat(np.arange(count), lengths)
    wanted = np.flatnonzero(pc.fill_null(pc.equal(names, column.key), False).to_numpy(zero_copy_only=False))
    last = np.full(count, -1, dtype=np.int64)
    last[rows[wanted]] = wanted  # Of several, the last is assigned last.
    return values.cast(pa.binary()).take(pa.array(last, mask=last < 0))


def _with_header(layout: Layout, data: pa.Array, headers: pa.Array | None) -> pa.Array:
    """Data after the name of its schema, if that is in a header: it reads like the name before the data."""
    if headers is None or layout.format.name not in REGISTRY_FORMATS:
        return data
    names = header_column(HeaderColumn("", header_name(is_key=layout.is_key)), headers, len(data))
    if names.null_count == len(names):
        return data
    return pc.binary_join_element_wise(names.fill_null(b""), data.cast(pa.binary()), pa.scalar(b"", pa.binary()))


def _split_windows(
    keys: pa.Array, info: WindowInfo, columns: dict[str, pa.Array], failures: dict[int, Failure]
) -> pa.Array:
    """Keys without their windows, which become columns."""
    size = suffix_bytes(info)
    data, starts, lengths = places(keys)
    is_there = joining.is_valid(keys)
    is_there[is_there] = lengths[is_there] >= size if len(lengths) else False
    for row in np.flatnonzero(~is_there & joining.is_valid(keys)).tolist():
        failures[row] = Failure(row, "key", f"a windowed key has at least {size} bytes, not {lengths[row]}")
    rows = np.flatnonzero(is_there)
    numbers = np.zeros((len(keys), size // 8), dtype=np.int64)
    if len(rows):
        windows = np.lib.stride_tricks.sliding_window_view(data, size)
        at = (starts + lengths)[rows] - size
        numbers[rows] = np.ascontiguousarray(windows[at]).view(">i8").reshape(-1, size // 8)
    start = numbers[:, -1]
    end = numbers[:, 0] if info.kind == "SESSION" else start + (info.size_ms or 0)
    columns[WINDOWSTART], columns[WINDOWEND] = (pa.array(found, mask=~is_there) for found in (start, end))
    if not len(rows):
        return pa.nulls(len(keys), pa.binary())
    some = pc.binary_slice(keys.cast(pa.binary()).take(pa.array(rows)), 0, -size)
    return _spread(some, is_there)


def _add_windows(keys: pa.Array, info: WindowInfo, batch: pa.RecordBatch | pa.Table) -> pa.Array:
    names: Sequence[str] = (WINDOWEND, WINDOWSTART) if info.kind == "SESSION" else (WINDOWSTART,)
    try:
        found = [_column(batch, name) for name in names]
    except KeyError as error:
        raise EncodeError("key", f"there is no column {error.args[0]}") from error
    if keys.null_count:
        raise EncodeError("key", "a windowed key is null")
    if any(column.null_count for column in found):
        raise EncodeError("key", "the window of a windowed key is missing")
    rows = np.stack([column.cast(pa.int64()).to_numpy() for column in found], axis=1).astype(">i8")
    return joining.join([keys, rows.view(np.uint8).reshape(len(keys), 8 * len(names))], len(keys))
