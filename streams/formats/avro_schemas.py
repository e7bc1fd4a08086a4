"""Avro schemas of columns, under the names that ksqlDB gives them, and the types of SQL for Avro's."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from schema_registry.formats.avro import AvroSchema
from schema_registry.serdes import avro_plan as plans
from schema_registry.serdes.logical import Logical, LogicalName
from streams.formats.errors import SchemaProblem
from streams.formats.layout import Layout
from streams.model.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Map,
    Name,
    Primitive,
    SqlType,
    Struct,
)

RECORD_NAME: Final = "io.confluent.ksql.avro_schemas.KsqlDataSourceSchema"
_UNKNOWN_PRECISION: Final = 64
_PLAIN: Final[Mapping[Name, Any]] = {
    Name.BOOLEAN: "boolean",
    Name.INTEGER: "int",
    Name.BIGINT: "long",
    Name.DOUBLE: "double",
    Name.STRING: "string",
    Name.BYTES: "bytes",
    Name.TIME: {"type": "int", "logicalType": "time-millis"},
    Name.DATE: {"type": "int", "logicalType": "date"},
    Name.TIMESTAMP: {"type": "long", "logicalType": "timestamp-millis"},
}
_SCALARS: Final[Mapping[str, SqlType]] = {
    "boolean": BOOLEAN,
    "int": INTEGER,
    "long": BIGINT,
    "float": DOUBLE,
    "double": DOUBLE,
    "bytes": BYTES,
    "fixed": BYTES,
    "string": STRING,
    "enum": STRING,
}
LOGICAL_TYPES: Final[Mapping[LogicalName, SqlType]] = {
    LogicalName.DATE: DATE,
    LogicalName.TIME: TIME,
    LogicalName.TIMESTAMP: TIMESTAMP,
}
_is_name: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch


def avro_text(layout: Layout) -> str:
    """The schema of the columns; raises SchemaProblem."""
    kind: SqlType = layout.record if layout.is_wrapped else layout.columns[0].sql_type
    definition = _Definitions().bare(kind, layout.format.full_name or RECORD_NAME)
    return msgspec.json.encode(definition).decode()


class _Definitions:
    def __init__(self) -> None:
        self._names: set[str] = set()

    def bare(self, kind: SqlType, name: str) -> Any:
        """The definition of values that are not null; `name` is that of a record at this place."""
        match kind:
            case Primitive():
                return _PLAIN[kind.name]
            case Decimal(precision, scale):
                return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
            case Array(element):
                return {"type": "array", "items": self._nullable(element, name)}
            case Map(key, value):
                if key != STRING:
                    raise SchemaProblem(f"The keys of maps in Avro are STRING, not {key}.")
                return {"type": "map", "values": self._nullable(value, f"{name}_MapValue")}
            case Struct(fields):
                return self._record(fields, name)

    def _nullable(self, kind: SqlType, name: str) -> Any:
        return ["null", self.bare(kind, name)]

    def _record(self, fields: tuple[Field, ...], name: str) -> Any:
        unique, count = name, 1
        while unique in self._names:
            count += 1
            unique = f"{name}_{count}"
        self._names.add(unique)
        namespace, _, simple = unique.rpartition(".")
        made: dict[str, Any] = {"type": "record", "name": simple}
        if namespace:
            made["namespace"] = namespace
        for field in fields:
            if not _is_name(field.name):
                raise SchemaProblem(f"Avro has no field called {field.name}: letters, digits and _ may be in a name.")
        made["fields"] = [
            {"name": field.name, "type": self._nullable(field.type, f"{unique}_{field.name}"), "default": None}
            for field in fields
        ]
        return made


def avro_plan(schema: AvroSchema) -> plans.Plan:
    """The plan of a schema, as Connect reads it; raises UnusableSchema."""
    return plans.Meaning().of(schema.root)


def avro_type(plan: plans.Plan) -> SqlType:
    """The type of a plan."""
    match plan:
        case plans.Scalar(logical=Logical() as logical):
            return logical_type(logical)
        case plans.Scalar():
            return _SCALARS[plan.type.kind]
        case plans.StructPlan():
            return Struct(tuple(Field(field.name, avro_type(field.plan)) for field in plan.fields))
        case plans.ChoicePlan() if plan.is_flat:
            return avro_type(plan.branches[0].plan)
        case plans.ChoicePlan():
            return Struct(tuple(Field(branch.name, avro_type(branch.plan)) for branch in plan.branches))
        case plans.ListPlan():
            return Array(avro_type(plan.items))
        case plans.MapPlan():
            return Map(STRING, avro_type(plan.values))
        case plans.EntriesPlan():
            parts = {field.name: avro_type(field.plan) for field in plan.entry.fields}
            return Map(parts[plans.KEY], parts[plans.VALUE])


def logical_type(logical: Logical) -> SqlType:
    """The type of a logical type."""
    if logical.name is not LogicalName.DECIMAL:
        return LOGICAL_TYPES[logical.name]
    precision = _UNKNOWN_PRECISION if logical.precision is None else logical.precision
    if not 0 <= logical.scale <= precision:
        raise SchemaProblem(f"No DECIMAL has {precision} digits, {logical.scale} of them after the point.")
    return Decimal(precision, logical.scale)
