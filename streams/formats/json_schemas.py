"""JSON Schemas of columns, as Connect's converter writes them, and the types of SQL for what JSON Schema describes."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from schema_registry.formats.json_schema import JsonSchema
from schema_registry.serdes.json_plan import CONNECT_INDEX, CONNECT_PARAMETERS, CONNECT_TYPE, Plan, Shape
from schema_registry.serdes.json_values import plan_of
from schema_registry.serdes.logical import LogicalName
from streams.formats.avro_schemas import logical_type
from streams.formats.errors import SchemaProblem
from streams.formats.layout import Layout
from streams.model.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DOUBLE,
    INTEGER,
    STRING,
    Array,
    Decimal,
    Field,
    Map,
    Name,
    Primitive,
    SqlType,
    Struct,
)

_PLAIN: Final[Mapping[Name, Mapping[str, str]]] = {
    Name.BOOLEAN: {"type": "boolean"},
    Name.INTEGER: {"type": "integer", CONNECT_TYPE: "int32"},
    Name.BIGINT: {"type": "integer", CONNECT_TYPE: "int64"},
    Name.DOUBLE: {"type": "number", CONNECT_TYPE: "float64"},
    Name.STRING: {"type": "string"},
    Name.BYTES: {"type": "string", CONNECT_TYPE: "bytes"},
    Name.TIME: {"type": "integer", "title": LogicalName.TIME.value, CONNECT_TYPE: "int32"},
    Name.DATE: {"type": "integer", "title": LogicalName.DATE.value, CONNECT_TYPE: "int32"},
    Name.TIMESTAMP: {"type": "integer", "title": LogicalName.TIMESTAMP.value, CONNECT_TYPE: "int64"},
}
_KINDS: Final[Mapping[str, SqlType]] = {
    "int8": INTEGER,
    "int16": INTEGER,
    "int32": INTEGER,
    "int64": BIGINT,
    "float32": DOUBLE,
    "float64": DOUBLE,
    "boolean": BOOLEAN,
    "string": STRING,
    "bytes": BYTES,
}


def json_schema_text(layout: Layout) -> str:
    """The schema of the columns; raises SchemaProblem."""
    kind: SqlType = layout.record if layout.is_wrapped else layout.columns[0].sql_type
    return msgspec.json.encode(_bare(kind)).decode()


def _bare(kind: SqlType) -> dict[str, Any]:
    match kind:
        case Primitive(name):
            return dict(_PLAIN[name])
        case Decimal(precision, scale):
            digits = {"scale": str(scale), "connect.decimal.precision": str(precision)}
            title = LogicalName.DECIMAL.value
            return {"type": "number", "title": title, CONNECT_TYPE: "bytes", CONNECT_PARAMETERS: digits}
        case Array(element):
            return {"type": "array", "items": _nullable(element)}
        case Map(key, value):
            if key != STRING:
                raise SchemaProblem(f"The keys of maps in JSON are STRING, not {key}.")
            return {"type": "object", CONNECT_TYPE: "map", "additionalProperties": _nullable(value)}
        case Struct(fields):
            properties = {
                field.name: {CONNECT_INDEX: index, **_nullable(field.type)} for index, field in enumerate(fields)
            }
            return {"type": "object", "properties": properties}


def _nullable(kind: SqlType) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, _bare(kind)]}


def json_plan(schema: JsonSchema) -> Plan:
    """The plan of a schema, as Connect reads it; raises UnusableSchema."""
    return plan_of(schema)


def json_type(plan: Plan) -> SqlType:
    """The type of a plan."""
    match plan.shape:
        case Shape.STRUCT | Shape.CHOICE:
            return Struct(tuple(Field(field.name, json_type(field.plan)) for field in plan.fields))
        case Shape.LIST:
            return Array(json_type(plan.items))
        case Shape.MAP:
            return Map(STRING, json_type(plan.items))
        case Shape.ENTRIES:
            assert plan.keys is not None
            return Map(json_type(plan.keys), json_type(plan.items))
        case Shape.SYMBOL | Shape.TEXT:
            return STRING
        case Shape.PLAIN:
            return _KINDS[plan.kind] if plan.logical is None else logical_type(plan.logical)


def is_written_plainly(plan: Plan) -> bool:
    """Whether documents have values as documents without a schema have them: no choices, no defaults, decimals as
    numbers."""
    if plan.shape in (Shape.CHOICE, Shape.ENTRIES, Shape.TEXT) or plan.default is not None:
        return False
    is_decimal = plan.logical is not None and plan.logical.name is LogicalName.DECIMAL
    if is_decimal and (not isinstance(plan.node, dict) or plan.node.get("type") != "number"):
        return False
    parts = [field.plan for field in plan.fields]
    return all(is_written_plainly(part) for part in (*parts, *([] if plan.values is None else [plan.values])))
