"""What the bytes of one Avro schema mean to one kind of reader or writer.

A plan is the schema with all choices made that the format leaves open: how a union appears (`{branch: value}`, or the
bare value if only null is the other choice), which arrays are maps whose keys are not text, and which logical types
are converted. Everything that reads or writes data by a schema is made from its plan: Python functions by
`avro_reading` and `avro_writing`, Arrow columns by `arrow.avro_reading` and `arrow.avro_writing`.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import msgspec
from typing_extensions import override

from schema_registry.formats.avro_types import Array, Enum, Field, Fixed, Map, Primitive, Record, Type, Union, label
from schema_registry.serdes.errors import UnusableSchema
from schema_registry.serdes.logical import Logical, LogicalName

CONNECT: Final = "connect."
"""The prefix of properties in which Connect keeps what Avro has no word for."""
KEY, VALUE = "key", "value"
NO_DEFAULT: Final = msgspec.UNSET

_MAP_ENTRY: Final = "MapEntry"
_PARAMETERS: Final = CONNECT + "parameters"
_PRECISION: Final = "connect.decimal.precision"
_UNKNOWN_PRECISION: Final = 64
"""What Confluent's converter writes for decimals of unknown precision."""
_SMALL_INTEGERS: Final = ("int8", "int16")
_KINDS: Final = {
    LogicalName.DATE: ("int",),
    LogicalName.TIME: ("int",),
    LogicalName.TIMESTAMP: ("long",),
    LogicalName.DECIMAL: ("bytes", "fixed"),
}
_WORDS: Final = {
    ("int", "date"): LogicalName.DATE,
    ("int", "time-millis"): LogicalName.TIME,
    ("long", "timestamp-millis"): LogicalName.TIMESTAMP,
    ("bytes", "decimal"): LogicalName.DECIMAL,
    ("fixed", "decimal"): LogicalName.DECIMAL,
}


class Scalar(msgspec.Struct, eq=False):
    """A value without parts; `type` says how it is stored."""

    type: Primitive | Fixed | Enum
    logical: Logical | None = None
    small: str | None = None
    """`int8` or `int16` if Connect says that an int is no larger."""


class ListPlan(msgspec.Struct, eq=False):
    """An array."""

    items: "Plan"
    type: Array | None = None
    """The type in the schema that was read, here and below."""


class MapPlan(msgspec.Struct, eq=False):
    """A map with text keys."""

    values: "Plan"
    type: Map | None = None


class EntriesPlan(msgspec.Struct, eq=False):
    """An array of key and value that is a map, because its keys are not text."""

    entry: "StructPlan"
    is_list: bool = False
    """Whether it is read as a list of `{key, value}` nevertheless; the last of equal keys counts."""
    type: Array | None = None


class FieldPlan(msgspec.Struct, eq=False):
    """A field of a record."""

    name: str
    plan: "Plan"
    source: str
    """The name of the field in the value."""
    default: Any = NO_DEFAULT
    """What is written if the field is missing in the value, or null (see `StructPlan.is_exact`)."""
    constant: bytes | None = None
    """The bytes that are always written; the value has no such field."""
    wire: Field | None = None
    """The field of the schema."""


class StructPlan(msgspec.Struct, eq=False):
    """A record; its fields are filled in last, because they may mention it."""

    name: str
    fields: list[FieldPlan]
    is_exact: bool = False
    """Whether a value to write must have all fields without a default, and no others; otherwise a missing field is
    null, and the default replaces null."""
    type: Record | None = None


class Branch(msgspec.Struct, eq=False):
    """One type of a union."""

    index: int
    name: str
    """The key of its values."""
    plan: "Plan"


class ChoicePlan(msgspec.Struct, eq=False):
    """A union."""

    branches: Sequence[Branch]
    """The branches other than null."""
    null: int | None
    """The number of the null branch."""
    count: int
    """How many branches there are."""
    is_flat: bool
    """Whether the value is that of the only branch; otherwise it is `{name: value}`."""
    is_exact: bool = False
    """Whether a value to write must have one key; otherwise the first that is not null counts."""
    type: Union | None = None


