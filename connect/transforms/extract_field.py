"""Replaces a key or value by one of its fields."""

from collections.abc import Mapping
from typing import Final

from typing_extensions import override

from connect.api.config import STRING, option
from connect.api.data import Schema, Value
from connect.api.errors import DataError
from connect.api.record import Record
from connect.transforms.field_path import parse_path, schema_at, typed_value_at, value_at
from connect.transforms.options import PathConfig
from connect.transforms.sides import BySchema, Side, SideTransform
from connect.transforms.structs import require_map, require_struct, require_struct_schema

_PURPOSE: Final = "field extraction"


class ExtractFieldConfig(PathConfig):
    """Options of ExtractField."""

    field: str = option(STRING)
    """The field to take."""


class ExtractField(SideTransform):
    """Replaces a key or value by one of its fields; null stays null."""

    config_class = ExtractFieldConfig

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        options = ExtractFieldConfig.parse(config)
        self._field = options.field
        self._path = parse_path(options.field, options.field_syntax_version)
        self._replace_null = options.replace_null_with_default
        self._schemas = BySchema(self._schema)

    @override
    def change(self, record: Record, schema: Schema | None, *, value: Value) -> Side:
        if schema is None:
            return None, None if value is None else value_at(require_map(value, _PURPOSE), self._path)
        found = self._schemas[schema]
        if value is None:
            return found, None
        struct = require_struct(value, _PURPOSE)
        return found, typed_value_at(schema, struct, path=self._path, replace_null=self._replace_null)

    def _schema(self, schema: Schema) -> Schema:
        require_struct_schema(schema, _PURPOSE)
        found = schema_at(schema, self._path)
        if found is None:
            raise DataError(f"Unknown field: {self._field}")
        return found


class ExtractFieldKey(ExtractField):
    """Replaces keys."""

    is_key = True
    aliases = ("org.apache.kafka.connect.transforms.ExtractField$Key",)


class ExtractFieldValue(ExtractField):
    """Replaces values."""

    aliases = ("org.apache.kafka.connect.transforms.ExtractField$Value",)
