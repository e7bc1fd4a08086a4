"""What holds for every format: what is written is read again, and the two ways to do it agree."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from streams.formats.arrays import array_of, arrow_type, values_of
from streams.formats.columns import ColumnDecoder, ColumnEncoder, DecodedColumns
from streams.formats.errors import DecodeError
from streams.formats.registry import RegistrySettings
from streams.formats.sharing import shared_schemas
from streams.formats.values import RecordCodec
from streams.model.sources import WINDOW_COLUMNS, Source
from streams.model.types import Map, contains, parse_type
from tests.support.sql_records import IS_PROTOBUF, hostile

Row = dict[str, Any]
Record = tuple[bytes | None, bytes | None]


def check_round_trip(source: Source, rows: Sequence[Row], registry: RegistrySettings) -> None:
    """Rows written and read, one by one and as columns."""
    codec = RecordCodec(source, shared_schemas(registry))
    records = [codec.encode(row) for row in rows]
    expected = [_expected(source, row) for row in rows]
    assert _shown([codec.decode(*record) for record in records]) == _shown(expected)
    decoded = ColumnDecoder(source, registry).decode(*_arrays(records))
    assert decoded.failures == []
    assert _shown(_rows(source, decoded)) == _shown(expected)
    keys, values = ColumnEncoder(source, registry).encode(_batch(source, rows))
    written = list(zip(keys.to_pylist(), values.to_pylist(), strict=True))
    assert _shown([codec.decode(*record) for record in written]) == _shown(expected)
    has_maps = any(contains(column.sql_type, Map) for column in source.value)
    if not (source.value_format.name in IS_PROTOBUF and has_maps):  # Protobuf's own library has maps in any order.
        assert written == records


def check_hostile(source: Source, rows: Sequence[Row], registry: RegistrySettings, data: st.DataObject) -> None:
    """Damaged records, read one by one and as columns."""
    codec = RecordCodec(source, shared_schemas(registry))
    records = [codec.encode(row) for row in rows]
    records += [(data.draw(hostile(key)), data.draw(hostile(value))) for key, value in records]
    check_agreement(source, records, registry)


def check_other_types(source: Source, other: Source, rows: Sequence[Row], registry: RegistrySettings) -> None:
    """The records of one source, read as those of another."""
    codec = RecordCodec(source, shared_schemas(registry))
    check_agreement(other, [codec.encode(row) for row in rows], registry)


def check_agreement(source: Source, records: Sequence[Record], registry: RegistrySettings) -> None:
    """Records read one by one and as columns: the same values, the same failures."""
    codec = RecordCodec(source, shared_schemas(registry))
    decoded = ColumnDecoder(source, registry).decode(*_arrays(records))
    found = _rows(source, decoded)
    failed = {failure.row: failure for failure in decoded.failures}
    for row, record in enumerate(records):
        expected = _decoded(codec, record)
        if isinstance(expected, DecodeError):
            assert failed[row].part == expected.part, (record, expected)
        else:
            assert row not in failed, (record, failed[row])
            assert _shown([found[row]]) == _shown([expected])


def _decoded(codec: RecordCodec, record: Record) -> Row | DecodeError:
    try:
        return codec.decode(*record)
    except DecodeError as error:
        return error


def _expected(source: Source, row: Row) -> Row:
    """What is read: a window needs its key, and a value that is nothing but null is no value."""
    names = [column.name for column in source.columns]
    windows = [] if source.window is None else list(WINDOW_COLUMNS)
    return {name: row[name] for name in (*windows, *names)}


def _arrays(records: Sequence[Record]) -> tuple[pa.Array, pa.Array]:
    keys, values = zip(*records, strict=True)
    # Not at the beginning of their buffers, as after a slice.
    return pa.array([b"x", *keys], pa.binary())[1:], pa.array([None, *values], pa.binary())[1:]


def _batch(source: Source, rows: Sequence[Row]) -> pa.RecordBatch:
    kinds = {column.name: column.sql_type for column in source.columns}
    if source.window is not None:
        kinds |= {name: parse_type(kind) for name, kind in WINDOW_COLUMNS.items()}
    arrays = [array_of(kind, [row[name] for row in rows]) for name, kind in kinds.items()]
    schema = pa.schema([pa.field(name, arrow_type(kind)) for name, kind in kinds.items()])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _rows(source: Source, decoded: DecodedColumns) -> list[Row]:
    kinds = {column.name: column.sql_type for column in source.columns}
    kinds |= {name: parse_type(kind) for name, kind in WINDOW_COLUMNS.items()}
    columns = {name: values_of(kinds[name], array) for name, array in decoded.columns.items()}
    assert all(array.type == arrow_type(kinds[name]) for name, array in decoded.columns.items())
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _shown(rows: Sequence[Row]) -> list[str]:
    """Rows as text, so that NaN is equal to itself and 0.0 is not -0.0."""
    return [repr(_sorted(row)) for row in rows]


def _sorted(value: Any) -> Any:
    """The fields of structs in one order."""
    if isinstance(value, dict):
        return sorted((key, _sorted(item)) for key, item in value.items())
    return [_sorted(item) for item in value] if isinstance(value, list) else value
