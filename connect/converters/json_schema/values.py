"""The plans by which JSON documents are read as Connect values, and values written as documents."""

from connect.api.data import Schema, Type
from connect.api.errors import DataError
from connect.api.logical import logical_of
from connect.converters.json.writing import ready
from connect.converters.json_schema import config as names
from connect.converters.json_schema.config import JsonSchemaConfig
from schema_registry.formats.json_schema import JsonSchema
from schema_registry.serdes.json_plan import Choices, FieldPlan, Plan, Shape
from schema_registry.serdes.json_values import Write, encode_json, plan_of, writer


def read_plan(schema: JsonSchema, config: JsonSchemaConfig) -> Plan:
    """How documents are read, by the options of the converter; raises UnusableSchema."""
    choices = Choices(
        has_optional_properties=config.use_optional_for_nonrequired,
        others=names.ADDITIONAL if config.preserve_additional_properties else None,
        flattens_singletons=config.flatten_singleton_unions,
        branch_name=config.branch_name,
    )
    return plan_of(schema, choices)


def writing(schema: Schema | None, config: JsonSchemaConfig) -> Write:
    """Writes values of a Connect schema, or without one; raises InvalidData."""
    if schema is None:
        return lambda value: encode_json(ready(value))
    plan = connect_plan(schema, ignores_defaults=config.ignore_default_for_nullables)
    return writer(plan, has_numeric_decimals=config.has_numeric_decimals)


def connect_plan(schema: Schema, *, ignores_defaults: bool = False) -> Plan:
    """How values of a Connect schema are read and written; raises DataError."""
    plan = _plan(schema, ignores_defaults=ignores_defaults)
    plan.is_optional = schema.optional
    plan.default = None if ignores_defaults else schema.default
    return plan


def _plan(schema: Schema, *, ignores_defaults: bool) -> Plan:
    def part(of: Schema | None) -> Plan:
        if of is None:
            raise DataError("a schema of an array or a map must have those of its parts")
        return connect_plan(of, ignores_defaults=ignores_defaults)

    match schema.type:
        case Type.STRUCT:
            fields = [FieldPlan(f.name, part(f.schema)) for f in schema.fields if f.name != names.ADDITIONAL]
            others = schema.by_name.get(names.ADDITIONAL)
            kept = None if others is None else FieldPlan(names.ADDITIONAL, part(others))
            shape = Shape.CHOICE if names.is_union(schema) else Shape.STRUCT
            return Plan(shape=shape, fields=fields, others=kept)
        case Type.ARRAY:
            return Plan(shape=Shape.LIST, values=part(schema.value_schema))
        case Type.MAP if names.has_text_keys(schema):
            return Plan(shape=Shape.MAP, values=part(schema.value_schema))
        case Type.MAP:
            return Plan(shape=Shape.ENTRIES, keys=part(schema.key_schema), values=part(schema.value_schema))
        case Type.STRING if names.JSON_TEXT in schema.parameters:
            return Plan(shape=Shape.TEXT, kind="string")
        case Type.STRING if names.ENUM in schema.parameters or names.GENERAL_ENUM in schema.parameters:
            return Plan(shape=Shape.SYMBOL, kind="string")
        case _:
            return Plan(shape=Shape.PLAIN, kind=schema.type.value, logical=logical_of(schema))
