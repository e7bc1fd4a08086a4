"""Gives schemas another name or version."""

from collections.abc import Iterable, Mapping
from typing import Any

from typing_extensions import override

from connect.api.config import INT, STRING, Importance, Problem, option, optional
from connect.api.data import Schema, Value
from connect.api.errors import DataError
from connect.api.record import Record
from connect.transforms.options import NullConfig
from connect.transforms.sides import BySchema, Side, SideTransform


class SetSchemaMetadataConfig(NullConfig):
    """Options of SetSchemaMetadata."""

    schema_name: str | None = option(optional(STRING), default=None, importance=Importance.HIGH)
    """The name to set."""
    schema_version: int | None = option(optional(INT), default=None, importance=Importance.HIGH)
    """The version to set."""

    @override
    def problems(self) -> Iterable[Problem]:
        """Something must be set."""
        if self.schema_name is None and self.schema_version is None:
            yield Problem("schema.name", "Neither schema name nor version configured")


class SetSchemaMetadata(SideTransform):
    """Gives the schema of a key or value another name or version; null without a schema passes."""

    config_class = SetSchemaMetadataConfig

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        options = SetSchemaMetadataConfig.parse(config)
        told = {"name": options.schema_name, "version": options.schema_version}
        self._changes: dict[str, Any] = {name: value for name, value in told.items() if value is not None}
        self._schemas = BySchema(lambda schema: schema.but(**self._changes))

    @override
    def change(self, record: Record, schema: Schema | None, *, value: Value) -> Side:
        if schema is not None:
            return self._schemas[schema], value
        if value is None:
            return None, None
        raise DataError("Schema required for [updating schema metadata]")


class SetSchemaMetadataKey(SetSchemaMetadata):
    """Changes schemas of keys."""

    is_key = True
    aliases = ("org.apache.kafka.connect.transforms.SetSchemaMetadata$Key",)


class SetSchemaMetadataValue(SetSchemaMetadata):
    """Changes schemas of values."""

    aliases = ("org.apache.kafka.connect.transforms.SetSchemaMetadata$Value",)
