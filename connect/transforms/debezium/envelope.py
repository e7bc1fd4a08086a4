"""The envelope in which Debezium tells of changes: before, after, op, source, ts_ms."""

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
    """Whether the value is one: by the name of its schema; without schema, by its fields."""
    if record.value_schema is not None:
        return record.value_schema.name is not None and record.value_schema.name.endswith(_SUFFIX)
    value = record.value
    return isinstance(value, dict) and OPERATION in value and "source" in value and (AFTER in value or BEFORE in value)


class Reference(NamedTuple):
    """A field of an envelope that is added to what is taken out of it."""

    path: Path
    name: str
    """What it is called there."""

    def schema_in(self, envelope: Schema) -> Schema | None:
        """The schema it gets; None when the envelope has no such field."""
        found = schema_at(envelope, self.found_in(envelope))
        return None if found is None else found.but(optional=True, default=None)

    def found_in(self, envelope: Schema) -> Path:
        """Where it is: other transforms may have put it beside the struct that it belongs to."""
        return self.path if schema_at(envelope, self.path) is not None else self.path[-1:]


def references(texts: tuple[str, ...], prefix: str) -> Iterator[Reference]:
    """What `op,source.ts_ms:time` means; names without a struct are those of the source unless they are well known."""
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
    """A field with text, such as the one to route by; None when it has none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) and found.strip() else None
