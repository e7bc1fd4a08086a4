"""Keys and values in JSON as columns: a column at a time where values have its very type, else value by value."""

from binascii import a2b_base64
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal as PythonDecimal
from itertools import chain
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schema_registry.serdes.arrow import reading
from schema_registry.serdes.arrow.binary import Doubt
from schema_registry.serdes.arrow.reading import NOT_FITTING, bodies_list
from streams.formats.arrays import array_of, arrow_type, bounded_type, moments
from streams.formats.collector import collector_paused
from streams.formats.fitting import as_unfit, find_name, mismatch
from streams.formats.json_column_writing import write_documents
from streams.formats.json_reading import decode_json, json_reader
from streams.formats.layout import Layout
from streams.formats.part_columns import DecodedPart
from streams.model.types import Array, Decimal, Field, Map, Name, Primitive, SqlType, Struct, contains

Values = Sequence[Any]

_NOTHING: Final[dict[str, Any]] = {}
_decode: Final = msgspec.json.Decoder().decode


class JsonColumns:
    """Objects with a field for each column, or the bare values of the only one."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._fields = [Field(column.name, bounded_type(column.sql_type)) for column in layout.columns]
        self._readers = [json_reader(field.type) for field in self._fields]
        self._is_exact = any(contains(field.type, Decimal) for field in self._fields)

    def decode(self, data: pa.Array) -> DecodedPart:
        """Decode documents."""
        with collector_paused():
            batch = _Batch(bodies_list(data), is_exact=self._is_exact)
            if not self._layout.is_wrapped:
                return DecodedPart([self._column(batch, 0, lambda documents: documents, "$")], batch.bad)
            batch.only_objects(self._layout.record)
            getters = field_getters(self._fields, batch.documents)
            columns = [
                self._column(batch, place, _or_empty(getter), f"$.{field.name}")
                for place, (field, getter) in enumerate(zip(self._fields, getters, strict=True))
            ]
        return DecodedPart([_nulls_at(column, batch.bad) for column in columns], batch.bad)

    def encode(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Encode rows."""
        return write_documents(self._fields, columns, is_wrapped=self._layout.is_wrapped)

    def _column(self, batch: "_Batch", place: int, values: Callable[[Values], Values], path: str) -> pa.Array:
        kind = self._fields[place].type
        try:
            return _exact_array(kind, values(batch.documents))
        except (_Odd, Doubt, *NOT_FITTING):
            pass  # Some value is of another type, or does not fit.
        read = self._readers[place]
        made: list[Any] = []
        for row, value in enumerate(values(batch.exact())):
            try:
                made.append(None if value is None else read(value))
            except ValueError as error:
                batch.bad.setdefault(row, str(as_unfit(error).within(path)))
                made.append(None)
        return array_of(kind, made)


class _Batch:
    """Documents of many records, None where one is null or bad."""

    def __init__(self, records: list[bytes], *, is_exact: bool) -> None:
        self._records = records
        self.bad: dict[int, str] = {}
        self._exact: list[Any] | None = None
        self.documents: list[Any]
        if is_exact:
            self.documents = self.exact()
            return
        try:
            self.documents = list(map(_decode, records))
        except (msgspec.DecodeError, ValueError, RecursionError):
            self.documents = self.exact()

    def exact(self) -> list[Any]:
        """Documents whose numbers have all their digits."""
        if self._exact is None:
            self._exact = [
                None if row in self.bad else self._decode(row, data) for row, data in enumerate(self._records)
            ]
        return self._exact

    def only_objects(self, kind: SqlType) -> None:
        """Set all documents aside that are not objects."""
        if set(map(type, self.documents)) <= {dict}:
            return
        for row, document in enumerate(self.documents):
            if document is not None and document.__class__ is not dict:
                self.bad[row] = str(mismatch(kind, document).within("$"))
        self.documents = [None if row in self.bad else document for row, document in enumerate(self.documents)]
        self._exact = None

    def _decode(self, row: int, data: bytes) -> Any:
        try:
            return decode_json(data)
        except ValueError as error:
            self.bad[row] = str(error)
            return None


def _or_empty(getter: Callable[[Values], Values]) -> Callable[[Values], Values]:
    def get(documents: Values) -> Values:
        return getter([_NOTHING if document is None else document for document in documents])

    return get


