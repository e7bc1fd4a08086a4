"""Data of one Avro schema as columns: many records at once, and one by one those for which that does not work.

Like Kafka's own deserializers and Connect's converter, this ignores bytes after the end of a record.
"""

import json
from typing import Final

import numpy as np
import pyarrow as pa
import pyruhvro

from schema_registry.formats.avro import AvroSchema
from schema_registry.formats.avro_types import Primitive
from schema_registry.serdes.arrow.avro_columns import Columns, Contents, column_plan
from schema_registry.serdes.arrow.avro_walk import TooLong, Walk
from schema_registry.serdes.arrow.binary import Doubt, take_rows
from schema_registry.serdes.arrow.reading import (
    Read,
    SchemaReader,
    all_rows,
    bodies_list,
    merge_reads,
    plain,
    read_each,
)
from schema_registry.serdes.avro_mismatch import Form
from schema_registry.serdes.avro_reading import reader

_REFUSED: Final = (ValueError, OverflowError, Doubt)
"""What decoding many records raises if one of them does not fit; ArrowInvalid is a ValueError."""
_SLICES: Final = 4
"""Into how many parts records are divided to find those that do not fit."""
_FEW: Final = 256
"""Records that are decoded one by one rather than divided further: another attempt would cost more than that."""


def avro_reader(schema: AvroSchema) -> SchemaReader:
    """The reader of a schema's data; raises UnusableSchema."""
    is_bytes = isinstance(schema.root, Primitive) and schema.root.kind == "bytes"
    found = AvroReader(schema, is_whole=is_bytes)
    return _BytesReader() if is_bytes and pa.types.is_binary(found.type) else found


class _BytesReader:
    """Data of the schema `bytes`, which has no length before it."""

    type: pa.DataType = pa.binary()

    def read(self, bodies: pa.Array) -> Read:
        """The data as it is."""
        return Read(bodies.cast(pa.binary()), all_rows(len(bodies)), [])


class AvroReader:
    """Reads data of one schema; `is_whole` if a record is nothing but a value without a length."""

    def __init__(self, schema: AvroSchema, *, is_whole: bool = False) -> None:
        self._plan = column_plan(schema.root)
        columns = Columns()
        column = columns.of(self._plan)
        self.type = column.type
        self._change = column.change
        self._slots = columns.slots
        self._decode = reader(self._plan, Form.TYPED)
        # A record around any type takes no bytes; it makes a column of a type that is not a record.
        around = {"type": "record", "name": "r", "fields": [{"name": "f", "type": column.fast}]}
        is_record = isinstance(column.fast, dict) and column.fast["type"] == "record"
        self._is_wrapped = not (is_record and pa.types.is_struct(column.type))
        has_fast = column.fast is not None and not is_whole
        self._fast = json.dumps(around if self._is_wrapped else column.fast) if has_fast else None

    @property
    def is_fast(self) -> bool:
        """Whether many records are decoded at once."""
        return self._fast is not None

    def read(self, bodies: pa.Array) -> Read:
        """Read records."""
        if self._fast is None:
            return self._read_each(bodies)
        if not self._slots:
            try:
                return Read(self._column(bodies, {}), all_rows(len(bodies)), [])
            except _REFUSED:
                pass
        return self._read_walked(bodies)

    def _column(self, bodies: pa.Array, contents: Contents) -> pa.Array:
        """All records together; raises one of _REFUSED if one of them does not fit."""
        batch = pyruhvro.deserialize_array(bodies_list(bodies), self._fast)
        return self._change(batch.column(0) if self._is_wrapped else batch.to_struct_array(), contents)

    def _read_walked(self, bodies: pa.Array) -> Read:
        """Set aside the records that end too soon or make no sense; the rest is decoded together if that works."""
        try:
            walk = Walk(bodies, self._slots).through(self._plan)
        except TooLong:
            return self._read_each(bodies) if self._slots else self._read_slices(bodies)
        good, others = np.flatnonzero(~walk.is_bad), np.flatnonzero(walk.is_bad)
        rest = self._read_each(take_rows(bodies, others)).at(others)
        some = take_rows(bodies, good)
        try:
            found = Read(self._column(*walk.without_contents()) if self._slots else self._column(some, {}), good, [])
        except _REFUSED:
            found = self._read_slices(some).at(good)
        return merge_reads(found, rest)

    def _read_slices(self, bodies: pa.Array) -> Read:
        """Fewer records at a time, because some are invalid, or merely unusual, in ways that only decoding finds."""
        if len(bodies) <= _FEW:
            return self._read_each(bodies)
        size = -(-len(bodies) // _SLICES)
        slices = [(start, bodies[start : start + size]) for start in range(0, len(bodies), size)]
        return merge_reads(*(self._read_slice(some).at(start + all_rows(len(some))) for start, some in slices))

    def _read_slice(self, bodies: pa.Array) -> Read:
        if self._slots:
            return self._read_walked(bodies)
        try:
            return Read(self._column(bodies, {}), all_rows(len(bodies)), [])
        except _REFUSED:
            return self._read_slices(bodies)

    def _read_each(self, bodies: pa.Array) -> Read:
        return read_each(bodies_list(bodies), lambda record: self._decode(record, 0), plain(self.type))
