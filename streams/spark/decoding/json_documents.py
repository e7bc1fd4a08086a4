"""JSON documents without a schema: what they have in common becomes columns, batch by batch.

Whole numbers have 64 bits, and are doubles if others have a fraction; a missing field is null. Documents that
contradict each other (a number here, text there) become parts of different types, which the table may accept or refuse.
A field that is null, or an empty list or object, in all documents has no known type and is left out.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
from typing_extensions import override

from schema_registry.serdes.arrow import reading
from schema_registry.serdes.arrow.binary import Rows
from schema_registry.serdes.arrow.reading import Bad, Values, bodies_list
from schema_registry.serdes.errors import InvalidData
from streams.formats.collector import collector_paused
from streams.spark.decoding.decoder import NO_SCHEMA_ID, Decoded, Part
from streams.spark.decoding.plain import SchemalessDecoder

_BROKEN: Final = "Converting byte[] to Kafka Connect data failed due to serialization error: "
_INT64: Final = 1 << 63
_DOUBLE: Final = 1 << 53
"""Up to here, doubles hold every whole number."""
_LONG_NUMBER: Final = re.compile(rb"[0-9]{19}")
_SHAPES_MAX: Final = 20
"""Types that one batch may have; records of yet another one are bad."""
_PLAIN: Final[Mapping[type, pa.DataType]] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
}
_decode = msgspec.json.Decoder().decode


class JsonDecoder(SchemalessDecoder):
    """One JSON document per value."""

    @override
    def _decode_present(self, values: pa.Array, rows: Rows, decoded: Decoded) -> Decoded:
        records = bodies_list(values)
        try:
            with collector_paused():
                data = _array_of_all(list(map(_decode, records)))
            if data is not None and not data.null_count:
                decoded.parts.append(Part(NO_SCHEMA_ID, rows, data))
                return decoded
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError, _Contradiction):
            pass  # Some document is bad, or of another type than the others: look at each.
        documents: list[Any] = []
        good: list[int] = []
        nulls: list[int] = []
        for row, record in zip(rows.tolist(), records, strict=True):
            try:
                document = _read(record)
            except InvalidData as error:
                decoded.bad.append((row, error))
                continue
            (nulls if document is None else good).append(row)
            documents += [] if document is None else [document]
        for some in _group_by_shape(documents, good, decoded.bad):
            data = _array_of_all([documents[place] for place in some])
            if data is None:  # Nothing is known about any field.
                data = pa.array([{}] * len(some), type=pa.struct([]))
            decoded.parts.append(Part(NO_SCHEMA_ID, np.array([good[place] for place in some], dtype=np.int64), data))
        return decoded._replace(nulls=np.sort(np.concatenate([decoded.nulls, np.array(nulls, dtype=np.int64)])))


def _read(record: bytes) -> Any:
    """A document; raises InvalidData."""
    try:
        document = _decode(record) if record else None
    except RecursionError:
        raise InvalidData(f"{_BROKEN}it is nested too deep") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidData(f"{_BROKEN}{error}") from error
    waiting = [document] if _LONG_NUMBER.search(record) else []
    while waiting:
        item = waiting.pop()
        if type(item) is int and not -_INT64 <= item < _INT64:
            raise InvalidData("A whole number does not fit into 64 bits")
        if isinstance(item, dict | list):
            waiting.extend(item.values() if isinstance(item, dict) else item)
    return document


# --- columns of documents that one type holds ------------------------------------------------------------------------


class _Contradiction(Exception):
    """No type holds all values."""


def _array_of_all(values: Values) -> pa.Array | None:
    """Values as an array of the type that holds all of them, None if that is unknown; raises _Contradiction."""
    kinds = set(map(type, values))
    is_nullable = type(None) in kinds
    kinds.discard(type(None))
    if not kinds:
        return None
    if len(kinds) > 1:
        if kinds != {int, float}:
            raise _Contradiction
        return _numbers(values)
    kind = kinds.pop()
    if kind not in (dict, list):
        return pa.array(values, type=_PLAIN[kind])
    present = [value for value in values if value is not None] if is_nullable else values
    if kind is list:
        items = _array_of_all(list(chain.from_iterable(present)))
        return None if items is None else reading.lists(pa.list_(items.type), lambda _: items)(values)
    found = _struct_of_all(present)
    return found if found is None or not is_nullable else reading.insert_nulls(found, values)


def _struct_of_all(values: Sequence[dict[str, Any]]) -> pa.Array | None:
    names = dict.fromkeys(chain.from_iterable(values))
    is_same = sum(map(len, values)) == len(names) * len(values)
    parts = {}
    for name in names:
        found = list(map(itemgetter(name), values)) if is_same else [value.get(name) for value in values]
        part = _array_of_all(found)
        if part is not None:
            parts[name] = part
    return pa.StructArray.from_arrays(list(parts.values()), names=list(parts)) if parts else None


def _numbers(values: Values) -> pa.Array:
    """Whole numbers among others as doubles, if these hold them."""
    if any(type(value) is int and not -_INT64 <= value < _INT64 for value in values):
        raise OverflowError
    if _has_long(values):
        raise _Contradiction
    return pa.array([None if value is None else float(value) for value in values], type=pa.float64())


def _has_long(values: Values) -> bool:
    return any(type(value) is int and not -_DOUBLE <= value <= _DOUBLE for value in values)


# --- types of documents that contradict each other -------------------------------------------------------------------

_Shape: TypeAlias = "str | _ListShape | _ObjectShape | None"
"""The name of a plain type, or what lists and objects hold; None if unknown. A `long` is an `int` no double holds."""
_NUMBERS: Final[frozenset[_Shape]] = frozenset({"int", "long", "float"})


class _ListShape:
    """A list of values."""

    __slots__ = ("items",)

    def __init__(self, items: _Shape) -> None:
        self.items = items


class _ObjectShape:
    """An object with fields, in the order in which they first occurred."""

    __slots__ = ("fields",)

    def __init__(self, fields: dict[str, _Shape]) -> None:
        self.fields = fields


def _group_by_shape(documents: Sequence[Any], rows: Sequence[int], bad: Bad) -> Iterable[list[int]]:
    """The places of documents that one type can hold, the first one first."""
    found: list[tuple[_Shape, list[int]]] = []
    for place, document in enumerate(documents):
        try:
            own = _shape_of_all([document])
        except _Contradiction:
            bad.append((rows[place], InvalidData("the document has a list of values of different types")))
            continue
        for index, (shape, some) in enumerate(found):
            try:
                found[index] = _merge_shapes(shape, own), some
            except _Contradiction:
                continue
            some.append(place)
            break
        else:
            if len(found) < _SHAPES_MAX:
                found.append((own, [place]))
            else:
                error = InvalidData(f"the document contradicts {_SHAPES_MAX} others that contradict each other")
                bad.append((rows[place], error))
    return [some for _, some in found]


def _shape_of_all(values: Values) -> _Shape:
    """The shape that holds all of many values; raises _Contradiction."""
    kinds = set(map(type, values))
    kinds.discard(type(None))
    if not kinds:
        return None
    if kinds == {int, float} and not _has_long(values):
        return "float"
    if len(kinds) > 1:
        raise _Contradiction
    kind = kinds.pop()
    if kind is int:
        return "long" if _has_long(values) else "int"
    present = [value for value in values if value is not None]
    if kind is dict:
        names = dict.fromkeys(chain.from_iterable(present))
        return _ObjectShape({name: _shape_of_all([value.get(name) for value in present]) for name in names})
    return _ListShape(_shape_of_all(list(chain.from_iterable(present)))) if kind is list else str(kind.__name__)


def _merge_shapes(first: _Shape, second: _Shape) -> _Shape:
    """The shape that holds values of both; raises _Contradiction."""
    if first is None or second is None:
        return first if second is None else second
    if first == second:
        return first
    if "int" in (first, second) and {first, second} <= _NUMBERS:
        return second if first == "int" else first
    if isinstance(first, _ListShape) and isinstance(second, _ListShape):
        return _ListShape(_merge_shapes(first.items, second.items))
    if isinstance(first, _ObjectShape) and isinstance(second, _ObjectShape):
        names = dict.fromkeys([*first.fields, *second.fields])
        return _ObjectShape({name: _merge_shapes(first.fields.get(name), second.fields.get(name)) for name in names})
    raise _Contradiction
