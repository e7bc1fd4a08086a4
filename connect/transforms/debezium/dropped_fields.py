"""Takes the fields away that a header names, as ExtractNewRecordState does when it is told to."""

from typing import Final

from msgspec.structs import replace

from connect.api.data import Schema, Type, Value
from connect.api.record import Record
from connect.api.transform import R
from connect.transforms.sides import Side
from connect.transforms.structs import rebuilt

_MOST_SCHEMAS: Final = 1_000


class DroppedFields:
    """Takes the fields away that a header names."""

    def __init__(self, header: str, *, from_key: bool, keeps_compatible: bool) -> None:
        """`keeps_compatible`: only optional fields are taken away, so that readers of the old schema can go on."""
        self._header = header
        self._from_key = from_key
        self._keeps_compatible = keeps_compatible
        self._schemas: dict[tuple[Schema, frozenset[str]], Schema] = {}

    def apply(self, record: R) -> R:
        """The record without these fields; the same one when it has no such header."""
        names = self._names(record)
        if not names:
            return record
        value_schema, value = self._without(record.value_schema, record.value, names=names)
        key_schema, key = record.key_schema, record.key
        if self._from_key:
            key_schema, key = self._without(key_schema, key, names=names)
        return replace(record, key_schema=key_schema, key=key, value_schema=value_schema, value=value)

    def _names(self, record: Record) -> frozenset[str]:
        found = next((header.value for header in record.headers if header.key == self._header), None)
        return frozenset(item for item in found if isinstance(item, str)) if isinstance(found, list) else frozenset()

    def _without(self, schema: Schema | None, value: Value, *, names: frozenset[str]) -> Side:
        if not isinstance(value, dict) or (schema is not None and schema.type is not Type.STRUCT):
            return schema, value
        if schema is None:
            return None, {name: item for name, item in value.items() if name not in names}
        new_schema = self._schemas.get((schema, names)) or self._made(schema, names)
        return new_schema, {name: item for name, item in value.items() if name in new_schema.by_name}

    def _made(self, schema: Schema, names: frozenset[str]) -> Schema:
        if len(self._schemas) >= _MOST_SCHEMAS:
            self._schemas.clear()
        kept = [
            item
            for item in schema.fields
            if item.name not in names or (self._keeps_compatible and not item.schema.optional)
        ]
        made = self._schemas[schema, names] = rebuilt(schema, kept)
        return made
