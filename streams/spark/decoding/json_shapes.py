"""The types of JSON documents, found by looking at them, and columns of these types."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Final, TypeAlias

import pyarrow as pa

from schema_registry.serdes.arrow import extraction
from schema_registry.serdes.arrow.extraction import Extract, FieldExtract, Values

Shape: TypeAlias = "str | ListShape | ObjectShape | None"
"""One of the plain words, or what lists and objects hold; None says nothing. A `long` is an `int` no double holds."""

_PLAIN: Final[Mapping[str, pa.DataType]] = {
    "bool": pa.bool_(),
    "int": pa.int64(),
    "long": pa.int64(),
    "float": pa.float64(),
    "str": pa.string(),
}


_NUMBERS: Final[frozenset[Shape]] = frozenset({"int", "long", "float"})
_INT64: Final = 1 << 63
_DOUBLE: Final = 1 << 53
"""Up to here, doubles hold every whole number."""


class Contradiction(Exception):
    """No type holds both."""


class ListShape:
    """A list of values."""

    __slots__ = ("items",)

    def __init__(self, items: Shape) -> None:
        self.items = items


class ObjectShape:
    """An object with fields, in the order in which they were first met."""

    __slots__ = ("fields",)

    def __init__(self, fields: dict[str, Shape]) -> None:
        self.fields = fields


def shape_of_all(values: Values) -> Shape:
    """What holds all of many values, found a field of all of them at a time; raises Contradiction."""
    kinds = set(map(type, values))
    kinds.discard(type(None))
    if not kinds:
        return None
    if kinds == {int, float} and not _has_long(values):
        return "float"
    if len(kinds) > 1:
        raise Contradiction
    kind = kinds.pop()
    if kind is int:
        return "long" if _has_long(values) else "int"
    if kind is dict:
        return _object_of_all([value for value in values if value is not None])
    if kind is list:
        return ListShape(shape_of_all(list(chain.from_iterable(value for value in values if value is not None))))
    return str(kind.__name__)


def _object_of_all(values: Sequence[dict[str, Any]]) -> Shape:
    names = dict.fromkeys(chain.from_iterable(values))
    return ObjectShape({name: shape_of_all([value.get(name) for value in values]) for name in names})


def array_of_all(values: Values) -> pa.Array | None:
    """Values as an array of what holds all of them, None if that says nothing; raises Contradiction."""
    kinds = set(map(type, values))
    is_nullable = type(None) in kinds
    kinds.discard(type(None))
    if not kinds:
        return None
    if len(kinds) > 1:
        if kinds != {int, float}:
            raise Contradiction
        return _numbers(values)
    kind = kinds.pop()
    if kind is dict:
        return _with_nulls(values, _struct_of_all) if is_nullable else _struct_of_all(values)
    if kind is list:
        return _list_of_all(values)
    return pa.array(values, type=_PLAIN[kind.__name__])


def _struct_of_all(values: Sequence[dict[str, Any]]) -> pa.Array | None:
    names = dict.fromkeys(chain.from_iterable(values))
    is_same = sum(map(len, values)) == len(names) * len(values)
    parts = {}
    for name in names:
        found = list(map(itemgetter(name), values)) if is_same else [value.get(name) for value in values]
        part = array_of_all(found)
        if part is not None:
            parts[name] = part
    return pa.StructArray.from_arrays(list(parts.values()), names=list(parts)) if parts else None


def _with_nulls(values: Values, make: Callable[[Values], pa.Array | None]) -> pa.Array | None:
    found = make([value for value in values if value is not None])
    return None if found is None else extraction.spread(found, values)


def _list_of_all(values: Values) -> pa.Array | None:
    items = array_of_all(list(chain.from_iterable(value for value in values if value is not None)))
    if items is None:
        return None
    return extraction.lists(pa.list_(items.type), lambda _: items)(values)


def _numbers(values: Values) -> pa.Array:
    """Whole numbers among others, as far as doubles hold them."""
    if any(type(value) is int and not -_INT64 <= value < _INT64 for value in values):
        raise OverflowError
    if _has_long(values):
        raise Contradiction
    return pa.array([None if value is None else float(value) for value in values], type=pa.float64())


def _has_long(values: Values) -> bool:
    return any(type(value) is int and not -_DOUBLE <= value <= _DOUBLE for value in values)


def shape_of(value: Any) -> Shape:
    """What holds a value; raises Contradiction where a list holds what no type holds together."""
    return shape_of_all([value])


def merged_shape(first: Shape, second: Shape) -> Shape:
    """What holds values of both; raises Contradiction."""
    if first is None or second is None:
        return first if second is None else second
    if isinstance(first, str) or isinstance(second, str):
        if first == second:
            return first
        if "int" in (first, second) and {first, second} <= _NUMBERS:
            return second if first == "int" else first
        raise Contradiction
    if isinstance(first, ListShape) and isinstance(second, ListShape):
        return ListShape(merged_shape(first.items, second.items))
    if isinstance(first, ObjectShape) and isinstance(second, ObjectShape):
        names = dict.fromkeys([*first.fields, *second.fields])
        return ObjectShape({name: merged_shape(first.fields.get(name), second.fields.get(name)) for name in names})
    raise Contradiction


def array_of_shape(values: Values, shape: Shape) -> pa.Array:
    """Values as an array; of what says nothing about its type, an array of structs without fields."""
    type_, extract = _column(shape) or (pa.struct([]), None)
    if extract is None:
        return pa.array([{}] * len(values), type=type_)
    return extract(values)


def _column(shape: Shape) -> tuple[pa.DataType, Extract] | None:
    if shape is None:
        return None
    if isinstance(shape, str):
        type_ = _PLAIN[shape]
        return type_, _numbers if shape == "float" else extraction.plain(type_)
    if isinstance(shape, ListShape):
        item = _column(shape.items)
        if item is None:
            return None
        made = pa.list_(item[0])
        return made, extraction.lists(made, item[1])
    parts = {name: column for name, part in shape.fields.items() if (column := _column(part))}
    if not parts:
        return None
    made = pa.struct([(name, column[0]) for name, column in parts.items()])
    fields = [FieldExtract(_values(name), column[1]) for name, column in parts.items()]
    return made, extraction.structs(made, fields)


def _values(name: str) -> Callable[[Values], Values]:
    return lambda values: [value.get(name) for value in values]
