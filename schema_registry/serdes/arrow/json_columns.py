"""Plans of JSON Schemas as columns: their Arrow types, and the types that msgspec reads documents as.

What msgspec refuses, because it is not exactly of such a type (`1.0` for an integer, for instance), is read by
`json_values`. Choices between several schemas, decimals, maps whose keys are not text, and defaults of anything but
plain values have no columns.
"""

from collections.abc import Mapping
from operator import attrgetter
from typing import Annotated, Any, Final

import msgspec
import pyarrow as pa

from schema_registry.formats.json_schema import JsonSchema
from schema_registry.serdes.arrow import extraction
from schema_registry.serdes.arrow.extraction import Extract, FieldExtract, Values
from schema_registry.serdes.arrow.types import PLAIN, NoColumns, logical_type
from schema_registry.serdes.errors import UnusableSchema
from schema_registry.serdes.json_plan import FieldPlan, Plan, Shape
from schema_registry.serdes.json_values import plan_of, value_reader
from schema_registry.serdes.logical import LogicalName

_EXACT: Final[Mapping[str, Any]] = {"boolean": bool, "float32": float, "float64": float, "string": str, "bytes": str}


def column_plan(schema: JsonSchema) -> Plan:
    """The plan of the columns of a schema; raises NoColumns."""
    try:
        plan = plan_of(schema)
    except UnusableSchema as error:
        raise NoColumns(str(error)) from error
    _check(plan)
    return plan


def _check(plan: Plan, *, is_item: bool = False) -> None:
    """Raise NoColumns where a plan has none."""
    if plan.shape in (Shape.CHOICE, Shape.ENTRIES, Shape.TEXT):
        raise NoColumns(f"what is a {plan.shape} of several things has no columns")
    if plan.logical is not None and plan.logical.name is LogicalName.DECIMAL:
        raise NoColumns("decimals in JSON have no columns")
    is_simple = plan.shape in (Shape.PLAIN, Shape.SYMBOL) and plan.logical is None and plan.kind != "bytes"
    if plan.default is not None and (is_item or not is_simple):
        raise NoColumns("only properties that are plain values may have defaults where they are columns")
    if plan.shape is Shape.STRUCT and not plan.fields:
        raise NoColumns("an object without properties has no columns")
    for field in plan.fields:
        try:
            _check(field.plan)
        except NoColumns as error:
            raise NoColumns(f"{field.name}: {error}") from error
    if plan.values is not None:
        _check(plan.values, is_item=True)


def column_type(plan: Plan) -> pa.DataType:
    """The Arrow type of a plan that has one."""
    match plan.shape:
        case Shape.STRUCT:
            return pa.struct([(field.name, column_type(field.plan)) for field in plan.fields])
        case Shape.LIST:
            return pa.list_(column_type(_values(plan)))
        case Shape.MAP:
            return pa.map_(pa.string(), column_type(_values(plan)))
        case _:
            return PLAIN[plan.kind] if plan.logical is None else logical_type(plan.logical)


class Exact:
    """What msgspec reads documents of a plan as, and how such values become an array."""

    def __init__(self, plan: Plan) -> None:
        self.type: Any
        self.extract: Extract
        self.type, self.extract = _exact(plan)


def _exact(plan: Plan) -> tuple[Any, Extract]:
    match plan.shape:
        case Shape.STRUCT:
            return _struct(plan)
        case Shape.LIST:
            item, extract = _exact(_values(plan))
            return list[_or_null(_values(plan), item)], extraction.lists(column_type(plan), extract)  # type: ignore[misc]
        case Shape.MAP:
            item, extract = _exact(_values(plan))
            return dict[str, _or_null(_values(plan), item)], extraction.maps(column_type(plan), extract)  # type: ignore[misc]
        case Shape.SYMBOL:
            return str, extraction.plain(PLAIN["string"])
        case _:
            return _plain(plan)


def _plain(plan: Plan) -> tuple[Any, Extract]:
    type_ = PLAIN[plan.kind]
    if plan.kind == "bytes":
        return str, extraction.changed(value_reader(plan), type_)
    if not pa.types.is_integer(type_):
        return _EXACT[plan.kind], extraction.plain(type_)
    limit = 1 << (type_.bit_width - 1)
    exact = Annotated[int, msgspec.Meta(ge=-limit, le=limit - 1)]
    return exact, extraction.plain(type_) if plan.logical is None else extraction.logical(plan.logical.name)


def _struct(plan: Plan) -> tuple[Any, Extract]:
    parts = [_exact(field.plan) for field in plan.fields]
    attributes = {f"f{index}": field.name for index, field in enumerate(plan.fields)}
    fields = [
        (attribute, _or_null(field.plan, exact), field.plan.default)
        for attribute, field, (exact, _) in zip(attributes, plan.fields, parts, strict=True)
    ]
    for field in plan.fields:
        msgspec.json.encode(field.name)  # msgspec finds no names beyond ASCII before it has once written them.
    made = msgspec.defstruct("Document", fields, rename=attributes, gc=False)
    extracts = [_field(a, field, part[1]) for a, field, part in zip(attributes, plan.fields, parts, strict=True)]
    return made, extraction.structs(column_type(plan), extracts)


def _field(attribute: str, field: FieldPlan, extract: Extract) -> FieldExtract:
    value, default = attrgetter(attribute), field.plan.default
    if default is None:
        return FieldExtract(lambda values: list(map(value, values)), extract)

    def values_or_default(values: Values) -> Values:
        return [default if found is None else found for found in map(value, values)]

    return FieldExtract(values_or_default, extract)


def _or_null(plan: Plan, exact: Any) -> Any:
    may_be_null = plan.is_optional or plan.default is not None
    return exact | None if may_be_null else exact


def _values(plan: Plan) -> Plan:
    assert plan.values is not None
    return plan.values
