"""Wraps a key or value in a struct, or map, with one field."""

from collections.abc import Mapping

from typing_extensions import override

from connect.api.config import STRING, option
from connect.api.data import Schema, Value, struct
from connect.api.record import Record
from connect.transforms.field_path import parse_path
from connect.transforms.options import PathConfig
from connect.transforms.sides import BySchema, Side, SideTransform


class HoistFieldConfig(PathConfig):
    """Options of HoistField."""

    field: str = option(STRING)
    """The field that the key or value goes into; with V2 a path, each step of which is a struct of its own."""


class HoistField(SideTransform):
    """Wraps a key or value in a struct, or map, with one field; null is wrapped too."""

    config_class = HoistFieldConfig

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        options = HoistFieldConfig.parse(config)
        self._outwards = parse_path(options.field, options.field_syntax_version)[::-1]
        self._schemas = BySchema(self._schema)

    @override
    def change(self, record: Record, schema: Schema | None, *, value: Value) -> Side:
        for name in self._outwards:
            value = {name: value}
        return None if schema is None else self._schemas[schema], value

    def _schema(self, schema: Schema) -> Schema:
        for name in self._outwards:
            schema = struct({name: schema})
        return schema


class HoistFieldKey(HoistField):
    """Wraps keys."""

    is_key = True
    aliases = ("org.apache.kafka.connect.transforms.HoistField$Key",)


class HoistFieldValue(HoistField):
    """Wraps values."""

    aliases = ("org.apache.kafka.connect.transforms.HoistField$Value",)
