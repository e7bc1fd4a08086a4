"""JSON Schemas that mostly have columns, and documents that mostly fit them, for Hypothesis."""

import json
from typing import Any

from hypothesis import strategies as st

from schema_registry.formats import json_schema
from schema_registry.formats.json_schema import JsonSchema

DATA = "org.apache.kafka.connect.data"
PLAIN: list[Any] = [
    {"type": "string"},
    {"type": "integer"},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "integer", "connect.type": "int8"},
    {"type": "integer", "connect.type": "int32"},
    {"type": "number", "connect.type": "float32"},
    {"type": "string", "connect.type": "bytes"},
    {"type": "integer", "connect.type": "int32", "title": f"{DATA}.Date"},
    {"type": "integer", "connect.type": "int32", "title": f"{DATA}.Time"},
    {"type": "integer", "connect.type": "int64", "title": f"{DATA}.Timestamp"},
    {"enum": ["a", "b"]},
    {"type": "string", "enum": ["a", "b"]},
    {"type": "string", "default": "nothing"},
    {"type": "integer", "default": 7},
    {"type": "number", "default": 1.5},
    {"type": "boolean", "default": False},
    {"type": "integer", "default": "no number"},
    {"type": "string", "format": "date-time", "maxLength": 3},
    {"$ref": "#/definitions/shared"},
]
LEAVES = st.sampled_from(PLAIN)


def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas of others."""
    return st.one_of(
        st.dictionaries(st.sampled_from(["a", "b", "ž", "d e"]), inner, min_size=1).map(
            lambda properties: {"type": "object", "properties": properties}
        ),
        inner.map(lambda items: {"type": "array", "items": items}),
        inner.map(lambda values: {"type": "object", "additionalProperties": values}),
        inner.map(lambda node: {"oneOf": [{"type": "null"}, node]}),
        inner.map(lambda node: {"anyOf": [node]}),
        st.sampled_from(["string", "integer"]).map(lambda type_: {"type": [type_, "null"]}),
    )


NODES = st.recursive(LEAVES, larger, max_leaves=6)
ODD = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1.0,
        2.5,
        1e300,
        127,
        128,
        2**31,
        2**63,
        2**70,
        86_400_000,
        "",
        "a",
        "é",
        "YWI=",
        "YW=",
        [],
        {},
        [1],
        {"a": 1},
    ]
)


def documents(node: Any) -> st.SearchStrategy[Any]:
    """What a schema describes, mostly."""
    return st.one_of(_right(node), _right(node), _right(node), ODD)


def _right(node: Any) -> st.SearchStrategy[Any]:
    match node:
        case {"properties": properties}:
            return st.fixed_dictionaries({}, optional={name: documents(part) for name, part in properties.items()})
        case {"type": "array", "items": items}:
            return st.lists(documents(items), max_size=3)
        case {"type": "object", "additionalProperties": values}:
            return st.dictionaries(st.sampled_from(["k", "ř", ""]), documents(values), max_size=3)
        case {"oneOf": [_, other]} | {"anyOf": [other]}:
            return st.one_of(st.none(), documents(other))
        case {"type": "integer"}:
            return st.integers(-5, 100_000)
        case {"type": "number"}:
            return st.floats(allow_nan=False, allow_infinity=False)
        case {"type": "boolean"}:
            return st.booleans()
        case _:
            return st.sampled_from(["", "a", "YWI=", "žába", "\u0000"])


@st.composite
def schemas_and_documents(draw: st.DrawFn) -> tuple[JsonSchema, list[bytes]]:
    """A schema and some documents."""
    node = {**draw(NODES), "definitions": {"shared": {"type": "object", "properties": {"x": {"type": "integer"}}}}}
    found = draw(st.lists(documents(node), min_size=1, max_size=8))
    return json_schema.parse(json.dumps(node)), [json.dumps(document).encode() for document in found]
