"""Arrays of what a schema holds as arrays of the types of columns, and the other way round."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schema_registry.serdes.arrow import joining
from streams.formats.arrays import TIME, arrow_type
from streams.formats.fitting import find_name
from streams.model.types import Array, Decimal, Map, Name, Primitive, SqlType, Struct

_WRAPPED = "value"


_ARROW: Final[Mapping[type, Callable[[pa.DataType], bool]]] = {
    Struct: pa.types.is_struct,
    Array: pa.types.is_list,
    Map: pa.types.is_map,
    Decimal: pa.types.is_decimal,
    Primitive: lambda _: True,
}
"""Whether values of an Arrow type may become those of a type."""


class Misfit(Exception):
    """Values of this type do not become those of a column all at once; one by one they may."""


def fit_array(array: pa.Array, kind: SqlType) -> pa.Array:
    """Values of a schema as those of a column; raises Misfit or ArrowException."""
    type_ = arrow_type(kind)
    if array.type == type_:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), type_)
    if not _ARROW[type(kind)](array.type):
        raise Misfit
    match kind:
        case Struct():
            return _structs(array, kind)
        case Array(element):
            return lists_like(array, type_, lambda items: fit_array(items, element))
        case Map(key, value):
            if arrow_type(key) != array.type.key_type:
                raise Misfit
            return maps_like(array, type_, lambda items: fit_array(items, value))
        case Decimal():
            return array.cast(type_)
        case Primitive(name):
            return _plain(array, name, type_)


def _plain(array: pa.Array, name: Name, type_: pa.DataType) -> pa.Array:
    given = array.type
    if pa.types.is_struct(given) and [field.name for field in given] == [_WRAPPED]:  # A message around a plain value.
        return fit_array(array.flatten()[0], Primitive(name))
    match name:
        case Name.INTEGER | Name.BIGINT:
            is_right = pa.types.is_integer(given)
        case Name.DOUBLE:
            is_right = pa.types.is_floating(given) or pa.types.is_integer(given)
        case Name.TIME:
            is_right = pa.types.is_time32(given)
            type_ = TIME
        case _:
            is_right = False
    if not is_right:
        raise Misfit
    return array.cast(type_)


def _structs(array: pa.Array, kind: Struct) -> pa.Array:
    if not kind.fields:
        raise Misfit
    columns = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    taken = frozenset(field.name for field in kind.fields)
    parts = []
    for field in kind.fields:
        name = field.name if field.name in columns else find_name(columns, field.name, taken)
        is_missing = name is None
        parts.append(
            pa.nulls(len(array), arrow_type(field.type)) if is_missing else fit_array(columns[str(name)], field.type)
        )
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(parts, fields=list(arrow_type(kind)), mask=mask)


def shaped_like(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """An array under the names that the type has for fields, with messages around plain values where it has those."""
    if array.type == type_:
        return array
    if pa.types.is_struct(type_):
        return _struct_like(array, type_)
    if pa.types.is_list(type_) and pa.types.is_list(array.type):
        inner = type_.value_type
        made = pa.list_(_shape(array.type.value_type, inner))
        return lists_like(array, made, lambda items: shaped_like(items, inner))
    if pa.types.is_map(type_) and pa.types.is_map(array.type):
        inner = type_.item_type
        made = pa.map_(array.type.key_type, _shape(array.type.item_type, inner))
        return maps_like(array, made, lambda items: shaped_like(items, inner))
    return array


def _shape(given: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    return shaped_like(pa.array([], given), wanted).type


def _struct_like(array: pa.Array, type_: pa.DataType) -> pa.Array:
    mask = array.is_null() if array.null_count else None
    if not pa.types.is_struct(array.type):
        return pa.StructArray.from_arrays([array], names=[_WRAPPED], mask=mask)
    wanted = {field.name: field.type for field in type_}
    taken = frozenset(field.name for field in array.type)
    names = [name if name in wanted else find_name(wanted, name, taken) or name for name in array.type.names]
    parts = [shaped_like(part, wanted.get(name, part.type)) for part, name in zip(array.flatten(), names, strict=True)]
    return pa.StructArray.from_arrays(parts, names=names, mask=mask)


def lists_like(array: pa.Array, type_: pa.DataType, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """The same lists with other items."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy()
    mask = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(_offsets(lengths), change(array.flatten()), type=type_, mask=mask)


def maps_like(array: pa.Array, type_: pa.DataType, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """The same maps with other values."""
    some = array.drop_null()
    if not len(some):
        return pa.nulls(len(array), type_)
    entries, counts = joining.items_of(some)
    keys, items = entries.flatten()
    made = pa.MapArray.from_arrays(_offsets(counts), keys, change(items), type=type_)
    if len(some) == len(array):
        return made
    is_there = joining.is_valid(array)
    return made.take(pa.array(np.cumsum(is_there) - 1, mask=~is_there))


def _offsets(lengths: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
