"""Keys and values by schemas of the registry, as columns: through the typed-data door, else record by record."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from schema_registry.formats.json_schema import JsonSchema
from schema_registry.formats.protobuf import ProtobufSchema
from schema_registry.serdes.arrow import joining
from schema_registry.serdes.arrow.binary import Rows, take_rows
from schema_registry.serdes.arrow.reading import Bad
from schema_registry.serdes.arrow.schemas import add_prefix, column_reader, column_writer
from schema_registry.serdes.arrow.types import NoColumns
from schema_registry.serdes.errors import SerdeError
from schema_registry.serdes.schemas import ParsedSchema
from streams.formats.array_fitting import Misfit, fit_array, shaped_like
from streams.formats.arrays import arrow_type, bounded_type, values_of
from streams.formats.frames import FIRST_MESSAGE, Group, Indexes, group_by_message, group_by_schema
from streams.formats.json_column_writing import write_documents
from streams.formats.json_columns import JsonColumns
from streams.formats.json_schemas import is_written_plainly, json_plan
from streams.formats.layout import Layout
from streams.formats.part_columns import ByRecord, DecodedPart
from streams.formats.registry import Schemas
from streams.formats.schema_codec import SchemaCodec, parsed_as
from streams.model.types import Field, SqlType, Struct

Quick: TypeAlias = Callable[[pa.Array], DecodedPart]
"""Decodes data behind the name of its schema."""

_READERS_MAX: Final = 1_000
_MISFITS: Final = (Misfit, pa.ArrowException)


class _Piece(NamedTuple):
    """Some of the records, decoded."""

    rows: Rows
    found: DecodedPart


class SchemaColumns:
    """Writes by one schema, reads by those that the data names; raises ClientError without the registry."""

    def __init__(self, layout: Layout, schemas: Schemas) -> None:
        self._layout = layout
        self._schemas = schemas
        self._codec = SchemaCodec(layout, schemas)
        self._each = ByRecord(layout, self._codec)
        self._kinds = [bounded_type(column.sql_type) for column in layout.columns]
        self._readers: dict[tuple[int | str, Indexes], Quick | None] = {}

    def decode(self, data: pa.Array) -> DecodedPart:
        """Decode data."""
        if not len(data):
            return self._each.decode(data)
        if self._layout.format.name == "PROTOBUF_NOSR":
            return self._decode_own(data)
        found = group_by_schema(data, is_key=self._layout.is_key)
        pieces = [self._refused(found.bad)]
        for group in found.groups:
            pieces += self._decode_group(group, data)
        return self._merged([piece for piece in pieces if len(piece.rows)], len(data))

    def encode(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Encode rows."""
        if self._layout.is_wrapped:
            names = [column.name for column in self._layout.columns]
            return self._write(pa.StructArray.from_arrays(list(columns), names=names))
        (column,) = columns
        if not column.null_count:
            return self._write(column)
        is_there = joining.is_valid(column)
        return self._write(column.drop_null()).take(pa.array(np.cumsum(is_there) - 1, mask=~is_there))

    # --- reading -----------------------------------------------------------------------------------------------------

    def _decode_own(self, data: pa.Array) -> DecodedPart:
        quick = self._own
        found = None if quick is None else _attempt(quick, data)
        return self._each.decode(data) if found is None else found

    @cached_property
    def _own(self) -> Quick | None:
        return self._quick(self._codec.writing.schema, FIRST_MESSAGE)

    def _decode_group(self, group: Group, data: pa.Array) -> list[_Piece]:
        try:
            parsed = parsed_as(self._layout, self._schemas, group.schema)
        except SerdeError as error:
            return [self._refused([(row, error) for row in group.rows.tolist()])]
        groups, bad = [(FIRST_MESSAGE, group)], list[tuple[int, Exception]]()
        if isinstance(parsed, ProtobufSchema):
            groups, bad = group_by_message(group)
        pieces = [self._refused(bad)]
        for indexes, some in groups:
            quick = self._reader(some.schema, indexes, parsed)
            found = None if quick is None else _attempt(quick, some.bodies)
            if found is None:
                found = self._each.decode(take_rows(data, some.rows))
            pieces.append(_Piece(some.rows, found))
        return pieces

    def _reader(self, schema: int | str, indexes: Indexes, parsed: ParsedSchema) -> Quick | None:
        key = schema, indexes
        if key not in self._readers:
            if len(self._readers) >= _READERS_MAX:
                self._readers.clear()
            self._readers[key] = self._quick(parsed, indexes)
        return self._readers[key]

    def _quick(self, schema: ParsedSchema, indexes: Indexes) -> Quick | None:
        """How data of a schema is decoded all at once; None if it is not."""
        if isinstance(schema, JsonSchema):
            try:
                return JsonColumns(self._layout).decode if is_written_plainly(json_plan(schema)) else None
            except SerdeError:
                return None
        try:
            reader = column_reader(schema, indexes)
            self._columns(pa.array([], reader.type))
        except (SerdeError, *_MISFITS):
            return None

        def decode(bodies: pa.Array) -> DecodedPart:
            read = reader.read(bodies)
            piece = _Piece(read.rows, DecodedPart(self._columns(read.data), {}))
            return self._merged([piece, self._refused(read.bad)], len(bodies))

        return decode

    def _columns(self, values: pa.Array) -> list[pa.Array]:
        """The columns of decoded values; raises Misfit."""
        if not self._layout.is_wrapped:
            return [fit_array(values, self._kinds[0])]
        found: list[pa.Array] = fit_array(values, _record(self._layout, self._kinds)).flatten()
        return found

    def _refused(self, bad: Bad) -> _Piece:
        rows = np.array([row for row, _ in bad], dtype=np.int64)
        nothing = [pa.nulls(len(bad), arrow_type(kind)) for kind in self._kinds]
        return _Piece(rows, DecodedPart(nothing, {place: str(error) for place, (_, error) in enumerate(bad)}))

    def _merged(self, pieces: Sequence[_Piece], count: int) -> DecodedPart:
        """Pieces as one, in the order of the records."""
        if len(pieces) == 1 and len(pieces[0].rows) == count:
            return pieces[0].found
        order = pa.array(np.argsort(np.concatenate([piece.rows for piece in pieces]), kind="stable"))
        columns = [
            pa.concat_arrays([piece.found.columns[place] for piece in pieces]).take(order)
            for place in range(len(self._kinds))
        ]
        bad = {int(piece.rows[row]): text for piece in pieces for row, text in piece.found.bad.items()}
        return DecodedPart(columns, bad)

    # --- writing -----------------------------------------------------------------------------------------------------

    def _write(self, rows: pa.Array) -> pa.Array:
        """Rows, none of which is null, with the name of the schema before each."""
        data = self._writer(rows)
        prefix = self._codec.writing.prefix
        return add_prefix(data, prefix) if prefix else data

    @cached_property
    def _writer(self) -> Callable[[pa.Array], pa.Array]:
        """Writes rows as data of the schema."""
        writing = self._codec.writing
        if isinstance(writing.schema, JsonSchema):
            field = Field("", writing.type)
            names = arrow_type(bounded_type(writing.type))
            return lambda rows: write_documents([field], [shaped_like(rows, names)], is_wrapped=False)
        indexes = FIRST_MESSAGE
        if isinstance(writing.schema, ProtobufSchema) and writing.message is not None:
            indexes = writing.schema.indexes_of(writing.message)
        try:
            writer = column_writer(writing.schema, indexes)
        except NoColumns:
            return self._write_each
        return lambda rows: writer.write(shaped_like(rows, writer.type))

    def _write_each(self, rows: pa.Array) -> pa.Array:
        kind = _record(self._layout, self._kinds) if self._layout.is_wrapped else self._kinds[0]
        return pa.array([self._codec.write(value) for value in values_of(kind, rows)], pa.binary())


def _record(layout: Layout, kinds: Sequence[SqlType]) -> Struct:
    return Struct(tuple(Field(column.name, kind) for column, kind in zip(layout.columns, kinds, strict=True)))


def _attempt(quick: Quick, bodies: pa.Array) -> DecodedPart | None:
    """All records at once; None if some value needs a closer look."""
    try:
        return quick(bodies)
    except _MISFITS:
        return None
