"""Keys and values as lines of CSV, as columns: all lines at once if none has quotes, else one by one."""

import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schema_registry.serdes.arrow import stored
from schema_registry.serdes.arrow.binary import Doubt
from streams.formats.arrays import array_of, arrow_type, bounded_type, moments
from streams.formats.delimited_codec import DelimitedCodec, cell_parser, cell_printer, check_delimited
from streams.formats.json_column_writing import double_texts
from streams.formats.layout import Layout
from streams.formats.numbers import double_text
from streams.formats.part_columns import ByRecord, DecodedPart
from streams.model.types import Name, Primitive, SqlType

Parse = Callable[[pa.Array], pa.Array]
"""Makes values of texts that are not empty; raises _NotPlain, or another of _FAULTS."""
Print = Callable[[pa.Array], pa.Array]
"""Makes texts of values that are not null."""

_NOT_PLAIN: Final = r'["\r\n]'
_INTEGERS: Final = r"^[+-]?[0-9]+$"
_DOUBLES: Final = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


class DelimitedColumns:
    """Lines with a cell for each column."""

    def __init__(self, layout: Layout) -> None:
        check_delimited(layout)
        self._delimiter = layout.format.delimiter
        self._kinds = [bounded_type(column.sql_type) for column in layout.columns]
        mark = re.escape(self._delimiter)
        self._odd = rf'^[\x00-#]|[\x00- ]$|{mark}|["\r\n]'
        """Which cells are between quotes, as `quoted_cell` decides it."""
        self._odd_first = rf"^$|^,|^[^\x00-~]|{self._odd}"
        self._each = ByRecord(layout, DelimitedCodec(layout))

    def decode(self, data: pa.Array) -> DecodedPart:
        """Decode lines."""
        try:
            return DecodedPart(self._columns(data.cast(pa.binary()).cast(pa.string())), {})
        except _FAULTS:
            return self._each.decode(data)

    def encode(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Encode rows."""
        cells = [self._cells(place, column) for place, column in enumerate(columns)]
        return cells[0] if len(cells) == 1 else pc.binary_join_element_wise(*cells, self._delimiter.encode())

    def _columns(self, lines: pa.Array) -> list[pa.Array]:
        """All lines; raises one of _FAULTS if one of them is not plain."""
        count = len(self._kinds)
        if not len(lines):
            return [pa.array([], arrow_type(kind)) for kind in self._kinds]
        if pc.any(pc.match_substring_regex(lines, _NOT_PLAIN)).as_py():
            raise _NotPlain
        cells = pc.split_pattern(lines, self._delimiter)
        if pc.any(pc.not_equal(pc.list_value_length(cells), count)).as_py():
            raise _NotPlain
        flat = cells.flatten()
        texts = pc.if_else(pc.equal(flat, ""), pa.scalar(None, pa.string()), flat)
        return [
            _parser(kind)(texts.take(pa.array(np.arange(place, len(flat), count))))
            for place, kind in enumerate(self._kinds)
        ]

    def _cells(self, place: int, column: pa.Array) -> pa.Array:
        """A column as cells, empty where it is null."""
        some = _printer(self._kinds[place])(column.drop_null()).cast(pa.string())
        is_odd = pc.match_substring_regex(some, self._odd if place else self._odd_first)
        if pc.any(is_odd).as_py():
            quoted = pc.binary_join_element_wise('"', pc.replace_substring(some, '"', '""'), '"', "")
            some = pc.if_else(is_odd, quoted, some)
        data = some.cast(pa.binary())
        if not column.null_count:
            return data
        is_there = column.is_valid().to_numpy(zero_copy_only=False)
        return data.take(pa.array(np.cumsum(is_there) - 1, mask=~is_there)).fill_null(b"")


class _NotPlain(Exception):
    """Some line has quotes, or another number of cells, or a cell that only looking at it decides about."""


_FAULTS: Final = (_NotPlain, Doubt, pa.ArrowException, ArithmeticError, ValueError)


def _matching(pattern: str, type_: pa.DataType) -> Parse:
    """Converts texts that match a pattern: Arrow takes more, or less, than Java for a number."""

    def convert(texts: pa.Array) -> pa.Array:
        if not pc.all(pc.match_substring_regex(texts, pattern), min_count=0).as_py():
            raise _NotPlain
        return texts.cast(type_)

    return convert


_integers: Final = _matching(_INTEGERS, pa.int64())


def _moments(name: Name) -> Parse:
    return lambda texts: moments(name, _integers(texts))


_PARSERS: Final[Mapping[Name, Parse]] = {
    Name.STRING: lambda texts: texts,
    Name.BOOLEAN: lambda texts: pc.equal(pc.utf8_lower(texts), "true"),
    Name.INTEGER: _matching(_INTEGERS, pa.int32()),
    Name.BIGINT: _integers,
    Name.DOUBLE: _matching(_DOUBLES, pa.float64()),
    **{name: _moments(name) for name in (Name.DATE, Name.TIME, Name.TIMESTAMP)},
}
_PRINTERS: Final[Mapping[Name, Print]] = {
    Name.DOUBLE: lambda column: double_texts(column, lambda value: double_text(value).encode()),
    Name.BYTES: lambda column: pa.array(
        [binascii.b2a_base64(value, newline=False) for value in column.to_pylist()], pa.binary()
    ),
    Name.DATE: lambda column: pa.array(stored.days(column)),
    Name.TIME: lambda column: pa.array(stored.milliseconds_of_day(column)),
    Name.TIMESTAMP: lambda column: pa.array(stored.milliseconds(column)),
}


def _parser(kind: SqlType) -> Parse:
    if isinstance(kind, Primitive) and kind.name in _PARSERS:
        return _PARSERS[kind.name]
    parse = cell_parser(kind)
    return lambda texts: array_of(kind, [None if text is None else parse(text) for text in texts.to_pylist()])


def _printer(kind: SqlType) -> Print:
    if isinstance(kind, Primitive):
        return _PRINTERS.get(kind.name, lambda column: column)
    show = cell_printer(kind)
    return lambda column: pa.array([show(value) for value in column.to_pylist()], pa.string())