def _nulls_at(column: pa.Array, rows: Mapping[int, str]) -> pa.Array:
    """The column, null in some rows."""
    if not rows:
        return column
    is_bad = np.zeros(len(column), dtype=np.bool_)
    is_bad[list(rows)] = True
    return pc.if_else(pa.array(is_bad), pa.scalar(None, column.type), column)


def field_getters(fields: Sequence[Field], objects: Values) -> list[Callable[[Values], Values]]:
    """What gets the values of fields, whatever the case of their names in these objects."""
    names = set(chain.from_iterable(value for value in objects if value is not None))
    taken = frozenset(field.name for field in fields)
    by_upper: dict[str, list[str]] = {}
    for name in names - taken:
        by_upper.setdefault(name.upper(), []).append(name)
    return [_getter(field.name, field.name in names, by_upper.get(field.name.upper(), []), taken) for field in fields]


def _getter(name: str, is_there: bool, others: list[str], taken: frozenset[str]) -> Callable[[Values], Values]:
    if not others or (len(others) == 1 and not is_there):
        found = others[0] if others else name
        return lambda objects: [value.get(found) for value in objects]

    def get(value: dict[str, Any]) -> Any:
        if name in value:
            return value[name]
        other = find_name(value, name, taken)
        return None if other is None else value[other]

    return lambda objects: list(map(get, objects))


# --- columns of values that are of the very type ---------------------------------------------------------------------


class _Odd(Exception):
    """Some value is of another type."""


def _exact_array(kind: SqlType, values: Values) -> pa.Array:
    """Values of JSON as an array; raises _Odd, Doubt or one of NOT_FITTING."""
    classes = set(map(type, values))
    classes.discard(type(None))
    type_ = arrow_type(kind)
    if not classes:
        return pa.nulls(len(values), type_)
    match kind:
        case Primitive(name):
            allowed, convert = _EXACT[name]
            if not classes <= allowed:
                raise _Odd
            return convert(values, type_)
        case Decimal():
            if not classes <= {PythonDecimal, int}:
                raise _Odd
            return pa.array(values, type_)
        case Array(element):
            _only(classes, list)
            return reading.lists(type_, lambda items: _exact_array(element, items))(values)
        case Map(_, value):
            _only(classes, dict)
            return reading.maps(type_, lambda items: _exact_array(value, items))(values)
        case Struct():
            _only(classes, dict)
            return _structs(kind, values)


def _only(classes: set[type], wanted: type) -> None:
    if classes != {wanted}:
        raise _Odd


def _structs(kind: Struct, values: Values) -> pa.Array:
    if not kind.fields:
        return array_of(kind, values)
    getters = field_getters(kind.fields, values)
    parts = [
        reading.FieldExtract(getter, _field_extract(field.type))
        for field, getter in zip(kind.fields, getters, strict=True)
    ]
    return reading.structs(arrow_type(kind), parts)(values)


def _field_extract(kind: SqlType) -> Callable[[Values], pa.Array]:
    return lambda values: _exact_array(kind, values)


def _doubles(values: Values, type_: pa.DataType) -> pa.Array:
    return pa.array([None if value is None else float(value) for value in values], type_)


def _moments(name: Name) -> Callable[[Values, pa.DataType], pa.Array]:
    return lambda values, _: moments(name, pa.array(values, pa.int64()))


def _bytes(values: Values, type_: pa.DataType) -> pa.Array:
    return pa.array([None if value is None else a2b_base64(value, strict_mode=True) for value in values], type_)


_plain: Final = pa.array
_EXACT: Final[Mapping[Name, tuple[set[type], Callable[[Values, pa.DataType], pa.Array]]]] = {
    Name.BOOLEAN: ({bool}, _plain),
    Name.INTEGER: ({int}, _plain),
    Name.BIGINT: ({int}, _plain),
    Name.DOUBLE: ({float, int, PythonDecimal}, _doubles),
    Name.STRING: ({str}, _plain),
    Name.BYTES: ({str}, _bytes),
    **{name: ({int}, _moments(name)) for name in (Name.DATE, Name.TIME, Name.TIMESTAMP)},
}
