"""Decodes keys or values into one column of one type, whichever version of the schema each was written with."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from schema_registry.serdes.arrow.binary import Rows
from streams.errors import WrongOption
from streams.spark.decoding.decoder import Decoder
from streams.spark.decoding.spec import DecoderSpec
from streams.spark.types import merged_type


def open_decoder(spec: DecoderSpec) -> Decoder:
    """The decoder for a spec."""
    # Every process of a query imports this module; only those that decode should pay for the large imports.
    from streams.spark.decoding.opening import open_decoder

    return open_decoder(spec)


class Column(NamedTuple):
    """Data of one type, and the errors of values that could not be decoded."""

    data: pa.Array
    errors: pa.Array
    """Text where a value could not be decoded, otherwise null."""


def decode_column(
    decoder: Decoder, values: pa.Array, topic: str, *, headers: pa.Array | None, wanted: pa.DataType
) -> Column:
    """Values as one column of type `wanted`: fields that an old schema lacks are null, others are dropped."""
    decoded = decoder.decode(values, topic, headers)
    errors = {row: f"{type(error).__name__}: {error}" for row, error in decoded.bad}
    for left in decoded.left_over:
        errors |= dict.fromkeys(left.rows.tolist(), f"Schema {left.schema_id} has no columns here: {left.reason}")
    indices = np.full(len(values), -1, np.int64)
    pieces: list[pa.Array] = []
    count = 0
    for part in decoded.parts:
        try:
            piece = cast_column(part.data, wanted)
        except (TypeError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            errors |= dict.fromkeys(part.rows.tolist(), f"Schema {part.schema_id} does not fit the columns: {error}")
            continue
        indices[part.rows] = np.arange(count, count + len(piece))
        pieces.append(piece)
        count += len(piece)
    texts = pa.array([errors.get(row) for row in range(len(values))], pa.string()) if errors else None
    return Column(_in_order(pieces, indices, wanted), pa.nulls(len(values), pa.string()) if texts is None else texts)


def common_type(option: str, types: Iterable[tuple[str, pa.DataType]]) -> pa.DataType:
    """A type that holds the values of all topics; WrongOption if there is none."""
    common, first = pa.null(), ""
    for topic, kind in types:
        merged = merged_type(common, kind)
        if merged is None:
            raise WrongOption(option, topic, f"its values do not fit into one column with those of {first}")
        common, first = merged, first or topic
    return common


def cast_column(data: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Data cast to a type that can hold it; TypeError if it cannot. Fields that `wanted` lacks are dropped."""
    if data.type.equals(wanted):
        return data
    if pa.types.is_struct(wanted) and pa.types.is_struct(data.type):
        has = {field.name: index for index, field in enumerate(data.type)}
        children = [
            cast_column(data.field(has[field.name]), field.type)
            if field.name in has
            else pa.nulls(len(data), field.type)
            for field in wanted
        ]
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=_mask(data))
    if pa.types.is_list(wanted) and pa.types.is_list(data.type):
        flat = cast_column(data.values, wanted.value_type)
        return pa.ListArray.from_arrays(data.offsets, flat, type=wanted, mask=_mask(data))
    if pa.types.is_map(wanted) and pa.types.is_map(data.type):
        items = cast_column(data.items, wanted.item_type)
        plain = pa.MapArray.from_arrays(data.offsets, data.keys.cast(wanted.key_type), items, mask=_mask(data))
        return plain.cast(wanted)
    if merged_type(wanted, data.type) != wanted:
        raise TypeError(f"{data.type} is not {wanted}")
    return data.cast(wanted)


def _mask(data: pa.Array) -> pa.Array | None:
    return data.is_null() if data.null_count else None


def _in_order(pieces: list[pa.Array], indices: Rows, wanted: pa.DataType) -> pa.Array:
    """The pieces as one column in the order of the rows; null where the index is negative."""
    if not pieces:
        return pa.nulls(len(indices), wanted)
    joined = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
    if len(joined) == len(indices) and len(pieces) == 1:
        return joined
    return joined.take(pa.array(indices, mask=indices < 0))
