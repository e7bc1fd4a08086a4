"""Transforms that come in two: one for the keys of records and one for their values."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar

from msgspec.structs import replace
from typing_extensions import override

from connect.api.data import Schema, Value
from connect.api.record import Record
from connect.api.transform import R, Transform

T = TypeVar("T")
_MOST_SCHEMAS = 1_000

Side = tuple[Schema | None, Value]
"""A schema and a value: the key of a record, or its value."""


class SideTransform(Transform):
    """Changes one side of a record; a subclass for keys sets `is_key`."""

    is_key: ClassVar[bool] = False

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


class BySchema(dict[Schema, T], Generic[T]):
    """What was worked out for each schema; forgotten when there are too many of them."""

    def __init__(self, work_out: Callable[[Schema], T]) -> None:
        super().__init__()
        self._work_out = work_out

    def __missing__(self, schema: Schema) -> T:
        if len(self) >= _MOST_SCHEMAS:
            self.clear()
        result = self[schema] = self._work_out(schema)
        return result
