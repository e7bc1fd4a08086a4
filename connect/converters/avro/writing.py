"""Values of Connect as data of Avro: one function per schema, made when its first record is met.

Written here rather than by fastavro, which writes whatever it can make a number of (3.7 as 3, any object as true, 2**40
as an int that nobody can read) and takes twice the time for optional fields. Tests hold both to the same bytes.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from connect.api.data import Schema, Type, Value
from connect.api.errors import DataError
from connect.converters.avro import config as names
from connect.converters.avro.config import AvroConfig
from connect.converters.avro.quick_writing import Code, sized, unlike
from connect.converters.stored import to_stored
from schema_registry.formats.avro import AvroSchema
from schema_registry.formats.avro_types import Array, Enum, Fixed, Map, Primitive, Record, Union, label
from schema_registry.formats.avro_types import Field as AvroField
from schema_registry.formats.avro_types import Type as AvroType
from schema_registry.serdes.avro import AvroCodec
from schema_registry.serdes.avro_writing import RANGES, varint

Write = Callable[[Value], bytes]

_END: Final = b"\x00"
_FAULTS: Final = (AttributeError, LookupError, OverflowError, TypeError, UnicodeEncodeError, struct.error)
_MAX_FIELDS: Final = 200
_KINDS: Final = {
    Type.INT8: ("int", "long"),
    Type.INT16: ("int", "long"),
    Type.INT32: ("int", "long"),
    Type.INT64: ("long",),
    Type.FLOAT32: ("float", "double"),
    Type.FLOAT64: ("double",),
    Type.BOOLEAN: ("boolean",),
    Type.STRING: ("string", "enum"),
    Type.BYTES: ("bytes", "fixed"),
    Type.ARRAY: ("array",),
    Type.MAP: ("map", "array"),
    Type.STRUCT: ("record",),
}
"""What values of a type may be written as, where a union leaves the choice."""


def writing(root: AvroType, schema: Schema, config: AvroConfig) -> Write:
    """What writes values of a Connect schema by an Avro schema; raises DataError."""
    if isinstance(root, Primitive) and root.kind == "bytes":
        return to_stored(schema) or _bytes_of  # alone they have no length before them
    return _Writings(config).of(root, schema)


class _Writings:
    """Makes one function per type."""

    def __init__(self, config: AvroConfig) -> None:
        self._config = config

    def of(self, type_: AvroType, schema: Schema) -> Write:
        """The function for a type that is not null."""
        match type_:
            case Union():
                return self._union(type_, schema)
            case Record():
                return self._record(type_, schema)
            case Array() if schema.type is Type.MAP:
                return self._entries(type_, schema)
            case Array():
                return _array(self.of(type_.items, _values(schema)))
            case Map():
                return _map(self.of(type_.values, _values(schema)))
            case Enum():
                return _enum(type_)
            case Primitive() | Fixed():
                return _plain(type_, schema)

    def _union(self, union: Union, schema: Schema) -> Write:
        branches = {index: branch for index, branch in enumerate(union.branches) if branch.kind != "null"}
        null = next((varint(index) for index, branch in enumerate(union.branches) if branch.kind == "null"), None)
        if names.is_union(schema):
            return self._choice(branches, schema, null)
        fitting = [index for index, branch in branches.items() if branch.kind in _KINDS[schema.type]]
        if not fitting:
            raise DataError(f"the Avro union of {', '.join(map(label, union.branches))} has no place for {schema.type}")
        index = next((i for i in fitting if label(branches[i]) == schema.name), fitting[0])
        prefix, write_branch = varint(index), self.of(branches[index], schema)

        def write(value: Value) -> bytes:
            if value is None and null is not None:
                return null
            return prefix + write_branch(value)

        return write

    def _choice(self, branches: Mapping[int, AvroType], schema: Schema, null: bytes | None) -> Write:
        """A struct with one field per branch, of which one is set."""
        by_name = {self._config.branch_name(branch, index): index for index, branch in branches.items()}
        members: list[tuple[str, bytes, Write]] = []
        for field in schema.fields:
            index = by_name.get(field.name)
            if index is None:
                raise DataError(f"the Avro union of {', '.join(by_name)} has no branch {field.name}")
            members.append((field.name, varint(index), self.of(branches[index], field.schema)))

        def write(value: Value) -> bytes:
            if value is not None:
                for name, prefix, write_branch in members:
                    part = value.get(name)
                    if part is not None:
                        return prefix + write_branch(part)
            if null is None:
                raise DataError("Found null value for non-optional schema: no branch of the union is set")
            return null

        return write

    def _entries(self, type_: Array, schema: Schema) -> Write:
        if not isinstance(type_.items, Record) or schema.key_schema is None:
            raise DataError("the Avro array has no entries of a map")
        parts = {field.name: field.type for field in type_.items.fields}
        write_key = self.of(parts[names.KEY], schema.key_schema)
        write_value = self.of(parts[names.VALUE], _values(schema))

        def write(value: Value) -> bytes:
            if not isinstance(value, dict):
                unlike("a map", value)
            if not value:
                return _END
            return b"".join([varint(len(value)), *(write_key(k) + write_value(v) for k, v in value.items()), _END])

        return write

    def _record(self, record: Record, schema: Schema) -> Write:
        by_name = {self._config.scrub(field.name): field for field in schema.fields}
        fields: list[tuple[str, Write, Value]] = []
        code = Code()
        for field in record.fields:
            source = by_name.get(field.name)
            if source is None:
                source_name, write_field, default = _missing(record, field)
                code.add_call(source_name, write_field, default)
            else:
                source_name, default = source.name, self._default(source.schema)
                write_field = self.of(field.type, source.schema)
                code.add(source_name, field.type, source.schema, write=write_field, default=default)
            fields.append((source_name, write_field, default))
        return _record(record, fields, code.compiled() if len(fields) <= _MAX_FIELDS else None)

    def _default(self, schema: Schema) -> Value:
        return None if schema.optional and self._config.ignore_default_for_nullables else schema.default


def _record(record: Record, fields: Sequence[tuple[str, Write, Value]], quick: Write | None) -> Write:
    def write_slowly(value: Value) -> bytes:
        """Finds which field is wrong."""
        if not isinstance(value, dict):
            unlike(f"a struct {record.name.full}", value)
        parts = []
        for name, write_field, default in fields:
            part = value.get(name)
            try:
                parts.append(write_field(default if part is None else part))
            except DataError as error:
                raise DataError(f"{name}: {error}") from error
            except _FAULTS as error:
                raise DataError(f"{name}: {_told(part, error)}") from error
        return b"".join(parts)

    if quick is None:
        return write_slowly

    def write(value: Value) -> bytes:
        try:
            return quick(value)
        except (DataError, *_FAULTS):
            return write_slowly(value)

    return write


def _missing(record: Record, field: AvroField) -> tuple[str, Write, Value]:
    """A field that the Connect schema does not have, only the registered one: Avro's default, or a refusal."""
    if not field.has_default:
        raise DataError(f"the Avro record {record.name.full} has a field {field.name} that the Connect schema has not")
    whole = AvroCodec(AvroSchema(Record(name=record.name, fields=[field]), {}))
    data = whole.encode_json({})
    return field.name, lambda _: data, None