Plan: TypeAlias = Scalar | ListPlan | MapPlan | EntriesPlan | StructPlan | ChoicePlan


class Meaning:
    """Makes the plan of a schema as Kafka Connect reads it with its default options; subclasses decide otherwise.

    Raises UnusableSchema if properties make no sense, or a record contains itself.
    """

    def __init__(self) -> None:
        self._open: set[str] = set()

    def of(self, type_: Type) -> Plan:
        """The plan of a type."""
        _check_properties(type_)
        if isinstance(type_, Array) and isinstance(type_.items, Record) and _is_map_entry(type_.items):
            plan = self.entries(type_.items)
            plan.type = type_
            return plan
        return self.plain(type_)

    def plain(self, type_: Type) -> Plan:
        """The plan of a type, whatever properties it has."""
        match type_:
            case Union():
                return self._union(type_)
            case Record():
                return self.struct(type_)
            case Array():
                return ListPlan(self.of(type_.items), type_)
            case Map():
                return MapPlan(self.of(type_.values), type_)
            case Enum():
                return Scalar(type_)
            case Primitive() | Fixed():
                return self.scalar(type_)

    def scalar(self, type_: Primitive | Fixed) -> Scalar:
        """The plan of a plain type."""
        logical = _logical_of(type_)
        small = type_.properties.get(CONNECT + "type") if type_.kind == "int" and logical is None else None
        return Scalar(type_, logical, small if small in _SMALL_INTEGERS else None)

    def struct(self, record: Record) -> StructPlan:
        """The plan of a record."""
        if record.name.full in self._open:
            raise UnusableSchema(f"the Avro schema is recursive: the record {record.name.full} holds itself")
        self._open.add(record.name.full)
        fields = [FieldPlan(field.name, self.of(field.type), field.name, wire=field) for field in record.fields]
        self._open.remove(record.name.full)
        return StructPlan(record.name.full, fields, type=record)

    def entries(self, record: Record) -> EntriesPlan:
        """The plan of a map whose entries are such records."""
        if {field.name for field in record.fields} != {KEY, VALUE}:
            expected = "array elements do not match the expected format."
            raise UnusableSchema(f"Found map encoded as array of key-value pairs, but {expected}")
        return EntriesPlan(self.struct(record))

    def branch_name(self, branch: Type, index: int) -> str:  # noqa: ARG002 - subclasses may use it
        """The name of a branch of a union in values."""
        return branch.name.simple if isinstance(branch, Record | Enum | Fixed) else branch.kind

    def is_flat(self, union: Union) -> bool:
        """Whether values of a union appear without the name of their branch."""
        return sum(branch.kind != "null" for branch in union.branches) == 1

    def _union(self, union: Union) -> ChoicePlan:
        kinds = [branch.kind for branch in union.branches]
        branches = [
            Branch(index, self.branch_name(branch, index), self.of(branch))
            for index, branch in enumerate(union.branches)
            if branch.kind != "null"
        ]
        names = [branch.name for branch in branches]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UnusableSchema(f"Multiple union schemas map to the Connect union field name {twice}")
        null = kinds.index("null") if "null" in kinds else None
        return ChoicePlan(branches, null, len(kinds), self.is_flat(union), type=union)


class JsonEncoding(Meaning):
    """Makes the plan of Avro's own JSON encoding: branches of unions by their names, logical types as stored."""

    def __init__(self) -> None:
        super().__init__()
        self._records: dict[int, StructPlan] = {}

    @override
    def of(self, type_: Type) -> Plan:
        plan = self.plain(type_)
        if isinstance(plan, ChoicePlan):
            plan.is_exact = True
        return plan

    @override
    def scalar(self, type_: Primitive | Fixed) -> Scalar:
        return Scalar(type_)

    @override
    def struct(self, record: Record) -> StructPlan:
        """The plan of a record, which may contain itself."""
        made = self._records.get(id(record))
        if made is None:
            made = self._records[id(record)] = StructPlan(record.name.full, [], is_exact=True)
            for field in record.fields:
                default = json_default(field.type, field.default) if field.has_default else NO_DEFAULT
                made.fields.append(FieldPlan(field.name, self.of(field.type), field.name, default))
        return made

    @override
    def branch_name(self, branch: Type, index: int) -> str:
        return label(branch)

    @override
    def is_flat(self, union: Union) -> bool:
        return False


