"""Protobuf schemas of columns, as Connect's converter writes them, and the types of SQL for Protobuf's."""

import re
from collections.abc import Mapping
from typing import Final

from google.protobuf.descriptor import Descriptor

from schema_registry.formats.protobuf import ProtobufSchema
from schema_registry.formats.schema import InvalidSchema
from schema_registry.serdes import protobuf_plan as plans
from streams.formats.avro_schemas import logical_type
from streams.formats.errors import SchemaProblem
from streams.formats.layout import Layout
from streams.model.sources import Format
from streams.model.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DOUBLE,
    INTEGER,
    STRING,
    Array,
    Decimal,
    Field,
    Map,
    Name,
    Primitive,
    SqlType,
    Struct,
)

MESSAGE_NAME: Final = "ConnectDefault"
_WRAPPERS_FILE: Final = "google/protobuf/wrappers.proto"
_PLAIN: Final[Mapping[Name, str]] = {
    Name.BOOLEAN: "bool",
    Name.INTEGER: "int32",
    Name.BIGINT: "int64",
    Name.DOUBLE: "double",
    Name.STRING: "string",
    Name.BYTES: "bytes",
}
_MESSAGES: Final[Mapping[Name, tuple[str, str]]] = {
    Name.TIME: ("google.type.TimeOfDay", "google/type/timeofday.proto"),
    Name.DATE: ("google.type.Date", "google/type/date.proto"),
    Name.TIMESTAMP: ("google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
}
_KINDS: Final[Mapping[str, SqlType]] = {
    "int8": INTEGER,
    "int16": INTEGER,
    "int32": INTEGER,
    "int64": BIGINT,
    "float32": DOUBLE,
    "float64": DOUBLE,
    "boolean": BOOLEAN,
    "string": STRING,
    "bytes": BYTES,
}
_KEY_TYPES: Final = (STRING, INTEGER, BIGINT, BOOLEAN)
_is_name: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch


def protobuf_text(layout: Layout) -> str:
    """The file with the message of the columns; raises SchemaProblem."""
    file = _File(layout.format)
    package, _, name = (layout.format.full_name or file.next_name()).rpartition(".")
    body = file.message(name, layout.record)
    header = ['syntax = "proto3";', *([f"package {package};"] if package else [])]
    return "\n".join([*header, *(f'import "{path}";' for path in sorted(file.imports)), *body, ""])


class _File:
    def __init__(self, written_as: Format) -> None:
        self._nullable_as = written_as.nullable_as
        self._unnamed = 0
        self.imports: set[str] = set()

    def next_name(self) -> str:
        """A name for a struct."""
        self._unnamed += 1
        return f"{MESSAGE_NAME}{self._unnamed}"

    def message(self, name: str, struct: Struct) -> list[str]:
        """The lines of a message."""
        lines: list[str] = []
        in_json: dict[str, str] = {}
        for tag, field in enumerate(struct.fields, 1):
            if not _is_name(field.name):
                raise SchemaProblem(
                    f"Protobuf has no field called {field.name}: letters, digits and _ may be in a name."
                )
            other = in_json.setdefault(_json_name(field.name), field.name)
            if other != field.name:
                raise SchemaProblem(
                    f"Protobuf takes {other} and {field.name} for one name: call one of them otherwise."
                )
            lines += self._field(field, tag)
        return [f"message {name} {{", *(f"  {line}" for line in lines), "}"]

    def _field(self, field: Field, tag: int) -> list[str]:
        """The line of a field after those of its type."""
        definitions: list[str] = []
        match field.type:
            case Array(element):
                if isinstance(element, Array | Map):
                    raise SchemaProblem(f"Protobuf cannot hold the field {field.name}: an array of arrays or maps.")
                kind = "repeated " + self._single(element, field.name, definitions)
            case Map(key, value):
                if isinstance(value, Array | Map | Decimal) or key not in _KEY_TYPES:
                    raise SchemaProblem(f"Protobuf cannot hold the field {field.name} of type {field.type}.")
                kind = f"map<{self._single(key, field.name, [])}, {self._single(value, field.name, definitions)}>"
            case _:
                kind = self._nullable(field.type, self._single(field.type, field.name, definitions))
        return [*definitions, f"{kind} {field.name} = {tag}{self._options(field.type)};"]

    def _single(self, kind: SqlType, name: str, definitions: list[str]) -> str:
        """The name of a type that is neither an array nor a map; a struct is defined before."""
        if isinstance(kind, Struct):
            message = self.next_name()
            message = f"{message}Message" if message == name else message
            definitions += self.message(message, kind)
            return message
        if isinstance(kind, Decimal):
            self.imports.add("confluent/type/decimal.proto")
            return plans.DECIMAL_MESSAGE
        assert isinstance(kind, Primitive)
        if kind.name in _PLAIN:
            return _PLAIN[kind.name]
        message, path = _MESSAGES[kind.name]
        self.imports.add(path)
        return message

    def _nullable(self, kind: SqlType, name: str) -> str:
        if self._nullable_as is None or not isinstance(kind, Primitive) or kind.name not in _PLAIN:
            return name
        if self._nullable_as == "OPTIONAL":
            return f"optional {name}"
        self.imports.add(_WRAPPERS_FILE)
        return f"google.protobuf.{name.capitalize()}Value"

    def _options(self, kind: SqlType) -> str:
        """How many digits a decimal has, also one in an array; nothing would say that of those in a map."""
        single = kind.element if isinstance(kind, Array) else kind
        if not isinstance(single, Decimal):
            return ""
        self.imports.add("confluent/meta.proto")
        digits = {"precision": single.precision, "scale": single.scale}
        entries = ", ".join(f'{{key: "{key}", value: "{value}"}}' for key, value in digits.items())
        return f" [(confluent.field_meta) = {{params: [{entries}]}}]"


def _json_name(name: str) -> str:
    """The name of a field in Protobuf's JSON, without underscores and in camel case; it may occur only once."""
    return re.sub(r"_+(.?)", lambda found: found[1].upper(), name)


def message_of(schema: ProtobufSchema, full_name: str | None) -> Descriptor:
    """A message by its name, or the first one; raises SchemaProblem."""
    name = full_name or schema.name
    try:
        if name is not None:
            return schema.message_at(schema.indexes_of(name))
    except InvalidSchema:
        pass
    raise SchemaProblem(f"The Protobuf schema has no message {full_name or 'at all'}.")


def protobuf_plan(message: Descriptor) -> plans.MessagePlan | plans.WrapperPlan:
    """The plan of a message; messages around one plain value are that value, which may be null."""
    return plans.Meaning(plans.Choices(unwraps_fields=True, unwraps_root=False)).of(message)


def protobuf_type(plan: plans.Plan | plans.OneofPlan) -> SqlType:
    """The type of a plan."""
    match plan:
        case plans.Scalar():
            return _KINDS[plan.kind]
        case plans.EnumPlan():
            return STRING
        case plans.LogicalPlan():
            return logical_type(plan.logical)
        case plans.WrapperPlan():
            return protobuf_type(plan.value)
        case plans.ListPlan():
            return Array(protobuf_type(plan.items))
        case plans.MapPlan():
            return Map(protobuf_type(plan.keys), protobuf_type(plan.values))
        case plans.OneofPlan():
            return Struct(tuple(Field(member.name, protobuf_type(member.plan)) for member in plan.members))
        case plans.MessagePlan():
            parts = [(part.name, part.plan if isinstance(part, plans.Member) else part) for part in plan.parts]
            return Struct(tuple(Field(name, protobuf_type(part)) for name, part in parts))
