"""Avro types as columns: their Arrow types, and two ways from data to them.

Both ways read the same bytes as the schema itself, by types that suit them better:

* the fast one (pyruhvro) knows neither bytes nor fixed, cuts numbers that do not fit into 32 bits, and tells branches
  of a union only by their kind. So it reads all integers and enums as `long`, which is checked here, fixed bytes as
  floating-point numbers, which keep every bit, and each branch of a union in a record of its own; other bytes are taken
  out before, and an empty text is left in their place;
* the careful one (fastavro) reads one record at a time, each branch of a union in a record whose field is called what
  the column is called.

What a type becomes is what Connect's Avro converter makes of it by default: logical types that Connect does not know
are what is stored for them, unions of several types are structs with a field for each.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa

from schema_registry.formats.avro_types import Array, Enum, Field, Fixed, Map, Name, Primitive, Record, Type, Union
from streams.spark.decoding import avro_arrays as arrays
from streams.spark.decoding import avro_logical, moments
from streams.spark.decoding.avro_arrays import Change
from streams.spark.decoding.avro_logical import CONNECT, Logical
from streams.spark.decoding.avro_walk import Content, binary_array
from streams.spark.decoding.decimals import aligned, decimal_value, decimals
from streams.spark.decoding.reading import NoColumns
from streams.spark.types import TIMESTAMP

ValueChange = Callable[[Any], Any]

_KEY, _VALUE = "key", "value"
_PRIMITIVES: Final = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_MOST_BRANCHES: Final = 127
"""Of a union; pyruhvro counts them with 8 bits."""
_SMALL_INTEGERS: Final = {"int8": pa.int8(), "int16": pa.int16()}


class Column(NamedTuple):
    """One Avro type."""

    type: pa.DataType
    careful: Type
    """By which fastavro reads it."""
    value: ValueChange | None = None
    """What is left to do with such a value before Arrow takes it; None for nothing."""
    fast: Any = None
    """By which pyruhvro reads it, as JSON; None where it cannot."""
    change: Change | None = None
    """What is left to do with such an array; None for nothing."""


class Columns:
    """Makes the columns of one schema; raises NoColumns."""

    def __init__(self) -> None:
        self.slots: dict[int, int] = {}
        """Numbers for types of bytes, by `id`: the fast way reads these as empty texts."""
        self.contents: dict[int, Content] = {}
        """By these numbers, what to put there; to be set before arrays are changed."""
        self._open: set[str] = set()
        self._count = 0
        self._lists = 0

    def of(self, type_: Type) -> Column:
        """The column of a type."""
        avro_logical.check(type_)
        match type_:
            case Union():
                return self._union(type_)
            case Record():
                return self._record(type_)
            case Array():
                return self._array(type_)
            case Map():
                return self._map(type_)
            case Enum():
                return self._enum(type_)
            case Fixed():
                return self._fixed(type_)
            case Primitive():
                return self._primitive(type_)

    def _name(self) -> Name:
        self._count += 1
        return Name(f"t{self._count}")

    def _record(self, record: Record) -> Column:
        if record.name.full in self._open:
            raise NoColumns(f"the Avro schema is recursive: the record {record.name.full} holds itself")
        if not record.fields:
            raise NoColumns(f"the record {record.name.full} has no fields")
        self._open.add(record.name.full)
        parts = {field.name: self.of(field.type) for field in record.fields}
        self._open.remove(record.name.full)
        name = self._name()
        fields = [Field(name=field, type=part.careful) for field, part in parts.items()]
        type_ = pa.struct([(field, part.type) for field, part in parts.items()])
        return Column(
            type_,
            Record(name=name, fields=fields),
            _fields_value({field: part.value for field, part in parts.items() if part.value is not None}),
            _fast_record(name, [part.fast for part in parts.values()]),
            arrays.struct_change(type_, [part.change for part in parts.values()]),
        )

    def _union(self, union: Union) -> Column:
        others = [branch for branch in union.branches if branch.kind != "null"]
        if len(others) == 1 and len(union.branches) == 2:
            return self._nullable(union, others[0])
        if len(union.branches) == 1 and others:
            return self._single(others[0])
        return self._choice(union)

    def _nullable(self, union: Union, other: Type) -> Column:
        part = self.of(other)
        null = Primitive("null")
        is_first = union.branches[0].kind == "null"
        branches = [null, part.careful] if is_first else [part.careful, null]
        fast = None if part.fast is None else ["null", part.fast] if is_first else [part.fast, "null"]
        value = None if part.value is None else _unless_null(part.value)
        return Column(part.type, Union(branches), value, fast, part.change)

    def _single(self, branch: Type) -> Column:
        """A union of one type is that type, behind the number of the branch."""
        part = self.of(branch)
        fast = None if part.fast is None else [_fast_record(self._name(), [part.fast])]
        change = part.change

        def inner(array: pa.Array) -> pa.Array:
            found = array.field(0).field(0)
            return found if change is None else change(found)

        return Column(part.type, Union([part.careful]), part.value, fast, inner)

    def _choice(self, union: Union) -> Column:
        labels: dict[str, Column] = {}
        branches: list[Type] = []
        fast: list[Any] = []
        for branch in union.branches:
            if branch.kind == "null":
                branches.append(Primitive("null"))
                fast.append("null")
                continue
            label = branch.name.simple if isinstance(branch, Record | Enum | Fixed) else branch.kind
            if label in labels:
                raise NoColumns(f"Multiple union schemas map to the Connect union field name {label}")
            labels[label] = part = self.of(branch)
            branches.append(Record(name=self._name(), fields=[Field(name=label, type=part.careful)]))
            fast.append(_fast_record(self._name(), [part.fast]))
        if not labels:
            raise NoColumns("a union of nothing but null has no columns")
        type_ = pa.struct([(label, part.type) for label, part in labels.items()])
        kinds = [branch.kind for branch in union.branches]
        value = _fields_value({label: part.value for label, part in labels.items() if part.value is not None})
        return Column(
            type_,
            Union(branches),
            None if value is None else _unless_null(value),
            None if None in fast or len(fast) > _MOST_BRANCHES else fast,
            arrays.choice_change(type_, [part.change for part in labels.values()], kinds),
        )

    def _array(self, array: Array) -> Column:
        if _is_map_entry(array.items):
            return self._entries(array)
        item = self._repeated(array.items)
        type_ = pa.list_(item.type)
        return Column(
            type_,
            Array(item.careful),
            None if item.value is None else _each_item(item.value),
            None if item.fast is None else {"type": "array", "items": item.fast},
            arrays.list_change(type_, item.change),
        )

    def _repeated(self, items: Type) -> Column:
        self._lists += 1
        item = self.of(items)
        self._lists -= 1
        return item

    def _entries(self, array: Array) -> Column:
        """A map whose keys are no text: read with care only, because of keys that are there twice."""
        assert isinstance(array.items, Record)
        parts = {field.name: field.type for field in array.items.fields}
        if parts.keys() != {_KEY, _VALUE}:
            raise NoColumns("array elements do not match the expected format of a map's entries")
        entry = self._repeated(array.items)
        kinds = {name: entry.type.field(name).type for name in (_KEY, _VALUE)}
        if pa.types.is_nested(kinds[_KEY]):
            raise NoColumns("the keys of a map must not be structs, lists or maps themselves")
        is_text = pa.types.is_string(kinds[_KEY])
        if is_text and isinstance(parts[_KEY], Union):
            raise NoColumns("the keys of a map must not be null")
        type_ = pa.map_(kinds[_KEY], kinds[_VALUE]) if is_text else pa.list_(entry.type)
        return Column(type_, Array(entry.careful), _entries_value(entry.value, is_text=is_text))

    def _map(self, map_: Map) -> Column:
        item = self._repeated(map_.values)
        type_ = pa.map_(pa.string(), item.type)
        return Column(
            type_,
            Map(item.careful),
            _pairs_of(item.value),
            None if item.fast is None else {"type": "map", "values": item.fast},
            arrays.map_change(type_, item.change),
        )

    def _enum(self, enum: Enum) -> Column:
        symbols = pa.array(list(enum.symbols), type=pa.string())
        careful = Enum(name=self._name(), symbols=enum.symbols)
        return Column(pa.string(), careful, None, "long", arrays.symbols_change(symbols))

    def _fixed(self, fixed: Fixed) -> Column:
        logical = avro_logical.of(fixed)
        careful = Fixed(name=self._name(), size=fixed.size)
        fast = _numbers_record(self._name(), fixed.size)
        if logical.name == avro_logical.DECIMAL:
            type_ = logical.decimal_type
            scale = logical.scale
            return Column(type_, careful, lambda data: decimal_value(data, scale), fast, arrays.fixed_decimals(type_))
        return Column(pa.binary(), careful, None, fast, arrays.fixed_bytes)

    def _primitive(self, primitive: Primitive) -> Column:
        kind = primitive.kind
        if kind == "null":
            raise NoColumns("Standalone null schemas are not supported by this converter")
        logical = avro_logical.of(primitive)
        plain = Primitive(kind)
        if kind == "bytes":
            return self._bytes(logical, plain)
        if logical.name is not None:
            return _LOGICAL_COLUMNS[logical.name](plain)
        if kind == "int":
            type_ = _SMALL_INTEGERS.get(str(primitive.properties.get(CONNECT + "type")), pa.int32())
            return Column(type_, plain, None, "long", lambda array: array.cast(type_))
        return Column(_PRIMITIVES[kind], plain, None, kind, arrays.checked if kind == "string" else None)

    def _bytes(self, logical: Logical, plain: Primitive) -> Column:
        type_, value, change = pa.binary(), None, self._content(len(self.slots))
        if logical.name is not None:
            scale = logical.scale
            type_, change = logical.decimal_type, self._decimals(len(self.slots), logical.decimal_type)
            value = lambda data: decimal_value(data, scale)  # noqa: E731
        if self._lists:
            return Column(type_, plain, value)
        self.slots[id(plain)] = len(self.slots)
        return Column(type_, plain, value, "string", change)

    def _content(self, slot: int) -> Change:
        return lambda array: binary_array(self.contents[slot], arrays.valid_bits(array))

    def _decimals(self, slot: int, type_: pa.DataType) -> Change:
        return lambda array: decimals(aligned(*self.contents[slot]), type_, arrays.valid_bits(array))


_LOGICAL_COLUMNS: Final[dict[str, Callable[[Primitive], Column]]] = {
    avro_logical.DATE: lambda plain: Column(pa.date32(), plain, moments.date_value, "long", moments.dates),
    avro_logical.TIME: lambda plain: Column(pa.string(), plain, moments.time_value, "long", moments.times),
    avro_logical.TIMESTAMP: lambda plain: Column(TIMESTAMP, plain, moments.timestamp_value, "long", moments.timestamps),
}


def _is_map_entry(type_: Type) -> bool:
    if not isinstance(type_, Record):
        return False
    is_named = type_.name.full == "io.confluent.connect.avro.MapEntry"
    return is_named or type_.properties.get(CONNECT + "internal.type") == "MapEntry"


# --- the careful way: single values ----------------------------------------------------------------------------------


def _unless_null(change: ValueChange) -> ValueChange:
    return lambda value: None if value is None else change(value)


def _fields_value(changes: Mapping[str, ValueChange]) -> ValueChange | None:
    if not changes:
        return None

    def change(value: dict[str, Any]) -> Any:
        for name in changes.keys() & value.keys():
            value[name] = changes[name](value[name])
        return value

    return change


def _each_item(change: ValueChange) -> ValueChange:
    return lambda value: [change(item) for item in value]


def _pairs_of(change: ValueChange | None) -> ValueChange:
    if change is None:
        return lambda value: list(value.items())
    return lambda value: [(key, change(item)) for key, item in value.items()]


def _entries_value(change: ValueChange | None, *, is_text: bool) -> ValueChange:
    def entries(value: list[dict[str, Any]]) -> Any:
        changed = value if change is None else [change(entry) for entry in value]
        unique = {entry[_KEY]: entry[_VALUE] for entry in changed}
        return list(unique.items()) if is_text else [{_KEY: key, _VALUE: item} for key, item in unique.items()]

    return entries


# --- the fast way: types --------------------------------------------------------------------------------


def _fast_record(name: Name, parts: list[Any]) -> Any:
    if None in parts:
        return None
    fields = [{"name": f"f{index}", "type": part} for index, part in enumerate(parts)]
    return {"type": "record", "name": name.simple, "fields": fields}


def _numbers_record(name: Name, size: int) -> Any:
    """So many bytes as numbers of 8 and 4 bytes."""
    if size == 0 or size % 4:
        return None
    return _fast_record(name, ["double"] * (size // 8) + ["float"] * (size // 4 % 2))
