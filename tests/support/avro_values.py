"""Values of Avro types, for Hypothesis: as JSON tells them, in Avro's own encoding."""

import math
from typing import Any

from hypothesis import strategies as st

from schema_registry.formats.avro_types import Array, Enum, Fixed, Map, Primitive, Record, Type, Union, label

MAX_DEPTH = 4

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
BYTES_AS_TEXT = st.binary(max_size=6).map(lambda data: data.decode("latin-1"))
_NUMBERS: dict[str, dict[str, Any]] = {"float": {"width": 32}, "double": {}}


def _number(kind: str) -> st.SearchStrategy[Any]:
    return st.floats(**_NUMBERS[kind]).map(
        lambda value: value if math.isfinite(value) else "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"
    )


_PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "long": st.integers(-(1 << 63), (1 << 63) - 1),
    "float": _number("float"),
    "double": _number("double"),
    "bytes": BYTES_AS_TEXT,
    "string": TEXT,
}


def views(type_: Type, depth: int = 0) -> st.SearchStrategy[Any]:
    """JSON of values of a type; recursive types end after a few levels, at a null or an empty list."""
    match type_:
        case Primitive():
            return _PRIMITIVES[type_.kind]
        case Fixed():
            return st.binary(min_size=type_.size, max_size=type_.size).map(lambda data: data.decode("latin-1"))
        case Enum():
            return st.sampled_from(list(type_.symbols))
        case Array():
            return st.lists(views(type_.items, depth + 1), max_size=3) if depth < MAX_DEPTH else st.just([])
        case Map():
            parts = views(type_.values, depth + 1) if depth < MAX_DEPTH else st.nothing()
            return st.dictionaries(TEXT.filter(bool), parts, max_size=3) if depth < MAX_DEPTH else st.just({})
        case Union():
            return _union(type_, depth)
        case Record():
            return st.fixed_dictionaries({field.name: views(field.type, depth + 1) for field in type_.fields})


def _union(union: Union, depth: int) -> st.SearchStrategy[Any]:
    nullable = any(branch.kind == "null" for branch in union.branches)
    if nullable and depth >= MAX_DEPTH:
        return st.none()
    return st.one_of(
        [
            st.none() if branch.kind == "null" else st.fixed_dictionaries({label(branch): views(branch, depth + 1)})
            for branch in union.branches
        ]
    )
