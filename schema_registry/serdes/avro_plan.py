"""What the bytes of one Avro schema mean to one kind of reader or writer.

A plan is the schema with all choices made that the format leaves open: how a union appears (`{branch: value}`, or the
bare value where only null is the other choice), which arrays are maps whose keys are not text, and which logical types
are more than what is stored for them. Everything that reads or writes data by a schema is made from its plan:
Python functions by `avro_reading` and `avro_writing`, Arrow columns by `arrow.avro_reading` and `arrow.avro_writing`.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from schema_registry.formats.avro_types import Array, Enum, Field, Fixed, Map, Primitive, Record, Type, Union, label
from schema_registry.serdes.errors import UnusableSchema
from schema_registry.serdes.logical import Logical, LogicalName

CONNECT: Final = "connect."
"""How properties begin that tell in Avro what only Connect knows."""
KEY, VALUE = "key", "value"
NO_DEFAULT: Final = msgspec.UNSET

_MAP_ENTRY: Final = "MapEntry"
_PARAMETERS: Final = CONNECT + "parameters"
_PRECISION: Final = "connect.decimal.precision"
_UNKNOWN_PRECISION: Final = 64
"""What Confluent's converter writes for decimals whose precision it does not know."""
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
    """`int8` or `int16` where Connect says that an int is no larger."""


class ListPlan(msgspec.Struct, eq=False):
    """An array."""

    items: "Plan"


class MapPlan(msgspec.Struct, eq=False):
    """A map with text keys."""

    values: "Plan"


class EntriesPlan(msgspec.Struct, eq=False):
    """An array of key and value that is a map, because its keys are not text."""

    entry: "StructPlan"
    is_list: bool = False
    """Whether it is read as a list of `{key, value}` nevertheless, in which the last of equal keys counts."""


class FieldPlan(msgspec.Struct, eq=False):
    """A field of a record."""

    name: str
    plan: "Plan"
    source: str
    """What the field is called in the value."""
    default: Any = NO_DEFAULT
    """What is written where the value does not have the field, or has null for it, as the struct says."""
    constant: bytes | None = None
    """What is always written; the value has no such field."""
    wire: Field | None = None
    """The field of the schema."""


class StructPlan(msgspec.Struct, eq=False):
    """A record; its fields are filled in last, because they may mention it."""

    name: str
    fields: list[FieldPlan]
    is_exact: bool = False
    """Whether a value that is written must have all fields that have no default, and no others; otherwise a field that
    is missing is null, and null is the default."""


class Branch(msgspec.Struct, eq=False):
    """One type of a union."""

    index: int
    name: str
    """What tells it from the others in a value."""
    plan: "Plan"


class ChoicePlan(msgspec.Struct, eq=False):
    """A union."""

    branches: Sequence[Branch]
    """Those that are not null."""
    null: int | None
    """Which branch is null."""
    count: int
    """How many branches there are."""
    is_flat: bool
    """Whether the value is that of the only branch; otherwise it is `{name: value}`."""
    is_exact: bool = False
    """Whether a value that is written must have one key; otherwise the first that is not null counts."""


Plan: TypeAlias = Scalar | ListPlan | MapPlan | EntriesPlan | StructPlan | ChoicePlan


class Meaning:
    """Makes the plan of what the data of a schema means: what Kafka Connect makes of it with its default options.

    Subclasses decide otherwise. Raises UnusableSchema where properties make no sense, or a record holds itself.
    """

    def __init__(self) -> None:
        self._open: set[str] = set()

    def of(self, type_: Type) -> Plan:
        """The plan of a type."""
        check_properties(type_)
        match type_:
            case Union():
                return self._union(type_)
            case Record():
                return self.struct(type_)
            case Array():
                if isinstance(type_.items, Record) and is_map_entry(type_.items):
                    return self.entries(type_.items)
                return ListPlan(self.of(type_.items))
            case Map():
                return MapPlan(self.of(type_.values))
            case Enum():
                return Scalar(type_)
            case Primitive() | Fixed():
                return self.scalar(type_)

    def scalar(self, type_: Primitive | Fixed) -> Scalar:
        """The plan of a plain type."""
        logical = logical_of(type_)
        small = type_.properties.get(CONNECT + "type") if type_.kind == "int" and logical is None else None
        return Scalar(type_, logical, small if small in _SMALL_INTEGERS else None)

    def struct(self, record: Record) -> StructPlan:
        """The plan of a record."""
        if record.name.full in self._open:
            raise UnusableSchema(f"the Avro schema is recursive: the record {record.name.full} holds itself")
        self._open.add(record.name.full)
        fields = [FieldPlan(field.name, self.of(field.type), field.name, wire=field) for field in record.fields]
        self._open.remove(record.name.full)
        return StructPlan(record.name.full, fields)

    def entries(self, record: Record) -> EntriesPlan:
        """The plan of a map whose entries are such records."""
        if {field.name for field in record.fields} != {KEY, VALUE}:
            raise UnusableSchema("array elements do not match the expected format of a map's entries")
        return EntriesPlan(self.struct(record))

    def branch_name(self, branch: Type, index: int) -> str:  # noqa: ARG002 - for those who number them
        """What a branch of a union is called in values."""
        return branch.name.simple if isinstance(branch, Record | Enum | Fixed) else branch.kind

    def is_flat(self, union: Union) -> bool:
        """Whether values of a union stand without the name of their branch."""
        return sum(branch.kind != "null" for branch in union.branches) == 1

    def _union(self, union: Union) -> ChoicePlan:
        kinds = [branch.kind for branch in union.branches]
        branches = [
            Branch(index, self.branch_name(branch, index), self.of(branch))
            for index, branch in enumerate(union.branches)
            if branch.kind != "null"
        ]
        if len({branch.name for branch in branches}) < len(branches):
            names = ", ".join(branch.name for branch in branches)
            raise UnusableSchema(f"Multiple union schemas map to the Connect union field name: {names}")
        null = kinds.index("null") if "null" in kinds else None
        return ChoicePlan(branches, null, len(kinds), self.is_flat(union))


