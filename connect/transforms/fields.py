"""Transforms that move, rename and remove fields, or rename the schema around them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from msgspec.structs import replace
from typing_extensions import override

from connect.api.config import INT, LIST, STRING, Importance, Problem, option, optional
from connect.api.data import Field, Schema, Type, Value, struct
from connect.api.errors import DataError
from connect.api.record import Record
from connect.api.transform import R, Transform
from connect.transforms.field_changes import Tree, tree_of
from connect.transforms.field_path import parse_path, schema_at, typed_value_at, value_at
from connect.transforms.options import FIELD_NAMES, NullConfig, PathConfig
from connect.transforms.sides import Memo, Side, SideTransform
from connect.transforms.structs import (
    Defaults,
    Struct,
    copy_with_defaults,
    defaults_of,
    require_map,
    require_struct,
    require_struct_schema,
    with_fields,
)

_EXTRACTION: Final = "field extraction"
_REPLACEMENT: Final = "field replacement"
_COPYING: Final = "copying fields from value to key"


class ExtractFieldConfig(PathConfig):
    """Options of ExtractField."""

    field: str = option(STRING)
    """The field to extract."""


class ExtractField(SideTransform):
    """Replaces a key or value by one of its fields; null stays null."""

    config_class = ExtractFieldConfig
    config: ExtractFieldConfig
    aliases = ("org.apache.kafka.connect.transforms.ExtractField",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._path = parse_path(self.config.field, self.config.field_syntax_version)
        self._replace_null = self.config.replace_null_with_default
        self._schemas = Memo(self._schema)

    @override
    def change(self, record: Record, schema: Schema | None, *, value: Value) -> Side:
        if schema is None:
            return None, None if value is None else value_at(require_map(value, _EXTRACTION), self._path)
        found = self._schemas[schema]
        if value is None:
            return found, None
        whole = require_struct(value, _EXTRACTION)
        return found, typed_value_at(schema, whole, path=self._path, replace_null=self._replace_null)

    def _schema(self, schema: Schema) -> Schema:
        require_struct_schema(schema, _EXTRACTION)
        found = schema_at(schema, self._path)
        if found is None:
            raise DataError(f"Unknown field: {self.config.field}")
        return found


class HoistFieldConfig(PathConfig):
    """Options of HoistField."""

    field: str = option(STRING)
    """The field that holds the key or value afterwards; with V2 a path, and each of its steps becomes a struct."""


class HoistField(SideTransform):
    """Wraps a key or value in a struct, or map, with one field; null is wrapped too."""

    config_class = HoistFieldConfig
    config: HoistFieldConfig
    aliases = ("org.apache.kafka.connect.transforms.HoistField",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._outwards = parse_path(self.config.field, self.config.field_syntax_version)[::-1]
        self._schemas = Memo(self._schema)

    @override
    def change(self, record: Record, schema: Schema | None, *, value: Value) -> Side:
        for name in self._outwards:
            value = {name: value}
        return None if schema is None else self._schemas[schema], value

    def _schema(self, schema: Schema) -> Schema:
        for name in self._outwards:
            schema = struct({name: schema})
        return schema


class ReplaceFieldConfig(PathConfig):
    """Options of ReplaceField."""

    exclude: tuple[str, ...] = option(LIST, default=(), aliases=("blacklist",))
    """Fields to remove; this takes precedence over include. With V2 they may be nested."""
    include: tuple[str, ...] = option(LIST, default=(), aliases=("whitelist",))
    """Fields to keep; empty: all of them."""
    renames: tuple[str, ...] = option(LIST, default=())
    """New names of fields, as old:new,old:new."""

    @override
    def problems(self) -> Iterable[Problem]:
        """Each rename is a pair of names."""
        for entry in self.renames:
            if len(entry.split(":")) != 2:
                start = f"Invalid value [{','.join(self.renames)}] for configuration renames"
                yield Problem("renames", f"{start}: Invalid rename mapping: {entry}")


class _Replacement(NamedTuple):
    schema: Schema
    names: tuple[tuple[str, str], ...]
    """The old and the new name of each field that is kept."""
    defaults: Defaults


class ReplaceField(SideTransform):
    """Removes or renames fields; null passes."""

    config_class = ReplaceFieldConfig
    config: ReplaceFieldConfig
    aliases = ("org.apache.kafka.connect.transforms.ReplaceField", "io.confluent.connect.transforms.ReplaceField")

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        options = self.config
        tree = tree_of(parse_path(name, options.field_syntax_version) for name in options.exclude)
        self._excluded = {name for name, inner in tree.items() if inner is None}
        self._nested: Tree = {name: inner for name, inner in tree.items() if inner is not None}
        self._included = frozenset(options.include)
        pairs = (entry.split(":") for entry in options.renames)
        self._renames = {old.strip(): new.strip() for old, new in pairs}
        self._plans = Memo(self._plan)

    @override
    def change(self, record: Record, schema: Schema | None, *, value: Value) -> Side:
        if value is None:
            return schema, value
        whole = require_map(value, _REPLACEMENT) if schema is None else require_struct(value, _REPLACEMENT)
        if self._nested:
            whole = _prune(whole, self._nested)
        if schema is None:
            names = self._renames
            return None, {names.get(name, name): item for name, item in whole.items() if self._keeps(name)}
        updated, renamed, defaults = self._plans[schema]
        get = whole.get
        kept = {new: get(old) for old, new in renamed}
        return updated, copy_with_defaults(kept, defaults) if defaults else kept

    def _keeps(self, name: str) -> bool:
        return name not in self._excluded and (not self._included or name in self._included)

    def _plan(self, schema: Schema) -> _Replacement:
        require_struct_schema(schema, _REPLACEMENT)
        kept = [item for item in schema.fields if self._keeps(item.name)]
        fields = [
            Field(self._renames.get(item.name, item.name), _prune_schema(item.schema, self._nested.get(item.name)))
            for item in kept
        ]
        names = tuple((old.name, new.name) for old, new in zip(kept, fields, strict=True))
        updated = with_fields(schema, fields)
        return _Replacement(updated, names, defaults_of(updated, replace_null=self.config.replace_null_with_default))


def _prune(value: Struct, tree: Tree) -> Struct:
    """A copy without the fields of a tree."""
    copy = value.copy()
    for name, inner in tree.items():
        if inner is None:
            copy.pop(name, None)
        elif isinstance(item := copy.get(name), dict):
            copy[name] = _prune(item, inner)
    return copy


def _prune_schema(schema: Schema, tree: Tree | None) -> Schema:
    if tree is None or schema.type is not Type.STRUCT:
        return schema
    fields = (
        Field(item.name, _prune_schema(item.schema, tree.get(item.name)))
        for item in schema.fields
        if tree.get(item.name, {}) is not None
    )
    default = _prune(schema.default, tree) if isinstance(schema.default, dict) else schema.default
    return schema.but(fields=tuple(fields), default=default)


class ValueToKeyConfig(PathConfig):
    """Options of ValueToKey."""

    fields: tuple[str, ...] = option(LIST, check=FIELD_NAMES, importance=Importance.HIGH)
    """Fields of the value that make up the key; a nested one (V2) keeps the last part of its path as its name."""

    @override
    def problems(self) -> Iterable[Problem]:
        """No two fields of the key have the same name."""
        names = [parse_path(name, self.field_syntax_version)[-1:] for name in self.fields]
        if len(set(names)) != len(names):
            given = ",".join(self.fields)
            yield Problem("fields", f"Invalid value {given} for configuration fields: names in the key must differ")


class ValueToKey(Transform):
    """Replaces the key by fields of the value."""

    config_class = ValueToKeyConfig
    config: ValueToKeyConfig
    aliases = ("org.apache.kafka.connect.transforms.ValueToKey",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        paths = (parse_path(name, self.config.field_syntax_version) for name in self.config.fields)
        self._paths = tuple((path[-1], path) for path in paths)
        self._replace_null = self.config.replace_null_with_default
        self._schemas = Memo(self._schema)

    @override
    def apply(self, record: R) -> R | None:
        schema = record.value_schema
        if schema is None:
            value = require_map(record.value, _COPYING)
            key = {name: value_at(value, path) for name, path in self._paths}
            return replace(record, key_schema=None, key=key)
        value = require_struct(record.value, _COPYING)
        key_schema = self._schemas[schema]
        replaces = self._replace_null
        key = {name: typed_value_at(schema, value, path=path, replace_null=replaces) for name, path in self._paths}
        return replace(record, key_schema=key_schema, key=key)

    def _schema(self, schema: Schema) -> Schema:
        require_struct_schema(schema, _COPYING)
        fields = []
        for name, path in self._paths:
            found = schema_at(schema, path)
            if found is None:
                raise DataError(f"Field does not exist: {'.'.join(path)}")
            fields.append(Field(name, found))
        return Schema(Type.STRUCT, fields=tuple(fields))


class SetSchemaMetadataConfig(NullConfig):
    """Options of SetSchemaMetadata."""

    schema_name: str | None = option(optional(STRING), default=None, importance=Importance.HIGH)
    """The name to set."""
    schema_version: int | None = option(optional(INT), default=None, importance=Importance.HIGH)
    """The version to set."""

    @override
    def problems(self) -> Iterable[Problem]:
        """At least one of the two is set."""
        if self.schema_name is None and self.schema_version is None:
            yield Problem("schema.name", "Neither schema name nor version configured")


class SetSchemaMetadata(SideTransform):
    """Sets the name or version of a schema; null without a schema passes."""

    config_class = SetSchemaMetadataConfig
    config: SetSchemaMetadataConfig
    aliases = ("org.apache.kafka.connect.transforms.SetSchemaMetadata",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        given = {"name": self.config.schema_name, "version": self.config.schema_version}
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        self._schemas = Memo[Schema, Schema](lambda schema: schema.but(**changes))

    @override
    def change(self, record: Record, schema: Schema | None, *, value: Value) -> Side:
        if schema is not None:
            return self._schemas[schema], value
        if value is None:
            return None, None
        raise DataError("Schema required for [updating schema metadata]")
