"""Keys and values as one line of CSV, quoted and read as Apache Commons CSV does by default.

Nothing between two delimiters is null, also if it is quoted. Dates and times are numbers, bytes base64.
"""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from schema_registry.serdes.logical import (
    date_of,
    days_of,
    milliseconds_of,
    milliseconds_of_time,
    time_of,
    timestamp_of,
)
from streams.formats.errors import FormatError
from streams.formats.fitting import Unfit, as_unfit
from streams.formats.layout import Layout
from streams.formats.numbers import double_text, fit_decimal, parse_decimal, parse_double, parse_integer
from streams.model.types import Decimal, Name, Primitive, SqlType

Parse = Callable[[str], Any]
Print = Callable[[Any], str]


class DelimitedCodec:
    """A line with a cell for each column."""

    def __init__(self, layout: Layout) -> None:
        check_delimited(layout)
        self._names = [column.name for column in layout.columns]
        self._parsers = [cell_parser(column.sql_type) for column in layout.columns]
        self._printers = [cell_printer(column.sql_type) for column in layout.columns]
        self._delimiter = layout.format.delimiter
        self._split = line_splitter(self._delimiter)

    def encode(self, values: Sequence[Any]) -> bytes | None:
        """The line."""
        cells = [
            "" if value is None else quoted_cell(show(value), self._delimiter, is_first=place == 0)
            for place, (show, value) in enumerate(zip(self._printers, values, strict=True))
        ]
        return self._delimiter.join(cells).encode()

    def decode(self, data: bytes) -> Sequence[Any] | None:
        """The columns of a line."""
        try:
            cells = self._split(data.decode())
        except UnicodeDecodeError as error:
            raise Unfit(f"the data is not text in UTF-8: {error}") from None
        if len(cells) != len(self._parsers):
            raise Unfit(f"expected {len(self._parsers)} columns, not {len(cells)}")
        made: list[Any] = []
        for parse, cell in zip(self._parsers, cells, strict=True):
            try:
                made.append(parse(cell) if cell else None)
            except ValueError as error:
                raise as_unfit(error).within(self._names[len(made)]) from None
        return made


def check_delimited(layout: Layout) -> None:
    """Raise FormatError if the type of a column has no text on one line."""
    for column in layout.columns:
        kind = column.sql_type
        if not isinstance(kind, Decimal) and not (isinstance(kind, Primitive) and kind.name in _CELLS):
            raise FormatError(f"The DELIMITED format cannot hold the column {column.name} of type {kind}.")


def line_splitter(delimiter: str) -> Callable[[str], list[str]]:
    """Splits the first line of a text into its cells; raises Unfit."""
    mark = re.escape(delimiter)
    cell = re.compile(rf'(?:"([^"]*(?:""[^"]*)*)"|([^{mark}\r\n]*))({mark}|[\r\n]|\Z)')

    def split(text: str) -> list[str]:
        if '"' not in text and "\n" not in text and "\r" not in text:
            return text.split(delimiter)
        text = text.lstrip("\r\n")  # Empty lines are not records.
        cells: list[str] = []
        at = 0
        while True:
            found = cell.match(text, at)
            if found is None or (found[1] is None and found[2].startswith('"')):
                raise Unfit("a quote is not closed, or there is text behind it")
            cells.append(found[2] if found[1] is None else found[1].replace('""', '"'))
            if found[3] != delimiter:
                return cells
            at = found.end()

    return split


def quoted_cell(text: str, delimiter: str, *, is_first: bool) -> str:
    """A cell, between quotes if it could be misread otherwise."""
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if _needs_quotes(text, delimiter, is_first) else text


def _needs_quotes(text: str, delimiter: str, is_first: bool) -> bool:
    if not text:
        return is_first  # It may be the only thing on the line.
    start = text[0]
    if start <= "#" or (is_first and (start == "," or start > "~")):
        return True
    return text[-1] <= " " or any(character in text for character in (delimiter, '"', "\n", "\r"))


def cell_parser(kind: SqlType) -> Parse:
    """Makes a value of the text of a cell; raises ValueError."""
    if isinstance(kind, Decimal):
        return lambda text: fit_decimal(parse_decimal(text), kind.precision, kind.scale)
    assert isinstance(kind, Primitive)
    return _CELLS[kind.name][0]


def cell_printer(kind: SqlType) -> Print:
    """Makes the text of a cell of a value."""
    if isinstance(kind, Decimal):
        return lambda value: format(value, "f")
    assert isinstance(kind, Primitive)
    return _CELLS[kind.name][1]


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise Unfit(f"BYTES are written as base64: {error}") from None


_CELLS: Final[Mapping[Name, tuple[Parse, Print]]] = {
    Name.BOOLEAN: (lambda text: text.lower() == "true", lambda value: "true" if value else "false"),
    Name.INTEGER: (lambda text: parse_integer(text, 32), str),
    Name.BIGINT: (lambda text: parse_integer(text, 64), str),
    Name.DOUBLE: (parse_double, double_text),
    Name.STRING: (str, str),
    Name.BYTES: (_bytes, lambda value: base64.b64encode(value).decode()),
    Name.DATE: (lambda text: date_of(parse_integer(text, 32)), lambda value: str(days_of(value))),
    Name.TIME: (lambda text: time_of(parse_integer(text, 64)), lambda value: str(milliseconds_of_time(value))),
    Name.TIMESTAMP: (lambda text: timestamp_of(parse_integer(text, 64)), lambda value: str(milliseconds_of(value))),
}
