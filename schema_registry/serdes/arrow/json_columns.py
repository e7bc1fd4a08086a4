"""JSON Schema plans as Arrow columns: which have any, and of which types."""

import pyarrow as pa

from schema_registry.formats.json_schema import JsonSchema
from schema_registry.serdes.arrow.types import PLAIN, NoColumns, logical_type
from schema_registry.serdes.errors import UnusableSchema
from schema_registry.serdes.json_plan import Plan, Shape
from schema_registry.serdes.json_values import plan_of
from schema_registry.serdes.logical import LogicalName


def column_plan(schema: JsonSchema) -> Plan:
    """The plan of the columns of a schema; raises NoColumns."""
    try:
        plan = plan_of(schema)
    except UnusableSchema as error:
        raise NoColumns(str(error)) from error
    _check(plan)
    return plan


def _check(plan: Plan, *, is_item: bool = False) -> None:
    """Raise NoColumns if a plan has no columns."""
    if plan.shape in (Shape.CHOICE, Shape.ENTRIES, Shape.TEXT):
        raise NoColumns(f"a {plan.shape} of several types has no columns")
    if plan.logical is not None and plan.logical.name is LogicalName.DECIMAL:
        raise NoColumns("decimals in JSON have no columns")
    is_simple = plan.shape in (Shape.PLAIN, Shape.SYMBOL) and plan.logical is None and plan.kind != "bytes"
    if plan.default is not None and (is_item or not is_simple):
        raise NoColumns("only properties that are plain values may have defaults if they are columns")
    if plan.shape is Shape.STRUCT and not plan.fields:
        raise NoColumns("an object without properties has no columns")
    for field in plan.fields:
        try:
            _check(field.plan)
        except NoColumns as error:
            raise NoColumns(f"{field.name}: {error}") from error
    if plan.shape in (Shape.LIST, Shape.MAP):
        _check(plan.items, is_item=True)


def column_type(plan: Plan) -> pa.DataType:
    """The Arrow type of a plan that has one."""
    match plan.shape:
        case Shape.STRUCT:
            return pa.struct([(field.name, column_type(field.plan)) for field in plan.fields])
        case Shape.LIST:
            return pa.list_(column_type(plan.items))
        case Shape.MAP:
            return pa.map_(pa.string(), column_type(plan.items))
        case _:
            return PLAIN[plan.kind] if plan.logical is None else logical_type(plan.logical)
