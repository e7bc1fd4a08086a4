"""Documents of one JSON Schema as columns; like Connect by default, this does not validate them."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Annotated, Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from schema_registry.formats.json_schema import JsonSchema
from schema_registry.serdes.arrow import reading
from schema_registry.serdes.arrow.json_columns import column_plan, column_type
from schema_registry.serdes.arrow.reading import Extract, FieldExtract, Read, SchemaReader, Values
from schema_registry.serdes.arrow.types import PLAIN
from schema_registry.serdes.json_plan import FieldPlan, Plan, Shape
from schema_registry.serdes.json_values import reader, value_reader

_FAULTS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_EXACT: Final[Mapping[str, Any]] = {"boolean": bool, "float32": float, "float64": float, "string": str, "bytes": str}


def json_schema_reader(schema: JsonSchema) -> SchemaReader:
    """The reader of a schema's documents; raises UnusableSchema."""
    return _JsonSchemaReader(column_plan(schema))


class _JsonSchemaReader:
    """Reads documents whose types are exactly those of the schema together, others one by one."""

    def __init__(self, plan: Plan) -> None:
        self.type = column_type(plan)
        exact, self._extract = _exact(plan)
        self._decode = msgspec.json.Decoder(exact).decode
        self._read = reader(plan)

    def read(self, bodies: pa.Array) -> Read:
        """Read documents."""
        records = reading.bodies_list(bodies)
        try:
            documents = list(map(self._decode, records))
        except _FAULTS:
            exact = reading.read_each(records, self._decode, self._extract, _FAULTS)
        else:
            return reading.read_values(documents, self._extract)
        others = np.array([row for row, _ in exact.bad], dtype=np.int64)
        some = [records[row] for row in others]
        rest = reading.read_each(some, lambda record: self._read(record, 0), reading.plain(self.type))
        return reading.merge_reads(exact._replace(bad=[]), rest.at(others))


def _exact(plan: Plan) -> tuple[Any, Extract]:
    """The type that msgspec decodes documents of a plan as, and how such values become an array."""
    match plan.shape:
        case Shape.STRUCT:
            return _exact_struct(plan)
        case Shape.LIST:
            item, extract = _exact(plan.items)
            return list[_or_null(plan.items, item)], reading.lists(column_type(plan), extract)  # type: ignore[misc]
        case Shape.MAP:
            item, extract = _exact(plan.items)
            return dict[str, _or_null(plan.items, item)], reading.maps(column_type(plan), extract)  # type: ignore[misc]
        case Shape.SYMBOL:
            return str, reading.plain(PLAIN["string"])
        case _:
            return _exact_plain(plan)


def _exact_plain(plan: Plan) -> tuple[Any, Extract]:
    type_ = PLAIN[plan.kind]
    if plan.kind == "bytes":
        return str, reading.converted(value_reader(plan), type_)
    if not pa.types.is_integer(type_):
        return _EXACT[plan.kind], reading.plain(type_)
    limit = 1 << (type_.bit_width - 1)
    exact = Annotated[int, msgspec.Meta(ge=-limit, le=limit - 1)]
    if plan.logical is None:
        return exact, reading.plain(type_)
    name = plan.logical.name
    return exact, lambda values: reading.logical_array(name, pa.array(values, type=pa.int64()))


def _exact_struct(plan: Plan) -> tuple[Any, Extract]:
    parts = [_exact(field.plan) for field in plan.fields]
    attributes = {f"f{index}": field.name for index, field in enumerate(plan.fields)}
    fields = [
        (attribute, _or_null(field.plan, exact), field.plan.default)
        for attribute, field, (exact, _) in zip(attributes, plan.fields, parts, strict=True)
    ]
    for field in plan.fields:
        msgspec.json.encode(field.name)  # msgspec does not find names beyond ASCII unless it has written them once.
    made = msgspec.defstruct("Document", fields, rename=attributes, gc=False)
    extracts = [
        _extract_field(a, field, part[1]) for a, field, part in zip(attributes, plan.fields, parts, strict=True)
    ]
    return made, reading.structs(column_type(plan), extracts)


def _extract_field(attribute: str, field: FieldPlan, extract: Extract) -> FieldExtract:
    value, default = attrgetter(attribute), field.plan.default
    if default is None:
        return FieldExtract(lambda values: list(map(value, values)), extract)

    def values_or_default(values: Values) -> Values:
        return [default if found is None else found for found in map(value, values)]

    return FieldExtract(values_or_default, extract)


def _or_null(plan: Plan, exact: Any) -> Any:
    may_be_null = plan.is_optional or plan.default is not None
    return exact | None if may_be_null else exact
