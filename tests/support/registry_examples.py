"""Schemas of every kind that serializers meet, each with what it refers to and a value."""

import json
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final, NamedTuple


class Example(NamedTuple):
    """A schema, what it refers to by name, and a value of it."""

    schema: Any
    value: Any
    references: tuple[tuple[str, Any], ...] = ()

    @property
    def text(self) -> str:
        """The schema as its author writes it."""
        return json.dumps(self.schema)


def record(name: str, *fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An Avro record."""
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    """An Avro field."""
    return {"name": name, "type": kind, **more}


def logical(kind: str, meaning: str, **more: Any) -> dict[str, Any]:
    """An Avro type that stands for another."""
    return {"type": kind, "logicalType": meaning, **more}


_DECIMAL: Final = {"precision": 9, "scale": 2}
_AT: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
AVRO: Final = {
    "int": Example("int", 5),
    "string": Example("string", "é"),
    "bytes": Example("bytes", b"\x00\xff"),
    "a type in braces": Example({"type": "boolean"}, True),
    "array": Example({"type": "array", "items": "long"}, [1, 2]),
    "map": Example({"type": "map", "values": ["null", "string"]}, {"a": None, "b": "x"}),
    "enum": Example({"type": "enum", "name": "E", "symbols": ["A", "B"], "default": "A"}, "B"),
    "fixed": Example({"type": "fixed", "name": "F", "size": 2}, b"ab"),
    "recursion": Example(
        record("Node", field("v", "int"), field("next", ["null", "Node"], default=None)),
        {"v": 1, "next": {"v": 2, "next": None}},
    ),
    "logical types": Example(
        record(
            "Logical",
            field("bytes", logical("bytes", "decimal", **_DECIMAL)),
            field("fixed", logical("fixed", "decimal", name="Fixed", size=8, **_DECIMAL)),
            field("day", logical("int", "date")),
            field("time", logical("int", "time-millis")),
            field("millis", logical("long", "timestamp-millis")),
            field("micros", logical("long", "timestamp-micros")),
            field("uuid", logical("string", "uuid")),
        ),
        {
            "bytes": Decimal("1.25"),
            "fixed": Decimal("-2.50"),
            "day": date(2026, 1, 2),
            "time": time(1, 2, 3),
            "millis": _AT,
            "micros": _AT.replace(microsecond=6),
            "uuid": uuid.UUID(int=5),
        },
    ),
    "defaults": Example(
        record(
            "Defaults",
            field("bytes", "bytes", default="\u00ff"),
            field("array", {"type": "array", "items": "int"}, default=[]),
            field("map", {"type": "map", "values": "int"}, default={"x": 1}),
            field("record", record("Inner", field("z", "int", default=0)), default={}),
            field("large", "double", default=1e10),
            field("float", "float", default=0.1),
            doc='dö"c',
            aliases=["old.Defaults"],
            namespace="some.where",
        ),
        {"bytes": b"x", "array": [1], "map": {}, "record": {"z": 1}, "large": 2.0, "float": 0.5},
    ),
    "a union of all": Example(["null", "int", record("R", field("a", "string"))], {"a": "x"}),
    "other attributes": Example(
        record("P", field("a", logical("string", "unknown"), **{"confluent:tags": ["PII"], "x": [1, {"y": None}]})),
        {"a": "s"},
    ),
    "a union of references": Example(
        ["a.A", "b.B"],
        {"y": "q"},
        (("a.A", record("a.A", field("x", "int"))), ("b.B", record("B", field("y", "string"), namespace="b"))),
    ),
    "namespaces": Example(
        record("x.Outer", field("i", record("Inner", field("k", "int"))), field("j", "Inner"), field("k", "x.Inner")),
        {"i": {"k": 1}, "j": {"k": 2}, "k": {"k": 3}},
    ),
    "many fields": Example(
        record("Big", *(field(f"f{number}", ["null", "string"], default=None) for number in range(300))),
        {f"f{number}": "v" if number % 2 else None for number in range(300)},
    ),
}

_DRAFTS: Final = {
    "draft 4": "http://json-schema.org/draft-04/schema#",
    "draft 6": "http://json-schema.org/draft-06/schema#",
    "draft 7": "http://json-schema.org/draft-07/schema#",
    "draft 2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft 2020-12": "https://json-schema.org/draft/2020-12/schema",
}
_7: Final = {"$schema": _DRAFTS["draft 7"]}


def _with(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


JSON: Final = {
    name: Example(
        {"$schema": draft, **_with(a={"type": "integer"}, b={"type": ["string", "null"]}), "required": ["a"]},
        {"a": 1, "b": "é"},
    )
    for name, draft in _DRAFTS.items()
} | {
    "recursion": Example(_with(v={"type": "integer"}, next={"$ref": "#"}), {"v": 1, "next": {"v": 2}}),
    "own definitions": Example(
        {"$schema": _DRAFTS["draft 2020-12"], "$defs": {"p": {"minimum": 1}}, **_with(x={"$ref": "#/$defs/p"})},
        {"x": 1},
    ),
    "one of references": Example(
        {**_7, "oneOf": [{"$ref": "a.json"}, {"$ref": "b.json"}]},
        {"b": "x"},
        (("a.json", {**_with(a={}), "required": ["a"]}), ("b.json", {**_with(b={}), "required": ["b"]})),
    ),
    "references by $id": Example(
        {**_7, "$id": "http://x.example/order.json", **_with(c={"$ref": "http://x.example/customer.json"})},
        {"c": {"n": "q"}},
        (("http://x.example/customer.json", {**_7, "$id": "http://x.example/customer.json", **_with(n={})}),),
    ),
    "references into a schema": Example(
        {**_7, **_with(c={"$ref": "lib.json#/definitions/c"})},
        {"c": 5},
        (("lib.json", {**_7, "definitions": {"c": {"type": "integer"}}}),),
    ),
    "anything": Example(True, {"any": 1}),
    "nothing said": Example({}, [1, "a"]),
    "a text": Example({"type": "string"}, "just text"),
    "patterns and dependencies": Example(
        {
            **_with(p={"pattern": "^a+$"}),
            "patternProperties": {"^x-": {"type": "integer"}},
            "dependencies": {"p": ["q"]},
        },
        {"p": "aa", "q": 1, "x-1": 3},
    ),
    "conditions": Example(
        {**_7, "if": _with(k={"const": 1}), "then": {"required": ["z"]}, "else": {"required": ["y"]}},
        {"k": 1, "z": 2},
    ),
    "large numbers": Example(
        _with(a={"type": "number", "minimum": -1e308, "maximum": 123456789012345678901234567890}),
        {"a": 12345678901234567890},
    ),
}
