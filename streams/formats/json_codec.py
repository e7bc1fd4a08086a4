"""Keys and values in JSON."""

from collections.abc import Sequence
from typing import Any

from streams.formats.fitting import as_unfit, nullable
from streams.formats.json_reading import decode_json, json_reader
from streams.formats.json_writing import encode_json, json_writer
from streams.formats.layout import Layout


class JsonCodec:
    """An object with a field for each column, or the bare value of the only one."""

    def __init__(self, layout: Layout) -> None:
        self._is_wrapped = layout.is_wrapped
        kind = layout.record if layout.is_wrapped else layout.columns[0].sql_type
        self._names = [column.name for column in layout.columns]
        self._read = json_reader(kind)
        self._writers = [nullable(json_writer(column.sql_type)) for column in layout.columns]

    def encode(self, values: Sequence[Any]) -> bytes | None:
        """The document."""
        parts = [write(value) for write, value in zip(self._writers, values, strict=True)]
        if self._is_wrapped:
            return encode_json(dict(zip(self._names, parts, strict=True)))
        return None if values[0] is None else encode_json(parts[0])

    def decode(self, data: bytes) -> Sequence[Any] | None:
        """The columns of a document."""
        json = decode_json(data)
        if json is None:
            return None
        try:
            found = self._read(json)
        except ValueError as error:
            raise as_unfit(error).within("$") from None
        return list(found.values()) if self._is_wrapped else [found]
