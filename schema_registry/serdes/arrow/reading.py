"""What the readers of all formats share: columns of many records, and which records do not fit.

Python objects become columns a field of all of them at a time (`Extract`): that is what Arrow takes fastest.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from schema_registry.serdes.arrow import stored
from schema_registry.serdes.arrow.binary import Doubt, Rows
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.logical import LogicalName, date_of, time_of, timestamp_of

Bad = list[tuple[int, Exception]]
"""Rows that cannot be read, and why."""
Values = Sequence[Any]
"""Values of one column, None for null."""
Extract = Callable[[Values], pa.Array]

NOT_FITTING: Final = (pa.ArrowException, ArithmeticError, TypeError, ValueError)
"""What Arrow raises about values that do not fit; InvalidData is a ValueError."""
_SLICES: Final = 4
"""Into how many parts values are divided to find those among them that do not fit."""


class Read(NamedTuple):
    """Columns of one schema's data, and the records that are not in them."""

    data: pa.Array
    rows: Rows
    """Which of the given records are in `data`, in ascending order."""
    bad: Bad

    def at(self, rows: Rows) -> "Read":
        """The same, if the given records were these rows of more."""
        return Read(self.data, rows[self.rows], [(int(rows[row]), error) for row, error in self.bad])


class SchemaReader(Protocol):
    """Reads data of one schema."""

    @property
    def type(self) -> pa.DataType:
        """The type of the column."""
        ...

    def read(self, bodies: pa.Array) -> Read:
        """Read binary values without nulls, which begin after the part that names the schema."""
        ...


def all_rows(count: int) -> Rows:
    """Row numbers 0 to count-1."""
    return np.arange(count, dtype=np.int64)


def bodies_list(bodies: pa.Array) -> list[bytes]:
    """Binary values as bytes: several times as fast as `to_pylist`."""
    made: list[bytes] = bodies.to_numpy(zero_copy_only=False).tolist()
    return made


def merge_reads(*reads: Read) -> Read:
    """Records that were read separately, in the order of their rows."""
    bad = [item for read in reads for item in read.bad]
    some = [read for read in reads if len(read.rows)] or [reads[0]]
    if len(some) == 1:
        return some[0]._replace(bad=bad)
    rows = np.concatenate([read.rows for read in some])
    order = np.argsort(rows, kind="stable")
    return Read(pa.concat_arrays([read.data for read in some]).take(pa.array(order)), rows[order], bad)


def read_values(values: Sequence[Any], extract: Extract) -> Read:
    """The column of values, without those that do not fit."""
    try:
        return Read(extract(values), all_rows(len(values)), [])
    except NOT_FITTING as error:
        if len(values) == 1:
            wrong = (
                error if isinstance(error, InvalidData) else InvalidData(f"the value does not fit its column: {error}")
            )
            return Read(extract(values[:0]), all_rows(0), [(0, wrong)])
    size = -(-len(values) // _SLICES)
    slices = [(start, values[start : start + size]) for start in range(0, len(values), size)]
    return merge_reads(*(read_values(some, extract).at(start + all_rows(len(some))) for start, some in slices))


def read_each(
    records: Sequence[bytes],
    decode: Callable[[bytes], Any],
    extract: Extract,
    faults: tuple[type[Exception], ...] = (InvalidData,),
) -> Read:
    """Decode records one by one, for those that cannot be decoded together; those that raise a fault are bad."""
    values: list[Any] = []
    rows: list[int] = []
    bad: Bad = []
    for row, record in enumerate(records):
        try:
            values.append(decode(record))
            rows.append(row)
        except faults as error:
            bad.append((row, error))
    read = read_values(values, extract).at(np.array(rows, dtype=np.int64))
    return read._replace(bad=bad + read.bad)


class FieldExtract(NamedTuple):
    """One field of a struct."""

    values: Callable[[Values], Values]
    """The field of each of many objects."""
    extract: Extract


def plain(type_: pa.DataType) -> Extract:
    """Values that Arrow takes as they are."""
    return lambda values: pa.array(values, type=type_)


def converted(convert: Callable[[Any], Any], type_: pa.DataType) -> Extract:
    """Values that are first converted one by one."""
    return lambda values: pa.array([None if v is None else convert(v) for v in values], type=type_)


_SINGLE: Final[Mapping[LogicalName, Callable[[int], object]]] = {
    LogicalName.DATE: date_of,
    LogicalName.TIME: time_of,
    LogicalName.TIMESTAMP: timestamp_of,
}


def logical_array(name: LogicalName, numbers: pa.Array) -> pa.Array:
    """Numbers stored for dates, times of day or timestamps as such; raises InvalidData about the first invalid one."""
    try:
        return stored.FROM_NUMBERS[name](numbers)
    except Doubt:
        for number in numbers.drop_null().to_pylist():
            _SINGLE[name](number)
        raise


def structs(type_: pa.DataType, parts: Sequence[FieldExtract]) -> Extract:
    """Objects with fields."""
    fields = list(type_)

    def extract(values: Values) -> pa.Array:
        if has_nulls(values):
            return insert_nulls(extract([value for value in values if value is not None]), values)
        return pa.StructArray.from_arrays([part.extract(part.values(values)) for part in parts], fields=fields)

    return extract


def lists(type_: pa.DataType, item: Extract) -> Extract:
    """Lists of values."""

    def extract(values: Values) -> pa.Array:
        offsets, mask = _offsets(values)
        items = item(list(chain.from_iterable(value for value in values if value is not None)))
        return pa.ListArray.from_arrays(offsets, items, type=type_, mask=mask)

    return extract


def maps(type_: pa.DataType, item: Extract) -> Extract:
    """Dicts with text keys."""

    def extract(values: Values) -> pa.Array:
        offsets, mask = _offsets(values)
        dicts = [value for value in values if value is not None]
        keys = pa.array(list(chain.from_iterable(dicts)), type=pa.string())
        items = item(list(chain.from_iterable(value.values() for value in dicts)))
        return pa.MapArray.from_arrays(offsets, keys, items, type=type_, mask=mask)

    return extract


def _offsets(values: Values) -> tuple[pa.Array, pa.Array | None]:
    lengths = np.fromiter((0 if value is None else len(value) for value in values), np.int64, len(values))
    offsets = np.zeros(len(values) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.array(offsets), pa.array([value is None for value in values]) if has_nulls(values) else None


def has_nulls(values: Values) -> bool:
    """Whether there is None among values; `in` would ask each whether it is equal."""
    return type(None) in set(map(type, values))


def insert_nulls(found: pa.Array, values: Values) -> pa.Array:
    """An array of those values that are not None as an array of all of them."""
    is_null = np.fromiter((value is None for value in values), np.bool_, len(values))
    places = np.cumsum(~is_null) - 1
    return found.take(pa.array(places, mask=is_null))
