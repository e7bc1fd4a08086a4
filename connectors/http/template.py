"""Text with `${names}`, for URLs and bodies."""

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

from connect.api.data import Schema, Type, Value
from connect.api.errors import DataError
from connect.api.record import SinkRecord
from connect.api.values import text_of

_NAME: Final = re.compile(r"\$\{([^}]*)\}")
_ALONE: Final = re.compile(r"[^=]+=\$\{([^}]*)\}")
Lookup = Callable[[str], str]


class Template:
    """A text with names that are replaced by values."""

    def __init__(self, text: str) -> None:
        parts = _NAME.split(text)
        self._text = text
        self._literals, self.names = parts[::2], parts[1::2]

    def fill(self, lookup: Lookup) -> str:
        """The text with each name replaced by its value."""
        if not self.names:
            return self._text
        parts = [self._literals[0]]
        for name, literal in zip(self.names, self._literals[1:], strict=True):
            parts += (lookup(name), literal)
        return "".join(parts)

    def fill_url(self, lookup: Lookup) -> str:
        """The same for a URL: values are quoted, and parameters that would be empty are left out."""
        if not self.names:
            return self._text
        path, mark, query = self._text.partition("?")
        kept = [part for part in query.split("&") if not _is_empty(part, lookup)] if mark else []
        url = Template(path).fill(lambda name: _path_part(lookup(name)))
        parameters = Template("&".join(kept)).fill(lambda name: quote(lookup(name), safe=""))
        return f"{url}?{parameters}" if parameters else url


def _is_empty(parameter: str, lookup: Lookup) -> bool:
    alone = _ALONE.fullmatch(parameter)
    return alone is not None and not lookup(alone[1])


def _path_part(text: str) -> str:
    if text in (".", ".."):
        raise DataError(f"{text!r} cannot be part of a URL: it would change the path")
    return quote(text, safe="")


def text_in(record: SinkRecord, name: str) -> str:
    """The value of a name in a record: topic, partition, offset, timestamp, key, key.field, header.name, or a field of
    the value (value.field); DataError when the record has none."""
    first, _, rest = name.partition(".")
    match first:
        case "topic" | "partition" | "offset" | "timestamp" if not rest:
            schema: Schema | None = None
            value: Value = record.timestamp_ms if first == "timestamp" else getattr(record, first)
        case "key":
            schema, value = _field(record.key_schema, record.key, rest)
        case "value" if rest:
            schema, value = _field(record.value_schema, record.value, rest)
        case "header" if rest:
            header = next((it for it in reversed(record.headers) if it.key == rest), None)
            schema, value = (header.schema, header.value) if header else (None, None)
        case _:
            schema, value = _field(record.value_schema, record.value, name)
    if value is None:
        raise DataError(f"the record has no value for ${{{name}}}")
    return value.decode(errors="replace") if isinstance(value, bytes) else text_of(schema, value)


def _field(schema: Schema | None, value: Value, path: str) -> tuple[Schema | None, Value]:
    for part in filter(None, path.split(".")):
        value = value.get(part) if isinstance(value, dict) else None
        is_struct = schema is not None and schema.type is Type.STRUCT
        schema = schema.field(part) if schema and is_struct else schema.value_schema if schema else None
    return schema, value
