"""Keys or values decoded into one column of one type, whichever version of the schema each was written with."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from schema_registry.serdes.arrow.binary import Rows
from streams.errors import WrongOption
from streams.spark.decoding.decoder import Decoded, Decoder
from streams.spark.decoding.spec import DecoderSpec
from streams.spark.types import merged_type


def opened(spec: DecoderSpec) -> Decoder:
    """The decoder that is asked for."""
    # What decoders need is large, and every process of a query imports this module: only who decodes pays for it.
    from streams.spark.decoding.opening import open_decoder

    return open_decoder(spec)


class Column(NamedTuple):
    """Data of one type, and why some are missing."""

    data: pa.Array
    errors: pa.Array
    """Text where something could not be decoded, otherwise null."""


def decoded_column(
    decoder: Decoder, values: pa.Array, topic: str, *, headers: pa.Array | None, wanted: pa.DataType
) -> Column:
    """Values as one column; those of other versions get the shape of `wanted`: lacking fields null, others dropped."""
    decoded = decoder.decode(values, topic, headers)
    errors = _errors(decoded)
    places = np.full(len(values), -1, np.int64)
    pieces: list[pa.Array] = []
    count = 0
    for part in decoded.parts:
        try:
            piece = fitted(part.data, wanted)
        except (TypeError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            errors |= dict.fromkeys(part.rows.tolist(), f"Schema {part.schema_id} does not fit the columns: {error}")
            continue
        places[part.rows] = np.arange(count, count + len(piece))
        pieces.append(piece)
        count += len(piece)
    return Column(_placed(pieces, places, wanted), _texts(errors, len(values)))


def common_type(option: str, types: Iterable[tuple[str, pa.DataType]]) -> pa.DataType:
    """A type that holds the values of all topics; WrongOption when there is none."""
    common, first = pa.null(), ""
    for topic, kind in types:
        merged = merged_type(common, kind)
        if merged is None:
            raise WrongOption(option, topic, f"its values do not fit into one column with those of {first}")
        common, first = merged, first or topic
    return common


def fitted(data: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Data in another type that can hold it; TypeError when it cannot. Fields that are not wanted are dropped."""
    if data.type.equals(wanted):
        return data
    if pa.types.is_struct(wanted) and pa.types.is_struct(data.type):
        return _fitted_struct(data, wanted)
    if pa.types.is_list(wanted) and pa.types.is_list(data.type):
        flat = fitted(data.values, wanted.value_type)
        return pa.ListArray.from_arrays(data.offsets, flat, type=wanted, mask=_mask(data))
    if pa.types.is_map(wanted) and pa.types.is_map(data.type):
        items = fitted(data.items, wanted.item_type)
        plain = pa.MapArray.from_arrays(data.offsets, data.keys.cast(wanted.key_type), items, mask=_mask(data))
        return plain.cast(wanted)
    if merged_type(wanted, data.type) != wanted:
        raise TypeError(f"{data.type} is not {wanted}")
    return data.cast(wanted)


def _fitted_struct(data: pa.Array, wanted: pa.DataType) -> pa.Array:
    has = {field.name: index for index, field in enumerate(data.type)}
    children = [
        fitted(data.field(has[field.name]), field.type) if field.name in has else pa.nulls(len(data), field.type)
        for field in wanted
    ]
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=_mask(data))


def _mask(data: pa.Array) -> pa.Array | None:
    return data.is_null() if data.null_count else None


def _errors(decoded: Decoded) -> dict[int, str]:
    errors = {row: f"{type(error).__name__}: {error}" for row, error in decoded.bad}
    for left in decoded.left_over:
        errors |= dict.fromkeys(left.rows.tolist(), f"Schema {left.schema_id} has no columns here: {left.reason}")
    return errors


def _texts(errors: dict[int, str], count: int) -> pa.Array:
    if not errors:
        return pa.nulls(count, pa.string())
    return pa.array([errors.get(row) for row in range(count)], pa.string())


def _placed(pieces: list[pa.Array], places: Rows, wanted: pa.DataType) -> pa.Array:
    if not pieces:
        return pa.nulls(len(places), wanted)
    joined = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
    missing = places < 0
    if len(joined) == len(places) and len(pieces) == 1:
        return joined
    return joined.take(pa.array(places, mask=missing))
