"""Flattens nested structs and maps: the fields of fields become fields with longer names."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from typing_extensions import override

from connect.api.config import STRING, Config, option
from connect.api.data import Field, Schema, Type, Value
from connect.api.errors import DataError
from connect.api.record import Record
from connect.transforms.field_path import Path, value_at
from connect.transforms.options import raw_text
from connect.transforms.sides import Memo, Side, SideTransform
from connect.transforms.structs import Struct, require_map, require_struct, require_struct_schema, with_fields

_PURPOSE: Final = "flattening"


class FlattenConfig(Config):
    """Options of Flatten."""

    delimiter: str = option(STRING, default=".")
    """The separator between the name of a field and the name of the field within it."""


class _Leaf(NamedTuple):
    name: str
    path: Path
    schema: Schema


class Flatten(SideTransform):
    """Flattens nested structs and maps; lists stay as they are, null passes."""

    config_class = FlattenConfig
    aliases = ("org.apache.kafka.connect.transforms.Flatten",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._delimiter = raw_text(self.config, "delimiter", default=".")
        self._plans = Memo(self._plan)

    @override
    def change(self, record: Record, schema: Schema | None, *, value: Value) -> Side:
        if value is None:
            return schema, value
        if schema is None:
            return None, dict(self._flatten(require_map(value, _PURPOSE), ""))
        flat_schema, leaves = self._plans[schema]
        struct = require_struct(value, _PURPOSE)
        flat: Struct = {}
        for name, path, leaf_schema in leaves:
            found = struct.get(name) if len(path) == 1 else value_at(struct, path)
            flat[name] = leaf_schema.default if found is None else found
        return flat_schema, flat

    def _flatten(self, value: Struct, prefix: str) -> Iterator[tuple[str, Value]]:
        for key, item in value.items():
            if isinstance(item, dict):
                yield from self._flatten(item, f"{prefix}{key}{self._delimiter}")
            else:
                yield f"{prefix}{key}", item

    def _plan(self, schema: Schema) -> tuple[Schema, tuple[_Leaf, ...]]:
        require_struct_schema(schema, _PURPOSE)
        leaves = tuple(self._leaves(schema, (), is_optional=schema.optional, default=schema.default))
        return with_fields(schema, (Field(leaf.name, leaf.schema) for leaf in leaves)), leaves

    def _leaves(self, schema: Schema, path: Path, *, is_optional: bool, default: Value) -> Iterator[_Leaf]:
        """Fields that contain none; each is optional if a struct around it is, and may take its default from there."""
        for item in schema.fields:
            below = (*path, item.name)
            own = item.schema.default
            if own is None and isinstance(default, dict):
                own = default.get(item.name)
            optional = is_optional or item.schema.optional
            if item.schema.type is Type.STRUCT:
                yield from self._leaves(item.schema, below, is_optional=optional, default=own)
            elif item.schema.type is Type.MAP:
                name = self._delimiter.join(below)
                raise DataError(
                    f"Flatten transformation does not support MAP for record with schemas (for field {name})."
                )
            else:
                leaf_schema = item.schema.but(optional=optional, default=own)
                yield _Leaf(self._delimiter.join(below), below, leaf_schema)
