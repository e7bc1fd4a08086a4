"""JSON documents without a schema: what they have in common becomes columns, batch by batch.

Whole numbers are 64 bits, and doubles where others have a fraction; a field that is missing is null. Documents that
contradict each other (a number here, text there) become parts of different types: what to do about that is for whoever
keeps the table. A field that is null, or an empty list or object, in all documents says nothing about its type and is
left out.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from typing_extensions import override

from schema_registry.serdes.errors import InvalidData
from streams.spark.decoding.decoder import NO_SCHEMA_ID, Decoded, Part, Rows
from streams.spark.decoding.json_shapes import (
    Contradiction,
    Shape,
    array_of_shape,
    merged_shape,
    shape_of,
    shape_of_all,
)
from streams.spark.decoding.plain import SchemalessDecoder
from streams.spark.decoding.reading import bodies_list

_BROKEN: Final = "Converting byte[] to Kafka Connect data failed due to serialization error: "
_LONG_NUMBER: Final = re.compile(rb"[0-9]{19}")
_INT64: Final = 1 << 63
_MOST_SHAPES: Final = 20
"""Types that one batch may have; records of yet another one are bad."""
_decode = msgspec.json.Decoder().decode


class JsonDecoder(SchemalessDecoder):
    """One JSON document per value."""

    @override
    def _decode_present(self, values: pa.Array, rows: Rows, decoded: Decoded) -> Decoded:
        records = bodies_list(values)
        places = rows.tolist()
        try:
            if any(map(_LONG_NUMBER.search, records)) or not all(records):
                raise InvalidData("each is looked at")
            documents: list[Any] = list(map(_decode, records))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidData):
            documents, places = _one_by_one(records, places, decoded)
        return _into_parts(documents, places, decoded)


def _one_by_one(records: Sequence[bytes], rows: Sequence[int], decoded: Decoded) -> tuple[list[Any], list[int]]:
    documents: list[Any] = []
    good: list[int] = []
    for row, record in zip(rows, records, strict=True):
        try:
            documents.append(_document(record))
            good.append(row)
        except InvalidData as error:
            decoded.bad.append((row, error))
    return documents, good


def _document(record: bytes) -> Any:
    if not record:
        return None
    try:
        document = _decode(record)
    except RecursionError:
        raise InvalidData(f"{_BROKEN}it is nested too deep") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidData(f"{_BROKEN}{error}") from None
    if _LONG_NUMBER.search(record):
        _refuse_long_numbers(document)
    return document


def _refuse_long_numbers(document: Any) -> None:
    waiting = [document]
    while waiting:
        item = waiting.pop()
        if type(item) is int and not -_INT64 <= item < _INT64:
            raise InvalidData("A whole number of JSON does not fit into 64 bits")
        if isinstance(item, dict | list):
            waiting.extend(item.values() if isinstance(item, dict) else item)


def _into_parts(documents: list[Any], rows: list[int], decoded: Decoded) -> Decoded:
    if None in documents:
        nulls = [row for row, document in zip(rows, documents, strict=True) if document is None]
        rows = [row for row, document in zip(rows, documents, strict=True) if document is not None]
        documents = [document for document in documents if document is not None]
        decoded = decoded._replace(nulls=np.sort(np.concatenate([decoded.nulls, np.array(nulls, dtype=np.int64)])))
    if not documents:
        return decoded
    for shape, some in _same_shaped(documents, decoded, rows):
        data = array_of_shape([documents[place] for place in some] if len(some) < len(documents) else documents, shape)
        places = np.array([rows[place] for place in some], dtype=np.int64)
        decoded.parts.append(Part(NO_SCHEMA_ID, places, data))
    return decoded


def _same_shaped(documents: list[Any], decoded: Decoded, rows: list[int]) -> Iterable[tuple[Shape, Sequence[int]]]:
    """Documents that one type can hold, the first one first."""
    try:
        return [(shape_of_all(documents), range(len(documents)))]
    except Contradiction:
        pass
    found: list[tuple[Shape, list[int]]] = []
    for place, document in enumerate(documents):
        try:
            own = shape_of(document)
        except Contradiction:
            decoded.bad.append((rows[place], InvalidData("the document has a list of values of different types")))
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
                decoded.bad.append((rows[place], error))
    return found
