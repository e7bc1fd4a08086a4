"""Columns out of many Python objects, a field of all of them at a time: that is what Arrow takes fastest."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from schema_registry.serdes.arrow import stored
from schema_registry.serdes.arrow.binary import Doubt
from schema_registry.serdes.arrow.pieces import read_in_pieces
from schema_registry.serdes.arrow.reading import NOT_FITTING, Bad, Read
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.logical import LogicalName, date_of, time_of, timestamp_of

T = TypeVar("T")
Values = Sequence[Any]
"""Values of one column, None where there is none."""
Extract = Callable[[Values], pa.Array]


class FieldExtract(NamedTuple):
    """One field of a struct."""

    values: Callable[[Values], Values]
    """The field of each of many objects."""
    extract: Extract


def plain(type_: pa.DataType) -> Extract:
    """Values that Arrow takes as they are."""
    return lambda values: pa.array(values, type=type_)


def changed(change: Callable[[Any], Any], type_: pa.DataType) -> Extract:
    """Values that are first changed one by one."""
    return lambda values: pa.array([None if v is None else change(v) for v in values], type=type_)


_STORED: Final[Mapping[LogicalName, tuple[Callable[[pa.Array], pa.Array], Callable[[int], object]]]] = {
    LogicalName.DATE: (stored.dates, date_of),
    LogicalName.TIME: (stored.times, time_of),
    LogicalName.TIMESTAMP: (stored.timestamps, timestamp_of),
}


def logical(name: LogicalName) -> Extract:
    """Numbers that are stored for a date, a time of day or a timestamp."""
    return lambda values: logical_array(name, pa.array(values, type=pa.int64()))


def logical_array(name: LogicalName, numbers: pa.Array) -> pa.Array:
    """The column of such numbers; raises InvalidData about the one that stands for none."""
    whole, single = _STORED[name]
    try:
        return whole(numbers)
    except Doubt:
        for number in numbers.drop_null().to_pylist():
            single(number)
        raise


def structs(type_: pa.DataType, parts: Sequence[FieldExtract]) -> Extract:
    """Objects with fields."""
    fields = [type_.field(index) for index in range(type_.num_fields)]

    def present(values: Values) -> pa.Array:
        return pa.StructArray.from_arrays([part.extract(part.values(values)) for part in parts], fields=fields)

    return lambda values: _with_nulls(values, present)


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
    is_null = [value is None for value in values] if has_nulls(values) else None
    return pa.array(offsets), None if is_null is None else pa.array(is_null)


def _with_nulls(values: Values, extract: Extract) -> pa.Array:
    if not has_nulls(values):
        return extract(values)
    return spread(extract([value for value in values if value is not None]), values)


def has_nulls(values: Values) -> bool:
    """Whether there is None among values; `in` would ask each whether it is equal."""
    return type(None) in set(map(type, values))


def spread(found: pa.Array, values: Values) -> pa.Array:
    """An array of those values that are not None as an array of all of them."""
    is_null = np.fromiter((value is None for value in values), np.bool_, len(values))
    places = np.cumsum(~is_null) - 1
    return found.take(pa.array(places, mask=is_null))


def extracted(items: Sequence[T], rows: Sequence[int], extract: Callable[[Sequence[T]], pa.Array]) -> Read:
    """A column of many objects, without those that do not fit; `rows` are their places."""
    failures = (*NOT_FITTING, InvalidData)
    try:
        return Read(extract(items), np.array(rows, dtype=np.int64), [])
    except failures:
        pieces = read_in_pieces(items, extract, failures)
    arrays: list[Any] = []
    good: list[int] = []
    bad: Bad = []
    made = dict(zip((span.start for span in pieces.rows), zip(pieces.good, pieces.rows, strict=True), strict=True))
    for start in sorted([*made, *pieces.left]):
        if start in made:
            arrays.append(made[start][0])
            good.extend(rows[place] for place in made[start][1])
            continue
        try:
            arrays.append(extract(items[start : start + 1]))
            good.append(rows[start])
        except InvalidData as error:
            bad.append((rows[start], error))
        except NOT_FITTING as error:
            bad.append((rows[start], InvalidData(f"the value does not fit its column: {error}")))
    data = pa.concat_arrays(arrays) if arrays else extract(items[:0])
    return Read(data, np.array(good, dtype=np.int64), bad)
