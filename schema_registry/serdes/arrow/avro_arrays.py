"""Arrays as pyruhvro reads them made into columns: it knows numbers, texts, structs, lists, maps and unions."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schema_registry.serdes.arrow.binary import Doubt
from schema_registry.serdes.arrow.stored import decimals, valid_bits, within

Change: TypeAlias = Callable[[pa.Array], pa.Array]


def struct_change(type_: pa.DataType, changes: list[Change | None]) -> Change:
    """Structs made anew of their changed fields."""
    fields = [type_.field(index) for index in range(type_.num_fields)]

    def change(array: pa.Array) -> pa.Array:
        parts = [array.field(index) for index in range(len(fields))]
        made = [part if do is None else do(part) for part, do in zip(parts, changes, strict=True)]
        return pa.StructArray.from_arrays(made, fields=fields, mask=_mask(array))

    return change


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def choice_change(type_: pa.DataType, changes: list[Change | None], places: list[int], null: int | None) -> Change:
    """Unions of several types as structs with a field for each; `places` are their branches, `null` is that of null."""
    fields = [type_.field(index) for index in range(type_.num_fields)]

    def change(array: pa.Array) -> pa.Array:
        chosen = array.type_codes
        made = []
        for field, place, do in zip(fields, places, changes, strict=True):
            part = array.field(place).field(0)
            part = part if do is None else do(part)
            made.append(pc.if_else(pc.equal(chosen, place), part, pa.scalar(None, field.type)))
        is_null = None if null is None else pc.equal(chosen, null)
        return pa.StructArray.from_arrays(made, fields=fields, mask=is_null)

    return change


def list_change(type_: pa.DataType, change: Change | None) -> Change:
    """Lists of changed items."""

    def change_list(array: pa.Array) -> pa.Array:
        values = array.values if change is None else change(array.values)
        return pa.ListArray.from_arrays(array.offsets, values, type=type_, mask=_mask(array))

    return change_list


def map_change(type_: pa.DataType, change: Change | None) -> Change:
    """Maps with changed values."""

    def change_map(array: pa.Array) -> pa.Array:
        _check_keys(array)
        items = array.items if change is None else change(array.items)
        return pa.MapArray.from_arrays(array.offsets, array.keys, items, type=type_, mask=_mask(array))

    return change_map


def checked(array: pa.Array) -> pa.Array:
    """Texts, which pyruhvro takes for UTF-8 without looking."""
    array.validate(full=True)
    return array


def _check_keys(array: pa.Array) -> None:
    """Keys that are there twice: the last counts, which only the careful way knows."""
    checked(array.keys)
    codes = array.keys.dictionary_encode()
    if len(codes.dictionary) == len(codes):
        return
    lengths = np.diff(array.offsets.to_numpy())
    places = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths) * len(codes.dictionary)
    places += codes.indices.to_numpy()
    if len(np.unique(places)) < len(places):
        raise Doubt


def symbols_change(symbols: pa.Array) -> Change:
    """Numbers as the symbols of an enum."""

    def change(array: pa.Array) -> pa.Array:
        return symbols.take(within(array, 0, len(symbols) - 1))

    return change


def _fixed_matrix(array: pa.Array) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    parts = [array.field(index) for index in range(array.type.num_fields)]
    rows = [np.frombuffer(part.buffers()[1], np.uint8).reshape(len(part), -1) for part in parts if len(part)]
    return np.hstack(rows) if rows else np.empty((0, 1), np.uint8)


def fixed_bytes(array: pa.Array) -> pa.Array:
    """Bytes that were read as numbers."""
    digits = np.ascontiguousarray(_fixed_matrix(array))
    type_ = pa.binary(digits.shape[1])
    return pa.Array.from_buffers(type_, len(array), [valid_bits(array), pa.py_buffer(digits)]).cast(pa.binary())


def fixed_decimals(type_: pa.DataType) -> Change:
    """Decimals that were read as such numbers."""
    return lambda array: decimals(_fixed_matrix(array), type_, valid_bits(array))
