"""Changes to single fields, nested ones included: the part that Cast, MaskField and TimestampConverter share."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Union

from connect.api.data import Field, Schema, Type, Value
from connect.transforms.field_path import Path
from connect.transforms.sides import Memo
from connect.transforms.structs import Struct, copy_with_defaults, defaults_of, require_struct_schema

Change = Callable[[Value], Value]
"""Computes the new value of a field; never called for null."""
Tree = dict[str, Union["Tree", None]]
"""The fields to change, by name: None for the field itself, else a tree of the fields within it."""


class FieldChange(NamedTuple):
    """How a field with some schema changes."""

    schema: Schema
    change: Change


class StructChange(NamedTuple):
    """How structs with some schema change."""

    schema: Schema
    change: Callable[[Struct], Struct]


def tree_of(paths: Iterable[Path]) -> Tree:
    """The tree of some paths; where one leads into a field that another one names as a whole, the whole wins."""
    tree: Tree = {}
    for path in paths:
        node: Tree | None = tree
        for step in path[:-1]:
            if node is None:
                break
            node = node.setdefault(step, {})
        if node is not None and path:
            node[path[-1]] = None
    return tree


def struct_changes(
    tree: Tree, field_change: Callable[[Schema, Path], FieldChange], *, purpose: str, replace_null: bool
) -> Memo[Schema, StructChange]:
    """How structs change when some of their fields do, by schema; fields that a schema lacks are ignored."""

    def compute(schema: Schema) -> StructChange:
        require_struct_schema(schema, purpose)
        return _struct_change(schema, tree, field_change=field_change, replace_null=replace_null, above=())

    return Memo(compute)


def change_map(value: Struct, tree: Tree, *, change: Callable[[Value, Path], Value], above: Path = ()) -> Struct:
    """A map without schema with some of its fields changed; a missing field is null afterwards."""
    copy = value.copy()
    for name, inner in tree.items():
        item = value.get(name)
        if inner is None:
            copy[name] = None if item is None else change(item, (*above, name))
        elif isinstance(item, dict):
            copy[name] = change_map(item, inner, change=change, above=(*above, name))
    return copy


def _struct_change(
    schema: Schema, tree: Tree, *, field_change: Callable[[Schema, Path], FieldChange], replace_null: bool, above: Path
) -> StructChange:
    changes: dict[str, FieldChange] = {}
    for item in schema.fields:
        path = (*above, item.name)
        if item.name not in tree:
            continue
        if (inner := tree[item.name]) is None:
            changes[item.name] = field_change(item.schema, path)
        elif item.schema.type is Type.STRUCT:
            nested = _struct_change(
                item.schema, inner, field_change=field_change, replace_null=replace_null, above=path
            )
            changes[item.name] = FieldChange(nested.schema, nested.change)
    fields = tuple(Field(f.name, changes[f.name].schema) if f.name in changes else f for f in schema.fields)
    defaults = defaults_of(schema, replace_null=replace_null)
    edits = tuple((name, change.change) for name, change in changes.items())

    def change(value: Struct) -> Struct:
        copy = copy_with_defaults(value, defaults) if defaults else value.copy()
        for name, edit in edits:
            item = copy.get(name)
            if item is not None:
                copy[name] = edit(item)
        return copy

    default = change(schema.default) if isinstance(schema.default, dict) else schema.default
    return StructChange(schema.but(fields=fields, default=default), change)
