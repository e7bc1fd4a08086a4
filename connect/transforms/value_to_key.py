"""Makes a key from fields of the value."""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace
from typing_extensions import override

from connect.api.config import LIST, Importance, Problem, option
from connect.api.data import Field, Schema, Type
from connect.api.errors import DataError
from connect.api.transform import R, Transform
from connect.transforms.field_path import parse_path, schema_at, typed_value_at, value_at
from connect.transforms.options import FIELD_NAMES, PathConfig
from connect.transforms.sides import BySchema
from connect.transforms.structs import require_map, require_struct, require_struct_schema

_PURPOSE: Final = "copying fields from value to key"


class ValueToKeyConfig(PathConfig):
    """Options of ValueToKey."""

    fields: tuple[str, ...] = option(LIST, check=FIELD_NAMES, importance=Importance.HIGH)
    """Fields of the value that make the key; a nested one (V2) has its last name there."""

    @override
    def problems(self) -> Iterable[Problem]:
        """Two fields cannot have one name."""
        names = [parse_path(name, self.field_syntax_version)[-1:] for name in self.fields]
        if len(set(names)) != len(names):
            given = ",".join(self.fields)
            yield Problem("fields", f"Invalid value {given} for configuration fields: names in the key must differ")


class ValueToKey(Transform):
    """Makes a new key from fields of the value."""

    config_class = ValueToKeyConfig
    aliases = ("org.apache.kafka.connect.transforms.ValueToKey",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        options = ValueToKeyConfig.parse(config)
        paths = (parse_path(name, options.field_syntax_version) for name in options.fields)
        self._paths = tuple((path[-1], path) for path in paths)
        self._replace_null = options.replace_null_with_default
        self._schemas = BySchema(self._schema)

    @override
    def apply(self, record: R) -> R | None:
        schema = record.value_schema
        if schema is None:
            value = require_map(record.value, _PURPOSE)
            key = {name: value_at(value, path) for name, path in self._paths}
            return replace(record, key_schema=None, key=key)
        value = require_struct(record.value, _PURPOSE)
        key_schema = self._schemas[schema]
        keeps = self._replace_null
        key = {name: typed_value_at(schema, value, path=path, replace_null=keeps) for name, path in self._paths}
        return replace(record, key_schema=key_schema, key=key)

    def _schema(self, schema: Schema) -> Schema:
        require_struct_schema(schema, _PURPOSE)
        fields = []
        for name, path in self._paths:
            found = schema_at(schema, path)
            if found is None:
                raise DataError(f"Field does not exist: {'.'.join(path)}")
            fields.append(Field(name, found))
        return Schema(Type.STRUCT, fields=tuple(fields))
