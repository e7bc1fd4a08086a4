"""The types of a Protobuf schema by name, and the properties of fields that matter when two are compared."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum

import msgspec
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from schema_registry.compatibility.protobuf_changes import Trail
from schema_registry.formats.protobuf import ProtobufSchema
from schema_registry.formats.protobuf_fields import explicit_label

_MESSAGES = frozenset({FieldDescriptorProto.TYPE_MESSAGE, FieldDescriptorProto.TYPE_GROUP})
_SCALAR_GROUPS = {
    FieldDescriptorProto.TYPE_INT32: "number",
    FieldDescriptorProto.TYPE_INT64: "number",
    FieldDescriptorProto.TYPE_UINT32: "number",
    FieldDescriptorProto.TYPE_UINT64: "number",
    FieldDescriptorProto.TYPE_BOOL: "number",
    FieldDescriptorProto.TYPE_ENUM: "number",
    FieldDescriptorProto.TYPE_SINT32: "zigzag number",
    FieldDescriptorProto.TYPE_SINT64: "zigzag number",
    FieldDescriptorProto.TYPE_STRING: "string or bytes",
    FieldDescriptorProto.TYPE_BYTES: "string or bytes",
    FieldDescriptorProto.TYPE_FIXED32: "fixed 32",
    FieldDescriptorProto.TYPE_SFIXED32: "fixed 32",
    FieldDescriptorProto.TYPE_FIXED64: "fixed 64",
    FieldDescriptorProto.TYPE_SFIXED64: "fixed 64",
    FieldDescriptorProto.TYPE_FLOAT: "float",
    FieldDescriptorProto.TYPE_DOUBLE: "double",
}
"""Groups of scalars with the same encoding, which may replace each other."""


class FieldKind(Enum):
    """The kind of a field, which must not change."""

    SCALAR = "scalar"
    MESSAGE = "message"
    MAP = "map"


class Member(msgspec.Struct, frozen=True):
    """A field of a message, and the oneof it belongs to."""

    field: FieldDescriptorProto
    oneof: str | None

    def trail(self, message: Trail) -> Trail:
        """The path to the field."""
        return (*message, *([self.oneof] if self.oneof else []), str(self.field.number))


class _Message(msgspec.Struct, frozen=True):
    message: DescriptorProto
    package: str
    file: str
    syntax: str


class Types:
    """All messages that a schema can use, by full name with a leading dot."""

    def __init__(self, schema: ProtobufSchema) -> None:
        self._syntax = schema.descriptor.syntax or "proto2"
        self._subjects = {
            reference.name: (reference.subject, reference.version) for reference in reversed(schema.references)
        }
        self._own_file = schema.descriptor.name
        self._types: dict[str, _Message] = {}
        for file in (*schema.dependencies, schema.descriptor):
            self._types.update(_messages_of(file))

    def message(self, full_name: str) -> DescriptorProto:
        """The message with this name."""
        return self._types[full_name].message

    def local_name(self, full_name: str) -> str:
        """The name without its package, which may change if a type moves to another file."""
        package = self._types[full_name].package
        return full_name.removeprefix(f".{package}." if package else ".")

    def origin(self, full_name: str) -> tuple[str, int] | str | None:
        """The origin of a type: None for this file itself, a version of a subject, or a bundled file."""
        file = self._types[full_name].file
        return None if file == self._own_file else self._subjects.get(file, file)

    def map_entry(self, field: FieldDescriptorProto) -> DescriptorProto | None:
        """The entry type of a map field; None for any other field."""
        if field.type != FieldDescriptorProto.TYPE_MESSAGE:
            return None
        message = self._types[field.type_name].message
        return message if message.options.map_entry else None

    @contextmanager
    def within(self, full_name: str) -> Iterator[None]:
        """Inside the block, labels are read with the syntax of the file that this type comes from."""
        outer, self._syntax = self._syntax, self._types[full_name].syntax
        yield
        self._syntax = outer

    def label(self, field: FieldDescriptorProto) -> str | None:
        """The label of a field in the text, if it has one."""
        return explicit_label(field, self._syntax)


def field_kind(field: FieldDescriptorProto, *, is_map: bool) -> FieldKind:
    """The kind of a field; enums are encoded as numbers, so they are scalars."""
    if is_map:
        return FieldKind.MAP
    return FieldKind.MESSAGE if field.type in _MESSAGES else FieldKind.SCALAR


def scalar_group(field: FieldDescriptorProto) -> str:
    """The group of scalars that may replace this one."""
    return _SCALAR_GROUPS[field.type]


def by_name(messages: Sequence[DescriptorProto]) -> dict[str, tuple[int, DescriptorProto]]:
    """Messages with their indexes, without the entry types of maps."""
    real = [message for message in messages if not message.options.map_entry]
    return {message.name: (index, message) for index, message in enumerate(real)}


def members(message: DescriptorProto) -> Mapping[int, Member]:
    """The fields by number."""
    return {field.number: Member(field, _oneof_of(message, field)) for field in message.field}


def real_oneofs(message: DescriptorProto) -> Mapping[str, Sequence[int]]:
    """The numbers of the fields in each oneof of the text."""
    oneofs: dict[str, list[int]] = {}
    for number, member in members(message).items():
        if member.oneof is not None:
            oneofs.setdefault(member.oneof, []).append(number)
    return oneofs


def _oneof_of(message: DescriptorProto, field: FieldDescriptorProto) -> str | None:
    # An `optional` field of proto3 is in a oneof of its own, but only in descriptors.
    if not field.HasField("oneof_index") or field.proto3_optional:
        return None
    return message.oneof_decl[field.oneof_index].name


def _messages_of(file: FileDescriptorProto) -> Iterator[tuple[str, _Message]]:
    pending = [(f".{file.package}" if file.package else "", message) for message in file.message_type]
    while pending:
        prefix, message = pending.pop()
        name = f"{prefix}.{message.name}"
        yield name, _Message(message, file.package, file.name, file.syntax or "proto2")
        pending.extend((name, nested) for nested in message.nested_type)
