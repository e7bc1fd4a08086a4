"""Takes fields away, or gives them other names."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from typing_extensions import override

from connect.api.config import LIST, Problem, option
from connect.api.data import Field, Schema, Type, Value
from connect.api.record import Record
from connect.transforms.field_changes import Tree, tree_of
from connect.transforms.field_path import parse_path
from connect.transforms.options import PathConfig
from connect.transforms.sides import BySchema, Side, SideTransform
from connect.transforms.structs import (
    Defaults,
    Struct,
    copied,
    defaults_of,
    rebuilt,
    require_map,
    require_struct,
    require_struct_schema,
)

_PURPOSE: Final = "field replacement"


class ReplaceFieldConfig(PathConfig):
    """Options of ReplaceField."""

    exclude: tuple[str, ...] = option(LIST, default=(), aliases=("blacklist",))
    """Fields to take away; this wins over include. With V2 they may be nested."""
    include: tuple[str, ...] = option(LIST, default=(), aliases=("whitelist",))
    """Fields to keep; none: all."""
    renames: tuple[str, ...] = option(LIST, default=())
    """New names of fields, as old:new,old:new."""

    @override
    def problems(self) -> Iterable[Problem]:
        """Renames are pairs."""
        for entry in self.renames:
            if len(entry.split(":")) != 2:
                given = ",".join(self.renames)
                told = f"Invalid value [{given}] for configuration renames: Invalid rename mapping: {entry}"
                yield Problem("renames", told)


class _Plan(NamedTuple):
    schema: Schema
    names: tuple[tuple[str, str], ...]
    """Old and new names of what is kept."""
    defaults: Defaults


class ReplaceField(SideTransform):
    """Takes fields away, or gives them other names; null passes."""

    config_class = ReplaceFieldConfig

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        options = ReplaceFieldConfig.parse(config)
        tree = tree_of(parse_path(name, options.field_syntax_version) for name in options.exclude)
        self._excluded = {name for name, inner in tree.items() if inner is None}
        self._nested: Tree = {name: inner for name, inner in tree.items() if inner is not None}
        self._included = frozenset(options.include)
        pairs = (entry.split(":") for entry in options.renames)
        self._renames = {old.strip(): new.strip() for old, new in pairs}
        self._replace_null = options.replace_null_with_default
        self._plans = BySchema(self._plan)

    @override
    def change(self, record: Record, schema: Schema | None, *, value: Value) -> Side:
        if value is None:
            return schema, value
        if schema is None:
            return None, self._filtered(require_map(value, _PURPOSE))
        struct = require_struct(value, _PURPOSE)
        get = _pruned(struct, self._nested).get if self._nested else struct.get
        updated, names, defaults = self._plans[schema]
        kept = {new: get(old) for old, new in names}
        return updated, copied(kept, defaults) if defaults else kept

    def _keeps(self, name: str) -> bool:
        return name not in self._excluded and (not self._included or name in self._included)

    def _filtered(self, value: Struct) -> Struct:
        renames = self._renames
        pruned = _pruned(value, self._nested) if self._nested else value
        return {renames.get(name, name): item for name, item in pruned.items() if self._keeps(name)}

    def _plan(self, schema: Schema) -> _Plan:
        require_struct_schema(schema, _PURPOSE)
        kept = [item for item in schema.fields if self._keeps(item.name)]
        fields = [
            Field(self._renames.get(item.name, item.name), _pruned_schema(item.schema, self._nested.get(item.name)))
            for item in kept
        ]
        names = tuple((old.name, new.name) for old, new in zip(kept, fields, strict=True))
        updated = rebuilt(schema, fields)
        return _Plan(updated, names, defaults_of(updated, replace_null=self._replace_null))


class ReplaceFieldKey(ReplaceField):
    """Changes the fields of keys."""

    is_key = True
    aliases = (
        "org.apache.kafka.connect.transforms.ReplaceField$Key",
        "io.confluent.connect.transforms.ReplaceField$Key",
    )


class ReplaceFieldValue(ReplaceField):
    """Changes the fields of values."""

    aliases = (
        "org.apache.kafka.connect.transforms.ReplaceField$Value",
        "io.confluent.connect.transforms.ReplaceField$Value",
    )


def _pruned(value: Struct, tree: Tree) -> Struct:
    """A copy without the fields of a tree."""
    copy = value.copy()
    for name, inner in tree.items():
        if inner is None:
            copy.pop(name, None)
        elif isinstance(item := copy.get(name), dict):
            copy[name] = _pruned(item, inner)
    return copy


def _pruned_schema(schema: Schema, tree: Tree | None) -> Schema:
    if tree is None or schema.type is not Type.STRUCT:
        return schema
    fields = (
        Field(item.name, _pruned_schema(item.schema, tree.get(item.name)))
        for item in schema.fields
        if tree.get(item.name, {}) is not None
    )
    default = _pruned(schema.default, tree) if isinstance(schema.default, dict) else schema.default
    return schema.but(fields=tuple(fields), default=default)
