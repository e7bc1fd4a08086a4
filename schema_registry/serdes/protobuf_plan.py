"""What messages of one Protobuf type mean to one kind of reader or writer.

A plan is the message with all choices made that the format leaves open: the value of a field that is not set, how a
oneof appears, which messages are dates, times, decimals or plain values. `protobuf_values` reads and writes Python
values by it, `arrow.protobuf_reading` and `arrow.protobuf_writing` Arrow columns.

The defaults are those of Kafka Connect: a oneof is a struct called after it and its number, with a field for each
member, before all other fields. Messages, `optional` fields and members of a oneof are null if they are not set; all
other fields have Protobuf's default then.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.message_factory import GetMessageClass

from schema_registry.serdes.errors import UnusableSchema
from schema_registry.serdes.logical import Logical, LogicalName

KEY, VALUE = "key", "value"
DECIMAL_MESSAGE: Final = "confluent.type.Decimal"
LOGICAL_MESSAGES: Final = {
    "google.type.Date": LogicalName.DATE,
    "google.type.TimeOfDay": LogicalName.TIME,
    "google.protobuf.Timestamp": LogicalName.TIMESTAMP,
    DECIMAL_MESSAGE: LogicalName.DECIMAL,
}
WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
"""Messages that hold one plain value, so that it can be null."""
UNSIGNED: Final = frozenset({FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64})
"""Numbers that have a sign in Java, and so in Connect."""

_KINDS: Final = {
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_SINT32: "int32",
    FieldDescriptor.TYPE_SFIXED32: "int32",
    FieldDescriptor.TYPE_UINT32: "int64",
    FieldDescriptor.TYPE_FIXED32: "int64",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_SINT64: "int64",
    FieldDescriptor.TYPE_SFIXED64: "int64",
    FieldDescriptor.TYPE_UINT64: "int64",
    FieldDescriptor.TYPE_FIXED64: "int64",
    FieldDescriptor.TYPE_FLOAT: "float32",
    FieldDescriptor.TYPE_DOUBLE: "float64",
    FieldDescriptor.TYPE_BOOL: "boolean",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
}
_SMALL_INTEGERS: Final = ("int8", "int16")
_ENTRY: Final = "Entry"


class Choices(NamedTuple):
    """What the format leaves open."""

    flattens_oneofs: bool = False
    """Whether members of a oneof are fields of the message, without a struct around them."""
    numbers_oneofs: bool = True
    """Whether the name of a oneof includes its number."""
    has_enums_as_numbers: bool = False
    has_proto2_nulls: bool = True
    """Whether `optional` fields of proto2 that are not set are null, rather than their defaults."""
    has_empty_messages: bool = False
    """Whether messages that are not set are structs of defaults, rather than null."""
    unwraps_fields: bool = False
    """Whether a field that is a message with one value is that value."""
    unwraps_root: bool = True
    """The same for the message that is the whole record."""


class Scalar(msgspec.Struct, eq=False):
    """A plain value: how it is stored, and Connect's name of its type."""

    type: int
    kind: str


class EnumPlan(msgspec.Struct, eq=False):
    """A symbol, or its number."""

    enum: EnumDescriptor
    is_number: bool


class LogicalPlan(msgspec.Struct, eq=False):
    """A message that is a date, a time of day, a timestamp or a decimal."""

    message: Descriptor
    logical: Logical


class WrapperPlan(msgspec.Struct, eq=False):
    """A message that is the one value in it."""

    message: Descriptor
    value: "Plan"


class ListPlan(msgspec.Struct, eq=False):
    """A repeated field."""

    items: "Plan"


class MapPlan(msgspec.Struct, eq=False):
    """Entries with keys and values."""

    entry: Descriptor
    keys: "Plan"
    values: "Plan"

    @property
    def is_declared(self) -> bool:
        """Whether it was declared as a map, rather than only looking like one."""
        return bool(self.entry.GetOptions().map_entry)


class Member(msgspec.Struct, eq=False):
    """A field of a message."""

    name: str
    """Its name in values."""
    field: FieldDescriptor
    plan: "Plan"
    is_nullable: bool
    """Whether it is null if it is not set."""
    default: Any = None
    """The value to write for null."""


class OneofPlan(msgspec.Struct, eq=False):
    """A oneof, as a struct with a field for each member."""

    name: str
    oneof: OneofDescriptor | None
    members: Sequence[Member]


class MessagePlan(msgspec.Struct, eq=False):
    """A message, as a struct."""

    message: Descriptor
    parts: Sequence[Member | OneofPlan]


Plan: TypeAlias = Scalar | EnumPlan | LogicalPlan | WrapperPlan | ListPlan | MapPlan | MessagePlan


