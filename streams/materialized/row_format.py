"""How a row is kept in a file: a key that is the same bytes whenever the values are equal, and all columns' values.

The key is not that of the record: two records with equal keys may differ in the id of a schema, or in white space.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Context, Decimal
from typing import Any, Final, TypedDict

import msgspec

from streams.materialized.errors import CopyDamaged
from streams.materialized.store import StoredRow
from streams.model.sources import ROWTIME, WINDOWEND, WINDOWSTART, Source
from streams.model.types import Array, Map, Name, Primitive, SqlType, Struct
from streams.model.types import Decimal as DecimalType

_PYTHON: Final[Mapping[Name, Any]] = {
    Name.BOOLEAN: bool,
    Name.INTEGER: int,
    Name.BIGINT: int,
    Name.DOUBLE: float,
    Name.STRING: str,
    Name.BYTES: bytes,
    Name.TIME: time,
    Name.DATE: date,
    Name.TIMESTAMP: datetime,
}
_EXACT: Final = Context(prec=1000)

Row = tuple[object, ...]
"""The values of the columns, then ROWTIME, WINDOWSTART and WINDOWEND."""


class RowFormat:
    """Writes and reads the rows of one table. For any number of threads."""

    def __init__(self, source: Source) -> None:
        self.names: Final = (*(column.name for column in source.columns), ROWTIME, WINDOWSTART, WINDOWEND)
        """The columns of a row, in order."""
        self._columns = self.names[:-3]
        self._key_columns = self.names[: len(source.key)]
        self._canonical = [_canonical(column.sql_type) for column in source.key]
        self._is_plain = not any(self._canonical)
        self._encode = msgspec.msgpack.Encoder().encode
        types: Any = tuple[tuple(_python_type(column.sql_type) for column in source.columns)]  # type: ignore[misc]  # made here
        self._decode = msgspec.msgpack.Decoder(types).decode

    def key(self, values: Sequence[object]) -> bytes:
        """The bytes of the key columns' values."""
        if self._is_plain:
            return self._encode(values)
        return self._encode(
            [
                value if canonical is None or value is None else canonical(value)
                for canonical, value in zip(self._canonical, values, strict=True)
            ]
        )

    def key_of(self, record: Mapping[str, object]) -> bytes:
        """The bytes of the key columns of a record."""
        return self.key([record[name] for name in self._key_columns])

    def data(self, record: Mapping[str, object]) -> bytes:
        """The bytes of all columns of a record."""
        return self._encode([record[name] for name in self._columns])

    def row_of(self, stored: StoredRow) -> Row:
        """The values of a row; raises CopyDamaged if its bytes are not those of one."""
        _, window_start, window_end, rowtime, data = stored
        try:
            values: Row = self._decode(data)
        except (msgspec.MsgspecError, ValueError) as error:
            raise CopyDamaged(f"a row cannot be read: {error}") from error
        return (*values, rowtime, window_start, window_end)


def _python_type(kind: SqlType) -> Any:
    """The type given to a decoder, NULL allowed."""
    match kind:
        case Primitive(name):
            return _PYTHON[name] | None
        case DecimalType():
            return Decimal | None
        case Array(element):
            return list[_python_type(element)] | None  # type: ignore[misc]  # a type that is made here
        case Map(key, value):
            return dict[_python_type(key), _python_type(value)] | None  # type: ignore[misc]  # a type that is made here
        case Struct(fields):
            members = {field.name: _python_type(field.type) for field in fields}
            made: Any = TypedDict("Fields", members, total=False)  # type: ignore[misc]  # a type that is made here
            return made | None


def _canonical(kind: SqlType) -> Callable[[Any], object] | None:
    """What makes the bytes of equal values equal; None where they are anyway."""
    match kind:
        case DecimalType():
            return lambda value: str(_EXACT.normalize(value))
        case Primitive(Name.DOUBLE):
            return float
        case Array(element):
            inner = _canonical(element) or _unchanged
            return lambda values: [None if value is None else inner(value) for value in values]
        case Map(_, item):
            of_item = _canonical(item) or _unchanged
            return lambda values: [
                (key, None if value is None else of_item(value)) for key, value in sorted(values.items())
            ]
        case Struct(fields):
            parts = [(field.name, _canonical(field.type) or _unchanged) for field in fields]
            return lambda values: [None if values.get(name) is None else part(values[name]) for name, part in parts]
        case _:
            return None


def _unchanged(value: object) -> object:
    return value
