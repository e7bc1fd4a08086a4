"""JSON documents without a schema: what they have in common becomes columns, batch by batch.

Whole numbers are 64 bits, and doubles where others have a fraction; a field that is missing is null. Documents that
contradict each other (a number here, text there) become parts of different types: what to do about that is for whoever
keeps the table. A field that is null, or an empty list or object, in all documents says nothing about its type and is
left out.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from typing_extensions import override

from schema_registry.serdes.arrow.binary import Rows
from schema_registry.serdes.arrow.extraction import has_nulls
from schema_registry.serdes.arrow.reading import Bad, bodies_list
from schema_registry.serdes.errors import InvalidData
from streams.spark.decoding.decoder import NO_SCHEMA_ID, Decoded, Part
from streams.spark.decoding.json_shapes import (
    Contradiction,
    Shape,
    array_of_all,
    array_of_shape,
    merged_shape,
    shape_of,
)
from streams.spark.decoding.plain import SchemalessDecoder

_BROKEN: Final = "Converting byte[] to Kafka Connect data failed due to serialization error: "
_INT64: Final = 1 << 63
_MOST_SHAPES: Final = 20
"""Types that one batch may have; records of yet another one are bad."""
_decode = msgspec.json.Decoder().decode


class JsonDecoder(SchemalessDecoder):
    """One JSON document per value."""

    @override
    def _decode_present(self, values: pa.Array, rows: Rows, decoded: Decoded) -> Decoded:
        records = bodies_list(values)
        try:
            data = array_of_all(list(map(_decode, records)))
            if data is not None and not data.null_count:
                decoded.parts.append(Part(NO_SCHEMA_ID, rows, data))
                return decoded
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError, Contradiction):
            pass  # Something is bad, or of another type: each is looked at.
        documents, places = _one_by_one(records, rows.tolist(), decoded.bad)
        try:
            return _into_parts(documents, places, decoded)
        except OverflowError:
            documents, places = _without_long_numbers(documents, places, decoded.bad)
            return _into_parts(documents, places, decoded)


def _one_by_one(records: Sequence[bytes], rows: Sequence[int], bad: Bad) -> tuple[list[Any], list[int]]:
    documents: list[Any] = []
    good: list[int] = []
    for row, record in zip(rows, records, strict=True):
        try:
            documents.append(_decode(record) if record else None)
            good.append(row)
        except RecursionError:
            bad.append((row, InvalidData(f"{_BROKEN}it is nested too deep")))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            bad.append((row, InvalidData(f"{_BROKEN}{error}")))
    return documents, good


def _without_long_numbers(documents: list[Any], rows: list[int], bad: Bad) -> tuple[list[Any], list[int]]:
    kept: list[Any] = []
    good: list[int] = []
    for row, document in zip(rows, documents, strict=True):
        try:
            _refuse_long_numbers(document)
        except InvalidData as error:
            bad.append((row, error))
        else:
            kept.append(document)
            good.append(row)
    return kept, good


def _refuse_long_numbers(document: Any) -> None:
    waiting = [document]
    while waiting:
        item = waiting.pop()
        if type(item) is int and not -_INT64 <= item < _INT64:
            raise InvalidData("A whole number of JSON does not fit into 64 bits")
        if isinstance(item, dict | list):
            waiting.extend(item.values() if isinstance(item, dict) else item)


def _into_parts(documents: list[Any], rows: list[int], decoded: Decoded) -> Decoded:
    if has_nulls(documents):
        nulls = [row for row, document in zip(rows, documents, strict=True) if document is None]
        rows = [row for row, document in zip(rows, documents, strict=True) if document is not None]
        documents = [document for document in documents if document is not None]
        decoded = decoded._replace(nulls=np.sort(np.concatenate([decoded.nulls, np.array(nulls, dtype=np.int64)])))
    if not documents:
        return decoded
    bad: Bad = []
    try:
        data = array_of_all(documents)
        found = [(array_of_shape(documents, None) if data is None else data, rows)]
    except Contradiction:
        found = [
            (array_of_shape([documents[place] for place in some], shape), [rows[place] for place in some])
            for shape, some in _same_shaped(documents, rows, bad)
        ]
    decoded.bad.extend(bad)
    decoded.parts.extend(Part(NO_SCHEMA_ID, np.array(some, dtype=np.int64), data) for data, some in found)
    return decoded


def _same_shaped(documents: list[Any], rows: list[int], bad: Bad) -> list[tuple[Shape, list[int]]]:
    """Documents that one type can hold, the first one first."""
    found: list[tuple[Shape, list[int]]] = []
    for place, document in enumerate(documents):
        try:
            own = shape_of(document)
        except Contradiction:
            bad.append((rows[place], InvalidData("the document has a list of values of different types")))
            continue
        for index, (shape, some) in enumerate(found):
            try:
                found[index] = merged_shape(shape, own), some
            except Contradiction:
                continue
            some.append(place)
            break
        else:
            if len(found) < _MOST_SHAPES:
                found.append((own, [place]))
            else:
                error = InvalidData(f"the document contradicts {_MOST_SHAPES} others that contradict each other")
                bad.append((rows[place], error))
    return found