class Meaning:
    """Makes plans; raises UnusableSchema."""

    def __init__(self, choices: Choices = Choices()) -> None:  # noqa: B008 - it cannot be changed
        self._choices = choices
        self._open: set[str] = set()

    def of(self, message: Descriptor) -> MessagePlan | WrapperPlan:
        """The plan of a message that is a whole record."""
        return self._message(message, unwraps=self._choices.unwraps_root)

    def _message(self, message: Descriptor, *, unwraps: bool) -> MessagePlan | WrapperPlan:
        if unwraps and message.full_name in WRAPPERS:
            return WrapperPlan(message, self._single(message.fields_by_name[VALUE]))
        if message.full_name in self._open:
            raise UnusableSchema(f"the Protobuf schema is recursive: the message {message.full_name} holds itself")
        self._open.add(message.full_name)
        presence = _Presence(message, self._choices)
        parts: list[Member | OneofPlan] = []
        for oneof in message.oneofs:
            members = [self._member(f, presence) for f in oneof.fields if presence.oneof(f) is not None]
            if self._choices.flattens_oneofs:
                parts += members
            elif members:
                name = f"{oneof.name}_{oneof.index}" if self._choices.numbers_oneofs else str(oneof.name)
                parts.append(OneofPlan(name, oneof, members))
        parts += [self._member(field, presence) for field in message.fields if presence.oneof(field) is None]
        self._open.remove(message.full_name)
        return MessagePlan(message, parts)

    def _member(self, field: FieldDescriptor, presence: "_Presence") -> Member:
        return Member(str(field.name), field, self._field(field), presence.is_null_when_unset(field))

    def _field(self, field: FieldDescriptor) -> Plan:
        entry = field.message_type
        if entry is not None and is_map(field):
            keys, values = (self._field(entry.fields_by_name[name]) for name in (KEY, VALUE))
            return MapPlan(entry, keys, values)
        return ListPlan(self._single(field)) if field.is_repeated else self._single(field)

    def _single(self, field: FieldDescriptor) -> Plan:
        if field.enum_type is not None:
            return EnumPlan(field.enum_type, self._choices.has_enums_as_numbers)
        if field.type == FieldDescriptor.TYPE_GROUP:
            raise UnusableSchema(f"Unknown Connect schema type: the field {field.full_name} is a group")
        message = field.message_type
        if message is None:
            kind = _KINDS[field.type]
            small = field_parameters(field).get("connect.type", "") if kind == "int32" else ""
            return Scalar(field.type, small if small in _SMALL_INTEGERS else kind)
        if message.full_name in LOGICAL_MESSAGES:
            name = LOGICAL_MESSAGES[message.full_name]
            return LogicalPlan(message, _decimal(field) if name is LogicalName.DECIMAL else Logical(name))
        return self._message(message, unwraps=self._choices.unwraps_fields)


class _Presence:
    """Which fields of a message record whether they were set."""

    def __init__(self, message: Descriptor, choices: Choices) -> None:
        proto, file = DescriptorProto(), FileDescriptorProto()
        message.CopyToProto(proto)
        message.file.CopyToProto(file)
        self._choices = choices
        self.is_proto2 = file.syntax in ("", "proto2")
        self._optional = frozenset(field.name for field in proto.field if field.proto3_optional)

    def oneof(self, field: FieldDescriptor) -> OneofDescriptor | None:
        """The oneof of a field, if it is one that was written as such."""
        return None if field.name in self._optional else field.containing_oneof

    def is_null_when_unset(self, field: FieldDescriptor) -> bool:
        """Whether a field that is not set is null, rather than its default."""
        if field.is_repeated:
            return False
        if field.message_type is not None:
            return not self._choices.has_empty_messages
        if self.oneof(field) is not None or field.name in self._optional:
            return True
        return self._choices.has_proto2_nulls and self.is_proto2 and not field.is_required


def has_optional_keyword(field: FieldDescriptor) -> bool:
    """Whether a field says that it is optional."""
    if field.is_repeated or field.is_required:
        return False
    presence = _Presence(field.containing_type, Choices())  # type: ignore[arg-type]  # fields of messages have one
    is_proto3_optional = field.containing_oneof is not None and presence.oneof(field) is None
    return is_proto3_optional or (presence.is_proto2 and field.containing_oneof is None)


def is_map(field: FieldDescriptor) -> bool:
    """Whether a field holds entries of a map, declared as such or only looking like one."""
    entry = field.message_type
    if entry is None or not field.is_repeated or not entry.name.endswith(_ENTRY):
        return False
    return [part.name for part in entry.fields if not part.is_repeated] == [KEY, VALUE]


def field_parameters(field: FieldDescriptor) -> Mapping[str, str]:
    """What `(confluent.field_meta)` says about a field."""
    message: Any = field.containing_type
    try:
        extension: Any = message.file.pool.FindExtensionByName("confluent.field_meta")
    except KeyError:
        return {}
    # The class of the options does not know the extension, which belongs to this schema's own pool.
    options = GetMessageClass(extension.containing_type).FromString(field.GetOptions().SerializeToString())
    meta: Any = options.Extensions[extension]
    return dict(meta.params)


def _decimal(field: FieldDescriptor) -> Logical:
    parameters = field_parameters(field)
    scale, precision = parameters.get("scale", "0"), parameters.get("precision", "")
    digits = int(precision) if precision.isdecimal() else None
    return Logical(LogicalName.DECIMAL, digits, int(scale) if scale.lstrip("-").isdecimal() else 0)
