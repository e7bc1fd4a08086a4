"""The types of a Protobuf schema by name, and what about a field counts when two are compared."""

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
"""Scalars that are the same on the wire, so that one may follow the other."""


class Kind(Enum):
    """What a change of type must not change."""

    SCALAR = "scalar"
    MESSAGE = "message"
    MAP = "map"


class Member(msgspec.Struct, frozen=True):
    """A field of a message, and the oneof it belongs to."""

    field: FieldDescriptorProto
    oneof: str | None

    def trail(self, message: Trail) -> Trail:
        """The way to the field."""
        return (*message, *([self.oneof] if self.oneof else []), str(self.field.number))


class _Located(msgspec.Struct, frozen=True):
    message: DescriptorProto
    package: str
    file: str
    syntax: str


class Types:
    """All messages that a schema can mention, by full name with a leading dot."""

    def __init__(self, schema: ProtobufSchema) -> None:
        self._syntax = schema.descriptor.syntax or "proto2"
        self._subjects = {
            reference.name: (reference.subject, reference.version) for reference in reversed(schema.references)
        }
        self._own_file = schema.descriptor.name
        self._types: dict[str, _Located] = {}
        for file in (*schema.dependencies, schema.descriptor):
            self._types.update(_located(file))

    def message(self, full_name: str) -> DescriptorProto:
        """The message of that name."""
        return self._types[full_name].message

    def local_name(self, full_name: str) -> str:
        """The name without its package, which may change when a type moves to another file."""
        package = self._types[full_name].package
        return full_name.removeprefix(f".{package}." if package else ".")

    def origin(self, full_name: str) -> tuple[str, int] | str | None:
        """Where the type comes from: None for this very file, a subject's version, or a bundled file."""
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
        """For as long as the block lasts, fields are those of the file that this type comes from."""
        outer, self._syntax = self._syntax, self._types[full_name].syntax
        yield
        self._syntax = outer

    def label(self, field: FieldDescriptorProto) -> str | None:
        """The label that stands in the text, if one does."""
        return explicit_label(field, self._syntax)


def kind_of(field: FieldDescriptorProto, *, is_map: bool) -> Kind:
    """Enums are numbers on the wire, hence scalars."""
    if is_map:
        return Kind.MAP
    return Kind.MESSAGE if field.type in _MESSAGES else Kind.SCALAR


def scalar_group(field: FieldDescriptorProto) -> str:
    """The scalars that this one may become."""
    return _SCALAR_GROUPS[field.type]


def by_name(messages: Sequence[DescriptorProto]) -> dict[str, tuple[int, DescriptorProto]]:
    """Messages with their indexes, without the entry types of maps."""
    real = [message for message in messages if not message.options.map_entry]
    return {message.name: (index, message) for index, message in enumerate(real)}


def members(message: DescriptorProto) -> Mapping[int, Member]:
    """The fields by number."""
    return {field.number: Member(field, _oneof_of(message, field)) for field in message.field}


def real_oneofs(message: DescriptorProto) -> Mapping[str, Sequence[int]]:
    """The numbers of the fields in each oneof that stands in the text."""
    oneofs: dict[str, list[int]] = {}
    for number, member in members(message).items():
        if member.oneof is not None:
            oneofs.setdefault(member.oneof, []).append(number)
    return oneofs


def _oneof_of(message: DescriptorProto, field: FieldDescriptorProto) -> str | None:
    # `optional` of proto3 is a oneof of one in descriptors only.
    if not field.HasField("oneof_index") or field.proto3_optional:
        return None
    return message.oneof_decl[field.oneof_index].name


def _located(file: FileDescriptorProto) -> Iterator[tuple[str, _Located]]:
    pending = [(f".{file.package}" if file.package else "", message) for message in file.message_type]
    while pending:
        prefix, message = pending.pop()
        name = f"{prefix}.{message.name}"
        yield name, _Located(message, file.package, file.name, file.syntax or "proto2")
        pending.extend((name, nested) for nested in message.nested_type)