def _plain(type_: Primitive | Fixed, schema: Schema) -> Write:
    change = to_stored(schema)
    write = _fixed(type_) if isinstance(type_, Fixed) else _PRIMITIVES[type_.kind]
    if isinstance(type_, Fixed) and change is not None:
        return lambda value: write(_padded(change(value), type_.size))
    return write if change is None else lambda value: write(change(value))


def _padded(data: bytes, size: int) -> bytes:
    """A number in more bytes."""
    return (b"\xff" if data[0] & 0x80 else b"\x00") * (size - len(data)) + data


def _fixed(type_: Fixed) -> Write:
    def write(value: Value) -> bytes:
        data = _bytes_of(value)
        if len(data) != type_.size:
            raise DataError(f"{type_.name.full} takes {type_.size} bytes, not {len(data)}")
        return data

    return write


def _enum(type_: Enum) -> Write:
    symbols = {symbol: varint(index) for index, symbol in enumerate(type_.symbols)}

    def write(value: Value) -> bytes:
        if not isinstance(value, str) or value not in symbols:
            raise DataError(f"{type_.name.full} has no symbol {value!r:.200}")
        return symbols[value]

    return write


def _array(write_item: Write) -> Write:
    def write(value: Value) -> bytes:
        if not isinstance(value, list | tuple):
            unlike("an array", value)
        if not value:
            return _END
        return b"".join([varint(len(value)), *(write_item(item) for item in value), _END])

    return write


def _map(write_value: Write) -> Write:
    def write(value: Value) -> bytes:
        if not isinstance(value, dict):
            unlike("a map", value)
        if not value:
            return _END
        parts = [varint(len(value))]
        for key, item in value.items():
            parts += (_write_text(key), write_value(item))
        return b"".join([*parts, _END])

    return write


def _integer(kind: str) -> Write:
    limit = RANGES[kind]

    def write(value: Value) -> bytes:
        if value.__class__ is not int:
            unlike(f"an Avro {kind}", value)
        if not -limit <= value < limit:
            raise DataError(f"{value} is out of the range of {kind}")
        return varint(value)

    return write


def _floating(layout: str) -> Write:
    pack = struct.Struct(layout).pack

    def write(value: Value) -> bytes:
        if value.__class__ is not float and value.__class__ is not int:
            unlike("a number", value)
        return pack(value)

    return write


def _write_boolean(value: Value) -> bytes:
    if value.__class__ is not bool:
        unlike("a boolean", value)
    return b"\x01" if value else b"\x00"


def _write_text(value: Value) -> bytes:
    if not isinstance(value, str):
        unlike("text", value)
    return sized(value.encode())


def _write_null(value: Value) -> bytes:
    if value is not None:
        unlike("null", value)
    return b""


def _bytes_of(value: Value) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        unlike("bytes", value)
    return bytes(value)


_PRIMITIVES: Final[dict[str, Write]] = {
    "null": _write_null,
    "boolean": _write_boolean,
    "int": _integer("int"),
    "long": _integer("long"),
    "float": _floating("<f"),
    "double": _floating("<d"),
    "bytes": lambda value: sized(_bytes_of(value)),
    "string": _write_text,
}


def _told(value: Value, error: Exception) -> str:
    return f"a value of type {type(value).__name__} does not fit: {error}"


def _values(schema: Schema) -> Schema:
    if schema.value_schema is None:
        raise DataError(f"a schema of {schema.type} must tell that of its values")
    return schema.value_schema
