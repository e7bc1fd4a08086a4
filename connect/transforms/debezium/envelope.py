"""The envelope of Debezium's change events: before, after, op, source, ts_ms."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from connect.api.data import Schema, Value
from connect.api.errors import ConfigError
from connect.api.record import Record
from connect.transforms.field_path import Path, schema_at

BEFORE: Final = "before"
AFTER: Final = "after"
OPERATION: Final = "op"
DELETE: Final = "d"
UPDATE: Final = "u"
TRUNCATE: Final = "t"
_SUFFIX: Final = ".Envelope"
_OWN_FIELDS: Final = frozenset({OPERATION, "ts_ms", "ts_us", "ts_ns"})
_TRANSACTION_FIELDS: Final = frozenset({"id", "data_collection_order", "total_order"})


def is_envelope(record: Record) -> bool:
    """Whether the value is an envelope: by the name of its schema, or by its fields if it has none."""
    if record.value_schema is not None:
        return record.value_schema.name is not None and record.value_schema.name.endswith(_SUFFIX)
    value = record.value
    return isinstance(value, dict) and OPERATION in value and "source" in value and (AFTER in value or BEFORE in value)


class Reference(NamedTuple):
    """A field of an envelope that is added to the row taken from it."""

    path: Path
    name: str
    """Its name in the row."""

    def schema_in(self, envelope: Schema) -> Schema | None:
        """The schema it has in the row; None when the envelope has no such field."""
        found = schema_at(envelope, self.path_in(envelope))
        return None if found is None else found.but(optional=True, default=None)

    def path_in(self, envelope: Schema) -> Path:
        """Its path: other transforms may have moved it out of the struct that it belongs to."""
        return self.path if schema_at(envelope, self.path) is not None else self.path[-1:]


def references(texts: tuple[str, ...], prefix: str) -> Iterator[Reference]:
    """Parse `op,source.ts_ms:time`; a name without a struct is a field of `source`, unless it is well known."""
    for text in texts:
        place, *alias = (part.strip() for part in text.split(":"))
        if len(alias) > 1 or not place:
            raise ConfigError(f"Unexpected field name: {text}")
        struct, _, field = place.rpartition(".")
        path = (struct, field) if struct else _path_of(field)
        yield Reference(path, prefix + (alias[0] if alias else place.replace(".", "_")))


def _path_of(field: str) -> Path:
    if field in _OWN_FIELDS:
        return (field,)
    if field == "updateDescription":
        return (field, field)
    return ("transaction" if field in _TRANSACTION_FIELDS else "source", field)


def text_field(value: Value, name: str) -> str | None:
    """The text in a field, such as the one to route by; None when there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) and found.strip() else None