def json_default(type_: Type, default: Any) -> Any:
    """The default of a field as data has it: the default of a union is of its first branch, without its name."""
    match type_:
        case Union():
            if default is None:
                return None
            branch = type_.branches[0]
            return {label(branch): json_default(branch, default)}
        case Array() if isinstance(default, list):
            return [json_default(type_.items, part) for part in default]
        case Map() if isinstance(default, dict):
            return {key: json_default(type_.values, part) for key, part in default.items()}
        case Record() if isinstance(default, dict):
            types = {field.name: field.type for field in type_.fields}
            return {name: json_default(types[name], part) for name, part in default.items() if name in types}
        case _:
            return default


def _is_map_entry(record: Record) -> bool:
    """Whether records of this type are the entries of a map whose keys are not text."""
    is_named = record.name.full == f"io.confluent.connect.avro.{_MAP_ENTRY}"
    return is_named or record.properties.get(CONNECT + "internal.type") == _MAP_ENTRY


def _check_properties(type_: Type) -> None:
    """Raise UnusableSchema if the properties that Connect has written about a type make no sense."""
    if isinstance(type_, Union):
        return
    properties = type_.properties
    parameters = properties.get(_PARAMETERS)
    if parameters is not None and not isinstance(parameters, dict):
        raise UnusableSchema(f"Expected JSON object for schema parameters but found: {parameters}")
    if not all(isinstance(value, str) for value in (parameters or {}).values()):
        raise UnusableSchema(f"Expected schema parameter values to be strings but found: {parameters}")
    name, version = properties.get(CONNECT + "name"), properties.get(CONNECT + "version")
    if not isinstance(name, str | None):
        raise UnusableSchema(f"Invalid schema name: {name}")
    if not isinstance(version, int | None):
        raise UnusableSchema(f"Invalid Connect version found: {version}")
    small = properties.get(CONNECT + "type")
    is_small = type_.kind == "int" and small is not None and properties.get("logicalType") is None
    if is_small and small not in _SMALL_INTEGERS:
        raise UnusableSchema(f"Connect type annotation for Avro int field is {small!r}, not int8 or int16")
    if isinstance(type_, Primitive) and type_.kind == "null":
        raise UnusableSchema("Standalone null schemas are not supported by this converter")


def _logical_of(type_: Primitive | Fixed) -> Logical | None:
    """The logical type of a plain one, by Avro's own word or by Connect's name; raises UnusableSchema."""
    properties = type_.properties
    own = _WORDS.get((type_.kind, str(properties.get("logicalType"))))
    name = own or properties.get(CONNECT + "name")
    if name not in _KINDS:
        return None
    name = LogicalName(name)
    if type_.kind not in _KINDS[name]:
        raise UnusableSchema(f"a {name} cannot be stored as {type_.kind}")
    if name is not LogicalName.DECIMAL:
        return Logical(name)
    digits: dict[str, Any] = {}
    if own is not None:
        scale, precision = properties.get("scale"), properties.get("precision")
        if not isinstance(precision, int | None):
            raise UnusableSchema("precision property must be a JSON Integer.")
        digits["scale"] = scale if isinstance(scale, int) else 0
        if precision is not None and precision != _UNKNOWN_PRECISION:
            digits[_PRECISION] = precision
    digits.update(properties.get(_PARAMETERS) or {})
    try:
        precision = digits.get(_PRECISION)
        return Logical(name, None if precision is None else int(precision), int(digits["scale"]))
    except (KeyError, ValueError):
        raise UnusableSchema("a Decimal must have a scale, and both that and its precision must be numbers") from None
