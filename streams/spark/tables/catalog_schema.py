"""Columns as Spark's catalog keeps them: its JSON, to and from Arrow's schema."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa

from streams.spark.types import arrow_type, ddl_type, list_of, map_of

# Names that Spark's JSON spells unlike its SQL.
_JSON_NAMES: Final = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}


def schema_of_json(fields: Iterable[Mapping[str, Any]]) -> pa.Schema:
    """A schema of the list `fields` of Spark's JSON; TypeError when tables have no such type."""
    return pa.schema([pa.field(field["name"], _arrow(field["type"])) for field in fields])


def json_of_schema(schema: pa.Schema, metadata: Mapping[str, str]) -> str:
    """Spark's JSON of a schema, with metadata at the first column."""
    fields = [_field(field) for field in schema]
    if fields:
        fields[0]["metadata"] = dict(metadata)
    return json.dumps({"type": "struct", "fields": fields})


def _arrow(kind: Any) -> pa.DataType:
    if isinstance(kind, str):
        # varchar(n) and char(n) are text of a bounded length.
        return pa.string() if kind.startswith(("varchar", "char", "string ")) else arrow_type(kind)
    match kind["type"]:
        case "array":
            return list_of(_arrow(kind["elementType"]))
        case "map":
            return map_of(_arrow(kind["valueType"]))
        case "struct":
            return pa.struct(list(schema_of_json(kind["fields"])))
        case other:
            raise TypeError(f"Tables have no type {other}")


def _field(field: pa.Field) -> dict[str, Any]:
    return {"name": field.name, "type": _json(field.type), "nullable": True, "metadata": {}}


def _json(kind: pa.DataType) -> Any:
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _json(kind.value_type), "containsNull": True}
    if pa.types.is_map(kind):
        value = _json(kind.item_type)
        return {"type": "map", "keyType": "string", "valueType": value, "valueContainsNull": True}
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [_field(field) for field in kind]}
    name = ddl_type(kind)
    return _JSON_NAMES.get(name, name)
