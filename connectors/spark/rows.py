"""Rows for tables: the columns of the key, of the value and of metadata, always in this order."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect.api.errors import DataError

DELETED: Final = "__caudal_deleted"
"""A column of staged files only: whether the row with this key is to be deleted."""

Columns = dict[str, pa.Array]


class Rows(NamedTuple):
    """Rows of one shape for one table."""

    table: str
    columns: Columns
    sources: np.ndarray[Any, np.dtype[np.int64]]
    """Which record of the batch each row comes from."""
    keys: tuple[str, ...] = ()
    """The columns of the key, if there is one."""
    is_guessed: bool = False
    """Whether the types were inferred from the values: a row may have columns that only other rows need."""

    @property
    def schema(self) -> pa.Schema:
        """The shape."""
        return pa.schema([pa.field(name, column.type) for name, column in self.columns.items()])

    @property
    def are_deletions(self) -> bool:
        """Whether all of them only delete rows."""
        deleted = self.columns.get(DELETED)
        return deleted is not None and bool(pc.all(deleted).as_py())


def fingerprint(schema: pa.Schema) -> str:
    """A short name for a shape, the same for equal columns in the same order."""
    return hashlib.blake2s(str(schema).encode(), digest_size=16).hexdigest()


def merged(key: Columns, value: Columns, metadata: Columns) -> Columns:
    """All columns of a row; a field of the key may be in the value, too. DataError if other names collide."""
    taken = metadata.keys() & (key.keys() | value.keys())
    if taken:
        advice = "leave it out of metadata.columns, or rename the field with a transform (ReplaceField)"
        raise DataError(f"Field {min(taken)} has the name of a column of metadata: {advice}")
    return {**key, **{name: column for name, column in value.items() if name not in key}, **metadata}


def flat(data: pa.Array, column: str) -> Columns:
    """The columns of a value: the fields of a struct, or a single one. Anything of unknown type is left out."""
    if pa.types.is_struct(data.type):
        named: Iterable[tuple[str, pa.Array]] = zip((f.name for f in data.type), data.flatten(), strict=True)
    else:
        named = [(column, data)]
    return {name: cleaned for name, array in named if (cleaned := _without_unknown(array)) is not None}


def _without_unknown(array: pa.Array) -> pa.Array | None:
    """An array without fields that are always null, whose type is unknown; None if nothing is left."""
    kept = typed_or_none(array.type)
    if kept is None or kept == array.type:
        return None if kept is None else array
    if not pa.types.is_struct(array.type):
        return array.cast(kept)
    fields = {field.name: part for field, part in zip(array.type, array.flatten(), strict=True)}
    parts = [_without_unknown(fields[field.name]) for field in kept]
    return pa.StructArray.from_arrays(parts, fields=list(kept), mask=array.is_null())


def typed_or_none(given: pa.DataType) -> pa.DataType | None:
    """A type without parts of unknown type; None if nothing is left."""
    if pa.types.is_null(given):
        return None
    if pa.types.is_struct(given):
        kept = [pa.field(f.name, part) for f in given if (part := typed_or_none(f.type)) is not None]
        return pa.struct(kept) if kept else None
    if pa.types.is_list(given):
        item = typed_or_none(given.value_type)
        return None if item is None else pa.list_(item)
    return given


def taken(columns: Columns, rows: Sequence[int]) -> Columns:
    """Some of the rows."""
    indices = pa.array(rows, pa.int64())
    return {name: column.take(indices) for name, column in columns.items()}
