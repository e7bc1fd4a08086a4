"""Records and values for tests: one of every type of the data model, and whether a value fits its schema."""

import math
from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Final

from connect.api import data
from connect.api.data import Schema, Type, Value
from connect.api.record import SinkRecord

EVERY_TYPE: Final[dict[str, tuple[Schema, Value]]] = {
    "int8": (data.INT8, -128),
    "int16": (data.INT16, 32_767),
    "int32": (data.INT32, -(2**31)),
    "int64": (data.INT64, 2**63 - 1),
    "float32": (data.FLOAT32, 0.5),
    "float64": (data.FLOAT64, math.pi),
    "boolean": (data.BOOLEAN, True),
    "string": (data.STRING, 'naïve, "quoted"\nand 日本'),
    "bytes": (data.BYTES, b"\x00\xff\x10"),
    "decimal": (data.decimal(2), Decimal("-12345.67")),
    "date": (data.DATE, date(2024, 2, 29)),
    "time": (data.TIME, time(23, 59, 59, 999_000)),
    "timestamp": (data.TIMESTAMP, datetime(2024, 2, 29, 12, 30, 15, 123_000, tzinfo=UTC)),
    "array": (data.array(data.INT32), [1, 2, 3]),
    "map": (data.mapping(data.STRING, data.INT64), {"a": 1, "b": 2}),
    "struct": (data.struct({"inner": data.STRING}, name="Inner"), {"inner": "x"}),
    "null": (data.OPTIONAL_STRING, None),
}
"""A schema and a value of every type, by name."""

_PYTHON: Final[dict[Type, tuple[type, ...]]] = {
    Type.INT8: (int,),
    Type.INT16: (int,),
    Type.INT32: (int,),
    Type.INT64: (int,),
    Type.FLOAT32: (float, int),
    Type.FLOAT64: (float, int),
    Type.BOOLEAN: (bool,),
    Type.STRING: (str,),
    Type.BYTES: (bytes,),
    Type.ARRAY: (list, tuple),
    Type.MAP: (dict,),
    Type.STRUCT: (dict,),
}
_LOGICAL: Final[dict[str, type]] = {
    data.DECIMAL_NAME: Decimal,
    data.DATE_NAME: date,
    data.TIME_NAME: time,
    data.TIMESTAMP_NAME: datetime,
}
_BITS: Final = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}


def sink_record(
    topic: str,
    offset: int,
    *,
    value: Value,
    value_schema: Schema | None = None,
    key: Value = None,
    key_schema: Schema | None = None,
    partition: int = 0,
    timestamp_ms: int | None = 1_700_000_000_000,
) -> SinkRecord:
    """A record as a worker gives it to a sink."""
    return SinkRecord(
        topic=topic,
        partition=partition,
        offset=offset,
        key=key,
        key_schema=key_schema,
        value=value,
        value_schema=value_schema,
        timestamp_ms=timestamp_ms,
        original_topic=topic,
        original_partition=partition,
        original_offset=offset,
    )


def mismatches(schema: Schema | None, value: Value, *, path: str = "value") -> Iterable[str]:
    """Where a value does not match its schema; nothing when it does."""
    if schema is None:
        return
    if value is None:
        if not schema.optional and schema.default is None:
            yield f"{path} is null, but its schema is not optional"
        return
    allowed = (_LOGICAL[schema.name],) if schema.name in _LOGICAL else _PYTHON[schema.type]
    if not isinstance(value, allowed) or (isinstance(value, bool) and schema.type is not Type.BOOLEAN):
        yield f"{path} is {value!r}, not {' or '.join(item.__name__ for item in allowed)}"
    elif type(value) is int and not _fits(schema, value):
        yield f"{path} is {value}, which does not fit {schema.type}"
    else:
        yield from _inside(schema, value, path)


def _fits(schema: Schema, value: int) -> bool:
    bits = _BITS.get(schema.type, 64)
    return -(1 << bits - 1) <= value < 1 << bits - 1


def _inside(schema: Schema, value: Value, path: str) -> Iterable[str]:
    match schema.type:
        case Type.ARRAY:
            for index, item in enumerate(value):
                yield from mismatches(schema.value_schema, item, path=f"{path}[{index}]")
        case Type.MAP:
            for key, item in value.items():
                yield from mismatches(schema.key_schema, key, path=f"key of {path}")
                yield from mismatches(schema.value_schema, item, path=f"{path}[{key!r}]")
        case Type.STRUCT:
            for field in schema.fields:
                yield from mismatches(field.schema, value.get(field.name), path=f"{path}.{field.name}")
            for name in value.keys() - schema.by_name.keys():
                yield f"{path} has a field {name} that its schema lacks"
        case _:
            pass