class JsonEncoding(Meaning):
    """Makes the plan of Avro's own JSON encoding: branches of unions by their names, logical types as stored."""

    def __init__(self) -> None:
        super().__init__()
        self._records: dict[int, StructPlan] = {}

    def of(self, type_: Type) -> Plan:
        """The plan of a type; it may hold itself."""
        match type_:
            case Array():
                return ListPlan(self.of(type_.items))
            case Primitive() | Fixed():
                return Scalar(type_)
            case Record():
                return self._records.get(id(type_)) or self.struct(type_)
            case Union():
                choice = self._union(type_)
                choice.is_exact = True
                return choice
            case Map():
                return MapPlan(self.of(type_.values))
            case Enum():
                return Scalar(type_)

    def struct(self, record: Record) -> StructPlan:
        """The plan of a record."""
        made = self._records[id(record)] = StructPlan(record.name.full, [], is_exact=True)
        for field in record.fields:
            default = json_default(field.type, field.default) if field.has_default else NO_DEFAULT
            made.fields.append(FieldPlan(field.name, self.of(field.type), field.name, default))
        return made

    def branch_name(self, branch: Type, index: int) -> str:  # noqa: ARG002 - as above
        """The full name of a named type, otherwise the kind."""
        return label(branch)

    def is_flat(self, union: Union) -> Literal[False]:  # noqa: ARG002 - never
        """Null alone stands without its name."""
        return False


def json_default(type_: Type, default: Any) -> Any:
    """The default of a field as data would have it: defaults of unions are of their first branch, without its name."""
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


def is_map_entry(record: Record) -> bool:
    """Whether records of this type are the entries of a map whose keys are not text."""
    is_named = record.name.full == f"io.confluent.connect.avro.{_MAP_ENTRY}"
    return is_named or record.properties.get(CONNECT + "internal.type") == _MAP_ENTRY


def check_properties(type_: Type) -> None:
    """Raise UnusableSchema where what Connect once wrote about a type makes no sense."""
    if isinstance(type_, Union):
        return
    properties = type_.properties
    parameters = properties.get(_PARAMETERS)
    are_texts = parameters is None or (
        isinstance(parameters, dict) and all(isinstance(value, str) for value in parameters.values())
    )
    name, version = properties.get(CONNECT + "name"), properties.get(CONNECT + "version")
    if not (are_texts and isinstance(name, str | None) and isinstance(version, int | None)):
        raise UnusableSchema("the Avro schema has properties of Connect that make no sense")
    small = properties.get(CONNECT + "type")
    is_small = type_.kind == "int" and small is not None and properties.get("logicalType") is None
    if is_small and small not in _SMALL_INTEGERS:
        raise UnusableSchema(f"Connect type annotation for Avro int field is {small!r}, not int8 or int16")
    if isinstance(type_, Primitive) and type_.kind == "null":
        raise UnusableSchema("Standalone null schemas are not supported by this converter")


def logical_of(type_: Primitive | Fixed) -> Logical | None:
    """The logical type of a plain one, by Avro's own word or by Connect's name; raises UnusableSchema."""
    properties = type_.properties
    own = _WORDS.get((type_.kind, str(properties.get("logicalType"))))
    name = own or properties.get(CONNECT + "name")
    if name not in _KINDS:
        return None
    name = LogicalName(name)
    if type_.kind not in _KINDS[name]:
        raise UnusableSchema(f"no {name} is stored as {type_.kind}")
    return _decimal(type_, is_avros_own=own is not None) if name is LogicalName.DECIMAL else Logical(name)


def _decimal(type_: Primitive | Fixed, *, is_avros_own: bool) -> Logical:
    properties = type_.properties
    given: dict[str, Any] = {}
    if is_avros_own:
        scale, precision = properties.get("scale"), properties.get("precision")
        if not isinstance(precision, int | None):
            raise UnusableSchema("precision property must be a JSON Integer.")
        given["scale"] = scale if isinstance(scale, int) else 0
        if precision is not None and precision != _UNKNOWN_PRECISION:
            given[_PRECISION] = precision
    given.update(properties.get(_PARAMETERS) or {})
    try:
        digits = given.get(_PRECISION)
        return Logical(LogicalName.DECIMAL, None if digits is None else int(digits), int(given["scale"]))
    except (KeyError, ValueError):
        raise UnusableSchema("a Decimal must tell its scale, and both that and its precision as numbers") from None
