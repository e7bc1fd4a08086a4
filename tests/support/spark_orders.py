"""Orders: the same fields in three formats and three versions of a schema, as data, as JSON and as rows of a table.

Version 2 adds `note`, version 3 adds `flag` and widens `count` from 32 to 64 bits. Avro has `at`, `day` and `amount`,
too: a moment, a date and a decimal.
"""

import datetime as dt
import json
import random
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Any, Final, Literal

from google.protobuf.message import Message

from tests.support.protobuf_messages import message_classes

Format = Literal["avro", "protobuf", "json"]
Fields = Mapping[str, Any]

VERSIONS: Final = (1, 2, 3)
COLUMNS: Final = ("id", "count", "name", "price", "paid", "tags", "place", "note", "flag")
AVRO_COLUMNS: Final = (*COLUMNS, "at", "day", "amount")
_EPOCH_DAY: Final = dt.date(1970, 1, 1)
_SMALL: Final = 2**31 - 1
_LARGE: Final = 2**40

AVRO_KEY: Final = json.dumps(
    {
        "type": "record",
        "name": "OrderKey",
        "namespace": "shop",
        "fields": [{"name": "number", "type": "long"}, {"name": "region", "type": "string"}],
    }
)


def order(chooser: random.Random, number: int, *, format_: Format, version: int) -> dict[str, Any]:
    """The fields of an order, as Python has them."""
    largest = _LARGE if version >= 3 else _SMALL
    fields: dict[str, Any] = {
        "id": number + (1 << 33),
        "count": chooser.randint(0, largest),
        "name": str(number),
        "price": chooser.randint(0, 10_000) / 8,
        "paid": chooser.random() < 0.5,
        "tags": [chooser.choice(("new", "grün", "", "späť")) for _ in range(chooser.randint(0, 3))],
        "place": {"x": chooser.randint(-9, 9), "y": chooser.randint(1, 9)},
    }
    if version >= 2:
        fields["note"] = None if format_ == "avro" and number % 3 == 0 else f"note {number}"
    if version >= 3:
        fields["flag"] = True
    if format_ == "avro":
        fields["at"] = dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=chooser.randint(0, 10**10))
        fields["day"] = dt.date(2026, 1, 1) + dt.timedelta(days=number % 5)
        fields["amount"] = Decimal(chooser.randint(-99_999, 99_999)).scaleb(-2)
    return fields


def row(fields: Fields | None, format_: Format) -> dict[str, Any]:
    """What a table holds of an order: what its version does not have is null, as all of a tombstone is."""
    columns = AVRO_COLUMNS if format_ == "avro" else COLUMNS
    return {column: (fields or {}).get(column) for column in columns}


# --- schemas ---


@cache
def schema(format_: Format, version: int) -> str:
    """The text of a version of a schema."""
    return {"avro": _avro, "protobuf": _protobuf, "json": _json}[format_](version)


def _avro(version: int) -> str:
    place = {"type": "record", "name": "Place", "fields": [{"name": axis, "type": "int"} for axis in ("x", "y")]}
    fields: list[dict[str, Any]] = [
        {"name": "id", "type": "long"},
        {"name": "count", "type": "long" if version >= 3 else "int"},
        {"name": "name", "type": "string"},
        {"name": "price", "type": "double"},
        {"name": "paid", "type": "boolean"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "place", "type": place},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    ]
    if version >= 2:
        fields.append({"name": "note", "type": ["null", "string"], "default": None})
    if version >= 3:
        fields.append({"name": "flag", "type": ["null", "boolean"], "default": None})
    return json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": fields})


def _protobuf(version: int) -> str:
    added = ["  string note = 8;\n"] * (version >= 2) + ["  bool flag = 9;\n"] * (version >= 3)
    count = "int64" if version >= 3 else "int32"
    return (
        'syntax = "proto3";\npackage shop;\nmessage Order {\n'
        f"  int64 id = 1;\n  {count} count = 2;\n  string name = 3;\n  double price = 4;\n  bool paid = 5;\n"
        f"  repeated string tags = 6;\n  Place place = 7;\n{''.join(added)}"
        "  message Place {\n    int32 x = 1;\n    int32 y = 2;\n  }\n}\n"
    )


def _json(version: int) -> str:
    small = {"type": "integer", "connect.type": "int32"}
    properties: dict[str, Any] = {
        "id": {"type": "integer"},
        "count": {"type": "integer"} if version >= 3 else small,
        "name": {"type": "string"},
        "price": {"type": "number"},
        "paid": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {"type": "object", "properties": {"x": small, "y": small}, "additionalProperties": False},
    }
    if version >= 2:
        properties["note"] = {"type": "string"}
    if version >= 3:
        properties["flag"] = {"type": "boolean"}
    return json.dumps({"title": "Order", "type": "object", "properties": properties, "additionalProperties": False})


@cache
def message_class(version: int) -> type[Message]:
    """The class that protoc makes of a version."""
    return message_classes({"order.proto": schema("protobuf", version)})["shop.Order"]


# --- JSON, as the REST proxy takes it ---


def view(fields: Fields, format_: Format) -> dict[str, Any]:
    """An order as JSON of its format."""
    if format_ != "avro":
        return dict(fields)
    shown = dict(fields)
    shown["at"] = round(fields["at"].timestamp() * 1000)
    shown["day"] = (fields["day"] - _EPOCH_DAY).days
    shown["amount"] = _decimal_bytes(fields["amount"]).decode("latin-1")
    if fields.get("note") is not None:
        shown["note"] = {"string": fields["note"]}
    if fields.get("flag") is not None:
        shown["flag"] = {"boolean": fields["flag"]}
    return shown


def _decimal_bytes(number: Decimal) -> bytes:
    unscaled = int(number.scaleb(2))
    return unscaled.to_bytes((unscaled.bit_length() + 8) // 8, "big", signed=True)
