"""Text with `${names}` in it, for URLs, headers and bodies."""

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
    """A text, and the names that are to be filled in."""

    def __init__(self, text: str) -> None:
        parts = _NAME.split(text)
        self._text = text
        self._literals, self.names = parts[::2], parts[1::2]

    def filled(self, lookup: Lookup) -> str:
        """The text with each name replaced by what `lookup` says."""
        if not self.names:
            return self._text
        parts = [self._literals[0]]
        for name, literal in zip(self.names, self._literals[1:], strict=True):
            parts += (lookup(name), literal)
        return "".join(parts)

    def filled_url(self, lookup: Lookup) -> str:
        """The same for a URL: values cannot change its parts, and a parameter that would be empty is left out."""
        if not self.names:
            return self._text
        path, mark, query = self._text.partition("?")
        kept = [part for part in query.split("&") if not _is_empty(part, lookup)] if mark else []
        url = Template(path).filled(lambda name: _path_part(lookup(name)))
        parameters = Template("&".join(kept)).filled(lambda name: quote(lookup(name), safe=""))
        return f"{url}?{parameters}" if parameters else url


def _is_empty(parameter: str, lookup: Lookup) -> bool:
    alone = _ALONE.fullmatch(parameter)
    return alone is not None and not lookup(alone[1])


def _path_part(text: str) -> str:
    if text in (".", ".."):
        raise DataError(f"{text!r} cannot be a part of a URL: it means another place")
    return quote(text, safe="")


def text_in(record: SinkRecord, name: str) -> str:
    """What a name means for a record: topic, partition, offset, timestamp, key, key.field, header.name, or a field of
    the value (value.field); DataError when there is none."""
    first, _, rest = name.partition(".")
    match first:
        case "topic" | "partition" | "offset" | "timestamp" if not rest:
            found: Value = record.timestamp_ms if first == "timestamp" else getattr(record, first)
            return _told(name, None, found)
        case "key":
            return _told(name, *_field(record.key_schema, record.key, rest))
        case "value" if rest:
            return _told(name, *_field(record.value_schema, record.value, rest))
        case "header" if rest:
            header = next((it for it in reversed(record.headers) if it.key == rest), None)
            return _told(name, header.schema if header else None, header.value if header else None)
        case _:
            return _told(name, *_field(record.value_schema, record.value, name))


def _field(schema: Schema | None, value: Value, path: str) -> tuple[Schema | None, Value]:
    for part in filter(None, path.split(".")):
        value = value.get(part) if isinstance(value, dict) else None
        is_struct = schema is not None and schema.type is Type.STRUCT
        schema = schema.field(part) if schema and is_struct else schema.value_schema if schema else None
    return schema, value


def _told(name: str, schema: Schema | None, value: Value) -> str:
    if value is None:
        raise DataError(f"the record has nothing for ${{{name}}}")
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return text_of(schema, value)
