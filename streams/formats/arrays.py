"""Values of SQL as arrays of Arrow and back; the types are those that Spark exchanges with Python."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schema_registry.serdes.arrow import joining, reading, stored
from schema_registry.serdes.arrow.reading import Extract
from schema_registry.serdes.logical import EPOCH, LogicalName
from streams.model.types import Array, Decimal, Field, Map, Name, Primitive, SqlType, Struct, bounded

TIME: Final = pa.time64("ns")
TIMESTAMP: Final = pa.timestamp("us", "UTC")
NANOSECONDS_PER_MS: Final = 1_000_000
_PLAIN: Final[Mapping[Name, pa.DataType]] = {
    Name.BOOLEAN: pa.bool_(),
    Name.INTEGER: pa.int32(),
    Name.BIGINT: pa.int64(),
    Name.DOUBLE: pa.float64(),
    Name.STRING: pa.string(),
    Name.BYTES: pa.binary(),
    Name.TIME: TIME,
    Name.DATE: pa.date32(),
    Name.TIMESTAMP: TIMESTAMP,
    Name.NULL: pa.null(),
    Name.UNIT: pa.string(),
}
_LOGICAL: Final = {
    Name.DATE: LogicalName.DATE,
    Name.TIME: LogicalName.TIME,
    Name.TIMESTAMP: LogicalName.TIMESTAMP,
}


@lru_cache(maxsize=1000)
def arrow_type(kind: SqlType) -> pa.DataType:
    """The Arrow type of a type; decimals have as many digits as Spark can hold."""
    match kind:
        case Primitive(name):
            return _PLAIN[name]
        case Decimal(precision, scale):
            fitting = bounded(precision, scale)
            return pa.decimal128(fitting.precision, fitting.scale)
        case Array(element):
            return pa.list_(arrow_type(element))
        case Map(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case Struct(fields):
            return pa.struct([(field.name, arrow_type(field.type)) for field in fields])


@lru_cache(maxsize=1000)
def bounded_type(kind: SqlType) -> SqlType:
    """The type whose values are exactly those that its Arrow type holds."""
    match kind:
        case Decimal(precision, scale):
            return bounded(precision, scale)
        case Array(element):
            return Array(bounded_type(element))
        case Map(key, value):
            return Map(bounded_type(key), bounded_type(value))
        case Struct(fields):
            return Struct(tuple(Field(field.name, bounded_type(field.type)) for field in fields))
        case _:
            return kind


def array_of(kind: SqlType, values: Sequence[Any]) -> pa.Array:
    """Values, None for null, as an array; raises ArrowException, ArithmeticError, TypeError or ValueError."""
    return _extract(kind)(values)


@lru_cache(maxsize=1000)
def _extract(kind: SqlType) -> Extract:
    type_ = arrow_type(kind)
    match kind:
        case Array(element):
            return reading.lists(type_, _extract(element))
        case Map(key, value):
            return _maps(type_, _extract(key), _extract(value))
        case Struct(fields) if fields:
            parts = [reading.FieldExtract(_getter(field.name), _extract(field.type)) for field in fields]
            return reading.structs(type_, parts)
        case Struct():
            return lambda values: pa.array([None if value is None else {} for value in values], type_)
        case _:
            return reading.plain(type_)


def _getter(name: str) -> Callable[[Sequence[Any]], Sequence[Any]]:
    return lambda values: [value.get(name) for value in values]


def _maps(type_: pa.DataType, key: Extract, item: Extract) -> Extract:
    def extract(values: Sequence[Any]) -> pa.Array:
        dicts = [value for value in values if value is not None]
        lengths = np.fromiter((0 if value is None else len(value) for value in values), np.int64, len(values))
        offsets = np.zeros(len(values) + 1, dtype=np.int32)
        np.cumsum(lengths, out=offsets[1:])
        keys = key(list(chain.from_iterable(dicts)))
        items = item(list(chain.from_iterable(value.values() for value in dicts)))
        mask = None if len(dicts) == len(values) else pa.array([value is None for value in values])
        return pa.MapArray.from_arrays(pa.array(offsets), keys, items, type=type_, mask=mask)

    return extract


def moments(name: Name, numbers: pa.Array) -> pa.Array:
    """Numbers that stand for dates, times of day or timestamps as such; raises Doubt if one is out of their range."""
    return stored.FROM_NUMBERS[_LOGICAL[name]](numbers).cast(_PLAIN[name])


def values_of(kind: SqlType, array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of an array of a type, None for null: maps are dicts, moments are in UTC."""
    if isinstance(array, pa.ChunkedArray):
        return list(chain.from_iterable(values_of(kind, chunk) for chunk in array.chunks))
    match kind:
        case Primitive(Name.TIME):
            milliseconds = pc.divide(array.cast(TIME).view(pa.int64()), NANOSECONDS_PER_MS).cast(pa.int32())
            found: list[Any] = milliseconds.view(pa.time32("ms")).to_pylist()
            return found
        case Primitive(Name.TIMESTAMP):
            micros = pa.timestamp("us")
            # Without its zone, which would be looked up for each value.
            return [
                v if v is None else v.replace(tzinfo=EPOCH.tzinfo)
                for v in array.cast(TIMESTAMP).cast(micros).to_pylist()
            ]
        case Array(element):
            return _grouped(pc.list_value_length(array).to_pylist(), values_of(element, array.flatten()))
        case Map(key, value):
            present = array.drop_null()
            items, counts = joining.items_of(present) if len(present) else (None, np.zeros(0, np.int64))
            pairs = [] if items is None else _pairs(key, value, items)
            some = iter([dict(part) for part in _grouped(counts.tolist(), pairs)])
            return [next(some) if is_there else None for is_there in array.is_valid().to_pylist()]
        case Struct(fields) if fields:
            names = [field.name for field in fields]
            columns = [values_of(field.type, part) for field, part in zip(fields, array.flatten(), strict=True)]
            made = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
            is_there = array.is_valid().to_pylist() if array.null_count else None
            return made if is_there is None else [row if ok else None for row, ok in zip(made, is_there, strict=True)]
        case _:
            plain: list[Any] = array.to_pylist()
            return plain


def _pairs(key: SqlType, value: SqlType, entries: pa.Array) -> list[Any]:
    keys, items = entries.flatten()
    return list(zip(values_of(key, keys), values_of(value, items), strict=True))


def _grouped(lengths: list[int | None], items: list[Any]) -> list[Any]:
    """Items as the lists that they came from."""
    made: list[Any] = []
    at = 0
    for length in lengths:
        made.append(None if length is None else items[at : at + length])
        at += length or 0
    return made
