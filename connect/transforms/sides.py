"""Transforms that come in pairs: one for the keys of records and one for their values."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar, cast

from msgspec.structs import replace
from typing_extensions import override

from connect.api.data import Schema, Value
from connect.api.record import Record
from connect.api.transform import R, Transform

K = TypeVar("K")
T = TypeVar("T")

Side = tuple[Schema | None, Value]
"""A schema and a value: the key of a record, or its value."""


class Sided(Transform):
    """Works on keys or on values; `both_sides` makes the classes that configurations name."""

    is_key: ClassVar[bool] = False
    aliases: ClassVar[tuple[str, ...]] = ()
    """Without `$Key` and `$Value`."""


def both_sides(transform: type[Sided]) -> tuple[type[Transform], type[Transform]]:
    """The transform for keys and the one for values, named as in Kafka Connect: `Cast$Key`, `Cast$Value`."""
    return _one_side(transform, "Key"), _one_side(transform, "Value")


def _one_side(transform: type[Sided], side: str) -> type[Transform]:
    attributes = {
        "__doc__": transform.__doc__,
        "__module__": transform.__module__,
        "is_key": side == "Key",
        "aliases": tuple(f"{name}${side}" for name in transform.aliases),
    }
    return cast("type[Transform]", type(f"{transform.__name__}{side}", (transform,), attributes))


class SideTransform(Sided):
    """Changes one side of a record."""

    @override
    def apply(self, record: R) -> R | None:
        if self.is_key:
            schema, value = self.change(record, record.key_schema, value=record.key)
            if value is record.key and schema is record.key_schema:
                return record
            return replace(record, key_schema=schema, key=value)
        schema, value = self.change(record, record.value_schema, value=record.value)
        if value is record.value and schema is record.value_schema:
            return record
        return replace(record, value_schema=schema, value=value)

    @abstractmethod
    def change(self, record: Record, schema: Schema | None, *, value: Value) -> Side:
        """The schema and value that this side has afterwards; the same objects when nothing changes."""


class Memo(dict[K, T], Generic[K, T]):
    """Results by what they were computed from, a schema for instance; cleared when there are too many of them."""

    def __init__(self, compute: Callable[[K], T], *, limit: int = 1_000) -> None:
        super().__init__()
        self._compute = compute
        self._limit = limit

    def __missing__(self, key: K) -> T:
        if len(self) >= self._limit:
            self.clear()
        result = self[key] = self._compute(key)
        return result
