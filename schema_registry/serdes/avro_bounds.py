"""Limits of Avro data: hostile bytes must not exhaust memory, time or the stack.

A few bytes can stand for a great many values if these take no bytes at all (an array of a billion nulls, records of
records of nothing), and fastavro's compiled reader recurses on the machine's stack as deep as the bytes say: 5 kB of a
recursive type end the process. The first is refused by the schema, the second by the size of the data.
"""

from collections.abc import Iterator

from schema_registry.formats.avro_types import Array, Fixed, Map, Primitive, Record, Type, Union
from schema_registry.serdes.errors import UnusableSchema

MAX_NESTING = 1_500
"""Types within types that compiled code can handle; the usual stack of 8 MB holds over 2400."""
MAX_VALUE_DEPTH = 500
"""Lists and dicts within each other that may be written; each stands for up to three types."""
MAX_FREE_VALUES = 100_000
"""Values that a schema may produce without a byte."""

_SMALLEST_BYTES = {"null": 0, "float": 4, "double": 8}


def check(root: Type) -> None:
    """Raise UnusableSchema if a few bytes could stand for any number of values."""
    sizes: dict[int, int] = {}
    weights: dict[int, int] = {}
    for type_ in _all_types(root):
        if isinstance(type_, Array) and smallest_bytes(type_.items, sizes) == 0:
            raise UnusableSchema("an array whose items take no bytes may have any number of them")
        if _weight(type_, weights) > MAX_FREE_VALUES:
            raise UnusableSchema(f"a single value of this schema has more than {MAX_FREE_VALUES} parts")


def safe_bytes(root: Type) -> int | None:
    """How many bytes of data cannot nest too deep for compiled code; None if no data can.

    Unions, arrays and maps each take a byte, so there are no more of them within each other than bytes; between two of
    them are no more records than the longest chain of records that directly hold one another.
    """
    if not any(isinstance(type_, Record) and _contains_itself(type_) for type_ in _all_types(root)):
        return None
    chains: dict[int, int] = {}
    return MAX_NESTING // (1 + max(_chain(type_, chains) for type_ in _all_types(root)))


def nests_deeper(value: object, limit: int) -> bool:
    """Whether lists and dicts are nested deeper than a limit."""
    level = [value]
    for _ in range(limit):
        level = [
            part
            for outer in level
            if isinstance(outer, dict | list | tuple)
            for part in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def smallest_bytes(type_: Type, known: dict[int, int]) -> int:
    """The least number of bytes that a value of the type can take."""
    if isinstance(type_, Fixed):
        return type_.size
    if isinstance(type_, Primitive):
        return _SMALLEST_BYTES.get(type_.kind, 1)
    if not isinstance(type_, Record):
        return 1
    if id(type_) not in known:
        known[id(type_)] = 0  # a record within itself: at least nothing
        known[id(type_)] = sum(smallest_bytes(field.type, known) for field in type_.fields)
    return known[id(type_)]


def _weight(type_: Type, known: dict[int, int]) -> int:
    """How many values one value brings along without a choice or a length before them, each of which takes a byte."""
    if not isinstance(type_, Record):
        return 1
    if id(type_) not in known:
        known[id(type_)] = MAX_FREE_VALUES + 1  # a record that always holds itself has no end
        known[id(type_)] = 1 + sum(_weight(field.type, known) for field in type_.fields)
    return known[id(type_)]


def _chain(type_: Type, known: dict[int, int]) -> int:
    """How many records hold one another with nothing between them."""
    if not isinstance(type_, Record):
        return 0
    if id(type_) not in known:
        known[id(type_)] = 0
        known[id(type_)] = 1 + max((_chain(field.type, known) for field in type_.fields), default=0)
    return known[id(type_)]


def _all_types(root: Type) -> Iterator[Type]:
    """Every type of a schema once."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        type_ = stack.pop()
        if id(type_) not in seen:
            seen.add(id(type_))
            yield type_
            stack.extend(_children(type_))


def _children(type_: Type) -> list[Type]:
    if isinstance(type_, Record):
        return [field.type for field in type_.fields]
    if isinstance(type_, Array):
        return [type_.items]
    if isinstance(type_, Map):
        return [type_.values]
    return list(type_.branches) if isinstance(type_, Union) else []


def _contains_itself(record: Record) -> bool:
    below = (type_ for child in _children(record) for type_ in _all_types(child))
    return any(type_ is record for type_ in below)
