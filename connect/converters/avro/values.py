"""Avro data as values of Connect and back: the plans for `schema_registry.serdes`, by the options of the converter."""

from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from connect.api.data import Schema, Type, Value
from connect.api.errors import DataError
from connect.api.logical import logical_of
from connect.converters.avro import config as names
from connect.converters.avro.config import AvroConfig
from schema_registry.formats.avro import AvroSchema
from schema_registry.formats.avro_types import Array, Enum, Fixed, Map, Primitive, Record, Union, label
from schema_registry.formats.avro_types import Type as AvroType
from schema_registry.serdes import avro_bounds
from schema_registry.serdes import avro_plan as plans
from schema_registry.serdes.avro import AvroCodec, default_bytes
from schema_registry.serdes.avro_mismatch import Form
from schema_registry.serdes.avro_reading import Read, reader
from schema_registry.serdes.avro_writing import Write, writer

_KINDS: Final = {
    Type.INT8: ("int", "long"),
    Type.INT16: ("int", "long"),
    Type.INT32: ("int", "long"),
    Type.INT64: ("long",),
    Type.FLOAT32: ("float", "double"),
    Type.FLOAT64: ("double",),
    Type.BOOLEAN: ("boolean",),
    Type.STRING: ("string", "enum"),
    Type.BYTES: ("bytes", "fixed"),
    Type.ARRAY: ("array",),
    Type.MAP: ("map", "array"),
    Type.STRUCT: ("record",),
}
"""The kinds of Avro that values of a type may be written as, if a union leaves the choice."""


def read_plan(root: AvroType, config: AvroConfig) -> plans.Plan:
    """How data is read, by the options of the converter; raises UnusableSchema."""
    return _ConnectMeaning(config).of(root)


def reading(root: AvroType, schema: Schema | None, config: AvroConfig) -> Read:
    """Reads data of an Avro schema as values of its Connect schema; raises InvalidData."""
    if schema is None:
        decode = AvroCodec(AvroSchema(root, {})).decode
        return lambda data, start: _of_anything(decode(data, start))
    avro_bounds.check(root)
    return reader(read_plan(root, config), Form.TYPED)


def writing(root: AvroType, schema: Schema, config: AvroConfig) -> Write:
    """Writes values of a Connect schema by an Avro schema; raises InvalidData, or DataError if it never can."""
    return writer(_WritePlans(config).of(root, schema), Form.TYPED)


class _ConnectMeaning(plans.Meaning):
    """Names and flattens unions by the options of the converter."""

    def __init__(self, config: AvroConfig) -> None:
        super().__init__()
        self._config = config

    @override
    def branch_name(self, branch: AvroType, index: int) -> str:
        return self._config.branch_name(branch, index)

    @override
    def is_flat(self, union: Union) -> bool:
        is_kept = len(union.branches) == 1 and not self._config.flatten_singleton_unions
        return super().is_flat(union) and not is_kept


class _WritePlans:
    """Makes plans that write values of a Connect schema, which may differ from the one that the Avro schema had."""

    def __init__(self, config: AvroConfig) -> None:
        self._config = config

    def of(self, type_: AvroType, schema: Schema) -> plans.Plan:
        """The plan for a type that is not null."""
        match type_:
            case Union():
                return self._union(type_, schema)
            case Record():
                return self._record(type_, schema)
            case Array() if schema.type is Type.MAP:
                if not isinstance(type_.items, Record) or schema.key_schema is None:
                    raise DataError("the Avro array has no entries of a map")
                parts = {names.KEY: schema.key_schema, names.VALUE: _values(schema)}
                fields = [plans.FieldPlan(f.name, self.of(f.type, parts[f.name]), f.name) for f in type_.items.fields]
                return plans.EntriesPlan(plans.StructPlan(type_.items.name.full, fields))
            case Array():
                return plans.ListPlan(self.of(type_.items, _values(schema)))
            case Map():
                return plans.MapPlan(self.of(type_.values, _values(schema)))
            case Primitive() | Fixed() | Enum():
                return plans.Scalar(type_, logical_of(schema))

    def _union(self, union: Union, schema: Schema) -> plans.ChoicePlan:
        branches = {index: branch for index, branch in enumerate(union.branches) if branch.kind != "null"}
        null = next((index for index, branch in enumerate(union.branches) if branch.kind == "null"), None)
        count = len(union.branches)
        if names.is_union(schema):
            by_name = {self._config.branch_name(branch, index): index for index, branch in branches.items()}
            members = []
            for field in schema.fields:
                if field.name not in by_name:
                    raise DataError(f"the Avro union of {', '.join(by_name)} has no branch {field.name}")
                index = by_name[field.name]
                members.append(plans.Branch(index, field.name, self.of(branches[index], field.schema)))
            return plans.ChoicePlan(members, null, count, is_flat=False)
        fitting = [index for index, branch in branches.items() if branch.kind in _KINDS[schema.type]]
        if not fitting:
            raise DataError(f"the Avro union of {', '.join(map(label, union.branches))} has no place for {schema.type}")
        index = next((i for i in fitting if label(branches[i]) == schema.name), fitting[0])
        return plans.ChoicePlan([plans.Branch(index, "", self.of(branches[index], schema))], null, count, is_flat=True)

    def _record(self, record: Record, schema: Schema) -> plans.StructPlan:
        by_name = {self._config.scrub(field.name): field for field in schema.fields}
        fields = []
        for field in record.fields:
            source = by_name.get(field.name)
            if source is None:  # Only the registered schema has it.
                if not field.has_default:
                    lacks = f"has a field {field.name} that the Connect schema has not"
                    raise DataError(f"the Avro record {record.name.full} {lacks}")
                constant = default_bytes(field)
                fields.append(
                    plans.FieldPlan(field.name, plans.Scalar(Primitive("null")), field.name, constant=constant)
                )
                continue
            is_ignored = source.schema.optional and self._config.ignore_default_for_nullables
            default = plans.NO_DEFAULT if is_ignored or source.schema.default is None else source.schema.default
            fields.append(plans.FieldPlan(field.name, self.of(field.type, source.schema), source.name, default))
        return plans.StructPlan(record.name.full, fields)


def _values(schema: Schema) -> Schema:
    if schema.value_schema is None:
        raise DataError(f"a schema of {schema.type} must have one of its values")
    return schema.value_schema


# --- values without a schema -----------------------------------------------------------------------------------------


def anything_of(value: Value) -> dict[str, Any]:
    """A value without a schema as an Avro record that can hold any value."""
    match value:
        case None:
            return {}
        case bool():
            return {"boolean": value}
        case int():
            return {"long": value}
        case float():
            return {"double": value}
        case str():
            return {"string": value}
        case bytes() | bytearray() | memoryview():
            return {"bytes": bytes(value)}
        case list() | tuple():
            return {"array": [anything_of(item) for item in value]}
        case dict():
            entries = [{names.KEY: anything_of(k), names.VALUE: anything_of(v)} for k, v in value.items()]
            return {"map": entries}
        case _:
            raise DataError(f"a value of type {type(value).__name__} cannot be written without a schema")


def _of_anything(record: Mapping[str, Any]) -> Value:
    for kind, value in record.items():
        if value is not None:
            if kind == "array":
                return [_of_anything(item) for item in value]
            if kind == "map":
                pairs = [(_of_anything(item[names.KEY]), _of_anything(item[names.VALUE])) for item in value]
                try:
                    return dict(pairs)
                except TypeError as error:
                    raise DataError("the keys of a map must not be structs, lists or maps themselves") from error
            return value
    return None
