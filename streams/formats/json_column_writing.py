"""Columns as JSON documents, byte for byte those that `json_writing` makes."""

import binascii
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schema_registry.serdes.arrow import joining, stored
from schema_registry.serdes.arrow.joining import Pieces
from schema_registry.serdes.arrow.json_writing import enclose, quote_texts
from streams.formats.json_writing import json_double
from streams.model.types import Array, Decimal, Field, Map, Name, Primitive, SqlType, Struct

_NULL: Final = b"null"
_PLAIN_MIN, _PLAIN_MAX = 1e-3, 1e7
"""Where numbers are written without an exponent."""


def write_documents(fields: Sequence[Field], columns: Sequence[pa.Array], *, is_wrapped: bool) -> pa.Array:
    """Rows as documents; those of a bare value that is null are null. Raises InvalidData."""
    if is_wrapped:
        rows = pa.StructArray.from_arrays(list(columns), names=[str(place) for place in range(len(columns))])
        return joining.write_rows(rows, lambda some: _object(fields, some.flatten()))
    (field,), (column,) = fields, columns
    some = column.drop_null()
    data = joining.write_rows(some, lambda part: _present(field.type, part))
    if len(some) == len(column):
        return data
    places = np.cumsum(joining.is_valid(column)) - 1
    return data.take(pa.array(places, mask=~joining.is_valid(column)))


def _encode(kind: SqlType, array: pa.Array) -> Pieces:
    """The pieces of values that may be null."""
    if not array.null_count:
        return _present(kind, array)
    some = array.drop_null()
    data = joining.join(_present(kind, some), len(some))
    return [joining.fill_rows(data, joining.is_valid(array), _NULL)]


def _present(kind: SqlType, array: pa.Array) -> Pieces:
    match kind:
        case Struct(fields):
            return _object(fields, array.flatten())
        case Array(element):
            items, counts = joining.items_of(array)
            data = joining.join([b",", *_encode(element, items)], len(items))
            return [enclose(joining.group_items(data, counts), b"["), b"]"]
        case Map(_, value):
            keys, values, counts = joining.entries_of(array)
            pieces: Pieces = [b",", *quote_texts(joining.text_of(keys)), b":", *_encode(value, values)]
            return [enclose(joining.group_items(joining.join(pieces, len(keys)), counts), b"{"), b"}"]
        case Decimal():
            return [pa.array([str(value).encode() for value in array.to_pylist()], pa.binary())]
        case Primitive(name):
            return _plain(name, array)


def _object(fields: Sequence[Field], columns: Sequence[pa.Array]) -> Pieces:
    pieces: Pieces = []
    for field, column in zip(fields, columns, strict=True):
        opening = b"," if pieces else b"{"
        pieces += [opening + msgspec.json.encode(field.name) + b":", *_encode(field.type, column)]
    return [*pieces, b"}"] if pieces else [b"{}"]


def _plain(name: Name, array: pa.Array) -> Pieces:
    match name:
        case Name.STRING:
            return quote_texts(joining.text_of(array))
        case Name.BYTES:
            encoded = [binascii.b2a_base64(value, newline=False) for value in joining.bytes_of(array).to_pylist()]
            return [b'"', pa.array(encoded, pa.binary()), b'"']
        case Name.DOUBLE:
            return [double_texts(array, json_double)]
        case Name.DATE:
            return [_texts(pa.array(stored.days(array)))]
        case Name.TIME:
            return [_texts(pa.array(stored.milliseconds_of_day(array)))]
        case Name.TIMESTAMP:
            return [_texts(pa.array(stored.milliseconds(array)))]
        case _:
            return [_texts(array)]


def double_texts(array: pa.Array, odd_text: Callable[[float], bytes]) -> pa.Array:
    """Doubles in Java's notation: Arrow's is the same for most, but for the point of whole numbers."""
    numbers: np.ndarray[Any, np.dtype[np.float64]] = array.to_numpy(zero_copy_only=False)
    sizes = np.abs(numbers)
    is_plain = (sizes >= _PLAIN_MIN) & (sizes < _PLAIN_MAX)
    texts = _texts(array)
    is_whole = is_plain & (numbers == np.floor(numbers))
    if is_whole.any():
        pointed = pc.binary_join_element_wise(texts, pa.scalar(b".0", pa.binary()), pa.scalar(b"", pa.binary()))
        texts = pc.if_else(pa.array(is_whole), pointed, texts)
    if is_plain.all():
        return texts
    odd = pa.array([odd_text(value) for value in numbers[~is_plain].tolist()], pa.binary())
    return pc.replace_with_mask(texts, pa.array(~is_plain), odd)


def _texts(array: pa.Array) -> pa.Array:
    return array.cast(pa.string()).cast(pa.binary())
