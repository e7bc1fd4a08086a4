"""Protobuf plans as Arrow columns: their types."""

import pyarrow as pa
from google.protobuf.descriptor import Descriptor

from schema_registry.serdes import protobuf_plan as plans
from schema_registry.serdes.arrow.types import PLAIN, NoColumns, logical_type, map_type
from schema_registry.serdes.errors import UnusableSchema


def column_plan(message: Descriptor) -> plans.MessagePlan | plans.WrapperPlan:
    """The plan of the columns of a message; raises NoColumns."""
    try:
        return plans.Meaning().of(message)
    except UnusableSchema as error:
        raise NoColumns(str(error)) from error


def column_type(plan: plans.Plan | plans.OneofPlan) -> pa.DataType:
    """The Arrow type of a plan; raises NoColumns."""
    match plan:
        case plans.Scalar():
            return PLAIN[plan.kind]
        case plans.EnumPlan():
            return PLAIN["string"]
        case plans.LogicalPlan():
            return logical_type(plan.logical)
        case plans.WrapperPlan():
            return column_type(plan.value)
        case plans.ListPlan():
            return pa.list_(column_type(plan.items))
        case plans.MapPlan():
            if not plan.is_declared:
                raise NoColumns("a message that only looks like the entry of a map")
            return map_type(column_type(plan.keys), column_type(plan.values))
        case plans.OneofPlan():
            return pa.struct([(member.name, column_type(member.plan)) for member in plan.members])
        case plans.MessagePlan():
            return _struct_type(plan)


def _struct_type(plan: plans.MessagePlan) -> pa.DataType:
    parts = [(p.name, column_type(p.plan if isinstance(p, plans.Member) else p)) for p in plan.parts]
    if not parts:
        raise NoColumns(f"the message {plan.message.full_name} has no fields")
    if len(dict(parts)) < len(parts):
        raise NoColumns(f"the message {plan.message.full_name} would have two fields of one name")
    return pa.struct(parts)
