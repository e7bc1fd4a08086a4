"""Data of one Avro schema as columns: many records at once, and with care those that this does not work for.

As Kafka's own deserialisers and Connect's converter do, bytes behind the end of a record are not looked at.
"""

import json
import logging
import threading
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyruhvro

from schema_registry.formats.avro import AvroSchema
from schema_registry.formats.avro_types import Primitive
from schema_registry.serdes.arrow.avro_columns import Column, Columns, column_plan
from schema_registry.serdes.arrow.avro_walk import TooLong, Walk
from schema_registry.serdes.arrow.binary import Doubt, Rows, taken
from schema_registry.serdes.arrow.extraction import extracted, plain
from schema_registry.serdes.arrow.pieces import read_in_pieces
from schema_registry.serdes.arrow.reading import Bad, Read, SchemaReader, all_rows, bodies_list, merged
from schema_registry.serdes.avro_mismatch import Form
from schema_registry.serdes.avro_plan import Plan
from schema_registry.serdes.avro_reading import reader
from schema_registry.serdes.errors import InvalidData

log = logging.getLogger(__name__)

_REFUSED: Final = (ValueError, OverflowError, Doubt)
"""What the fast way raises about data; ArrowInvalid is a ValueError."""
_MOST_DIFFERENCES: Final = 0.5
"""If more than this share of many good records needs care, there is no fast way."""
_FEW: Final = 1000
_SLICES: Final = 8
_SMALL: Final = 16


def avro_reader(schema: AvroSchema) -> SchemaReader:
    """What reads data of a schema; raises UnusableSchema."""
    plan = column_plan(schema.root)
    columns = Columns()
    column = columns.of(plan)
    if not isinstance(schema.root, Primitive) or schema.root.kind != "bytes":
        return AvroReader(plan, columns, column)
    is_plain = pa.types.is_binary(column.type)
    return _PlainBytes() if is_plain else AvroReader(plan, columns, column._replace(fast=None))


class _PlainBytes:
    """Data of the schema `bytes`: it is written without a length."""

    type: pa.DataType = pa.binary()

    def read(self, bodies: pa.Array) -> Read:
        """The data as it is."""
        return Read(bodies.cast(pa.binary()), all_rows(len(bodies)), [])


class AvroReader:
    """Reads data of one schema."""

    def __init__(self, plan: Plan, columns: Columns, column: Column) -> None:
        self.type = column.type
        self._plan = plan
        self._columns = columns
        self._column = column
        self._decode = reader(plan, Form.TYPED)
        # A record around any type takes no bytes; it makes a column of what is no record.
        around = {"type": "record", "name": "r", "fields": [{"name": "f", "type": column.fast}]}
        is_record = isinstance(column.fast, dict) and column.fast["type"] == "record"
        self._is_inside = not (is_record and pa.types.is_struct(column.type))
        self._fast = None if column.fast is None else json.dumps(around if self._is_inside else column.fast)
        self._seen = self._needed_care = 0
        self._lock = threading.Lock()

    @property
    def is_fast(self) -> bool:
        """Whether many records are read at once."""
        return self._fast is not None

    def read(self, bodies: pa.Array) -> Read:
        """Read records."""
        if self._fast is None:
            return self._careful(bodies_list(bodies), range(len(bodies)))
        if not self._columns.slots:
            try:
                return Read(self._made(self._decoded(bodies_list(bodies))), all_rows(len(bodies)), [])
            except _REFUSED:
                pass
        return self._walked(bodies)

    def _decoded(self, records: Sequence[bytes]) -> pa.RecordBatch:
        return pyruhvro.deserialize_array(records, self._fast)

    def _made(self, batch: pa.RecordBatch) -> pa.Array:
        change = self._column.change
        found = batch.column(0) if self._is_inside else batch.to_struct_array()
        return found if change is None else change(found)

    def _walked(self, bodies: pa.Array) -> Read:
        """First find those that end too soon, or make no sense."""
        try:
            walk = Walk(bodies, self._columns.slots).through(self._plan)
        except TooLong:
            records = bodies_list(bodies)
            return self._careful(records, range(len(records))) if self._columns.slots else self._in_pieces(records)
        good, others = np.flatnonzero(~walk.is_bad), np.flatnonzero(walk.is_bad)
        rest = self._careful(bodies_list(taken(bodies, others)), others.tolist())
        if self._columns.slots:
            return merged(self._with_contents(walk, bodies, good), rest)
        records = bodies_list(taken(bodies, good))
        try:
            found = Read(self._made(self._decoded(records)), good, [])
        except _REFUSED:
            some = self._in_pieces(records)
            found = Read(some.data, good[some.rows], [(int(good[row]), error) for row, error in some.bad])
        return merged(found, rest)

    def _with_contents(self, walk: Walk, bodies: pa.Array, good: Rows) -> Read:
        """Read records whose bytes are taken out; where that fails, fewer at a time."""
        try:
            whole, contents = walk.without_contents()
            batch = self._decoded(bodies_list(whole))
            with self._lock:
                self._columns.contents.update(contents)
                return Read(self._made(batch), good, [])
        except _REFUSED:
            some = taken(bodies, good)
        if len(some) <= _SMALL:
            return self._careful(bodies_list(some), good.tolist())
        reads = []
        size = -(-len(some) // _SLICES)
        for start in range(0, len(some), size):
            read = self._walked(some[start : start + size])
            rows = good[start : start + size]
            reads.append(Read(read.data, rows[read.rows], [(int(rows[row]), error) for row, error in read.bad]))
        data = pa.concat_arrays([read.data for read in reads])
        return Read(data, np.concatenate([read.rows for read in reads]), [item for read in reads for item in read.bad])

    def _in_pieces(self, records: list[bytes]) -> Read:
        """Some are bad, or merely unusual, in ways that only reading tells."""
        pieces = read_in_pieces(records, self._decoded, _REFUSED)
        batches: list[Any] = pieces.good
        try:
            arrays = [self._made(batch) for batch in _joined(batches)]
        except _REFUSED:  # A value is out of its range: it takes both steps to find it.
            pieces = read_in_pieces(records, lambda some: self._made(self._decoded(some)), _REFUSED)
            arrays = list(pieces.good)
        rest = self._careful([records[row] for row in pieces.left], pieces.left)
        self._judge(len(records), [records[row] for row in rest.rows])
        rows = np.fromiter((row for span in pieces.rows for row in span), np.int64)
        data = pa.concat_arrays(arrays) if arrays else pa.array([], type=self.type)
        return merged(Read(data, rows, []), rest)

    def _careful(self, records: Sequence[bytes], rows: Sequence[int]) -> Read:
        """Read one by one."""
        values: list[Any] = []
        good: list[int] = []
        bad: Bad = []
        for row, record in zip(rows, records, strict=True):
            try:
                values.append(self._decode(record, 0))
            except InvalidData as error:
                bad.append((row, error))
            else:
                good.append(row)
        found = extracted(values, good, plain(self.type))
        return Read(found.data, found.rows, bad + found.bad)

    def _judge(self, count: int, good: list[bytes]) -> None:
        """Do without the fast way where it hardly ever works; records next to a bad one say nothing about that."""
        self._seen += count
        try:
            self._made(self._decoded(good))
        except _REFUSED:
            self._needed_care += len(good)
        if self._seen >= _FEW and self._needed_care > self._seen * _MOST_DIFFERENCES:
            log.warning("records of an Avro schema can only be read one by one", extra={"type": str(self.type)[:200]})
            self._fast = None


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """All in one, so that columns are made once."""
    return [pa.concat_batches(batches)] if batches else []
