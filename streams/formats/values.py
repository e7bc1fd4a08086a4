"""Records as values of SQL and back, one by one."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from schema_registry.serdes.framing import Header, header_of
from streams.formats.codecs import codec_of
from streams.formats.errors import DecodeError, EncodeError, Part
from streams.formats.fitting import as_unfit, fitting
from streams.formats.layout import layout_of
from streams.formats.nulls import is_null_value
from streams.formats.parts import PartCodec
from streams.formats.registry import Schemas
from streams.formats.windows import Window, add_window, split_window
from streams.model.sources import REGISTRY_FORMATS, WINDOWEND, WINDOWSTART, HeaderColumn, Source

HEADER_KEY, HEADER_VALUE = "KEY", "VALUE"
"""The fields of the items of a column with all headers."""


class RecordCodec:
    """Reads and writes the records of a source. Safe for any number of threads.

    Asks the registry when it is made, and for each schema that it has not seen; raises ClientError then.
    """

    def __init__(self, source: Source, schemas: Schemas) -> None:
        self.source = source
        self._key = _PartOfRows(source, "key", schemas)
        self._value = _PartOfRows(source, "value", schemas)

    def encode(
        self, row: Mapping[str, object], *, window: Window | None = None, deleted: bool = False
    ) -> tuple[bytes | None, bytes | None]:
        """Key and value of a row; columns that it does not have are NULL. Raises EncodeError.

        A windowed key takes its window from `window`, or from the columns WINDOWSTART and WINDOWEND of the row.
        """
        key = self._key.encode(row)
        info = self.source.window
        if info is not None:
            try:
                key = add_window(key, info, window or _window_of(row))
            except ValueError as error:
                raise EncodeError("key", str(error)) from error
        return key, None if deleted else self._value.encode(row)

    def decode(
        self, key: bytes | None, value: bytes | None, headers: Iterable[Header] | None = None
    ) -> dict[str, object]:
        """The columns of a record, those of headers and of the window included. Raises DecodeError.

        The columns of a key or of a value that is null are all NULL.
        """
        found: dict[str, object] = {}
        info = self.source.window
        if info is not None and key is not None:
            try:
                key, start, end = split_window(key, info)
            except ValueError as error:
                raise DecodeError("key", str(error)) from error
            found[WINDOWSTART], found[WINDOWEND] = start, end
        elif info is not None:
            found[WINDOWSTART] = found[WINDOWEND] = None
        pairs = list(headers or ())
        self._key.decode(key, pairs, found)
        self._value.decode(value, pairs, found)
        for column in self.source.headers:
            found[column.name] = header_value(column, pairs)
        return found

    def is_null(self, value: bytes | None) -> bool:
        """Whether a record with this value deletes the row of a table, and is no row of a stream."""
        return is_null_value(value, self.source.value_format)


class _PartOfRows:
    """The key or the value of rows."""

    def __init__(self, source: Source, part: Part, schemas: Schemas) -> None:
        layout = layout_of(source, part)
        self._part: Part = part
        self._names_schema = layout.format.name in REGISTRY_FORMATS
        """Whether a header may name the schema; it reads like the name before the data."""
        self._names = [column.name for column in layout.columns]
        self._fits = [fitting(column.sql_type) for column in layout.columns]
        self._codec: PartCodec = codec_of(layout, schemas)

    def encode(self, row: Mapping[str, object]) -> bytes | None:
        """The bytes of a row; those of a key are null if all its columns are."""
        values: list[Any] = []
        try:
            for name, fit in zip(self._names, self._fits, strict=True):
                value = row.get(name)
                values.append(None if value is None else fit(value))
        except ValueError as error:
            name = self._names[len(values)]
            raise EncodeError(self._part, str(as_unfit(error).within(name))) from error
        if self._part == "key" and all(value is None for value in values):
            return None
        try:
            return self._codec.encode(values)
        except (ValueError, ArithmeticError) as error:
            raise EncodeError(self._part, str(error)) from error

    def decode(self, data: bytes | None, headers: Sequence[Header], found: dict[str, object]) -> None:
        """Add the columns of the data."""
        values: Sequence[Any] | None = None
        if data is not None:
            if headers and self._names_schema:
                data = (header_of(headers, is_key=self._part == "key") or b"") + data
            try:
                values = self._codec.decode(data)
            except (ValueError, ArithmeticError) as error:
                raise DecodeError(self._part, str(error)) from error
        found.update(zip(self._names, [None] * len(self._names) if values is None else values, strict=True))


def header_value(column: HeaderColumn, headers: Sequence[Header]) -> object:
    """The value of a column of headers."""
    if column.key is None:
        return [{HEADER_KEY: key, HEADER_VALUE: value} for key, value in headers]
    return next((value for key, value in reversed(headers) if key == column.key), None)


def _window_of(row: Mapping[str, object]) -> Window | None:
    start, end = row.get(WINDOWSTART), row.get(WINDOWEND)
    if not isinstance(start, int):
        return None
    return start, end if isinstance(end, int) else None
