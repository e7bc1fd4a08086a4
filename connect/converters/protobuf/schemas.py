"""Messages of Protobuf as schemas of Connect."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from connect.api.data import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    Type,
    array,
    decimal,
    mapping,
)
from connect.api.errors import DataError
from connect.converters.protobuf import config as names
from connect.converters.protobuf.config import ProtobufConfig

_PLAIN: Final = {
    FieldDescriptor.TYPE_INT32: INT32,
    FieldDescriptor.TYPE_INT64: INT64,
    FieldDescriptor.TYPE_FLOAT: FLOAT32,
    FieldDescriptor.TYPE_DOUBLE: FLOAT64,
    FieldDescriptor.TYPE_BOOL: BOOLEAN,
    FieldDescriptor.TYPE_STRING: STRING,
    FieldDescriptor.TYPE_BYTES: BYTES,
}
_OTHER_INTEGERS: Final = {
    FieldDescriptor.TYPE_SINT32: (INT32, "sint32"),
    FieldDescriptor.TYPE_SFIXED32: (INT32, "sfixed32"),
    FieldDescriptor.TYPE_UINT32: (INT64, "uint32"),
    FieldDescriptor.TYPE_FIXED32: (INT64, "fixed32"),
    FieldDescriptor.TYPE_UINT64: (INT64, "uint64"),
    FieldDescriptor.TYPE_SINT64: (INT64, "sint64"),
    FieldDescriptor.TYPE_FIXED64: (INT64, "fixed64"),
    FieldDescriptor.TYPE_SFIXED64: (INT64, "sfixed64"),
}
_SMALL_INTEGERS: Final = {"int8": INT8, "int16": INT16}
_MESSAGES: Final = {
    names.DATE_MESSAGE: DATE,
    names.TIME_MESSAGE: TIME,
    names.TIMESTAMP_MESSAGE: TIMESTAMP,
}


class Presence:
    """Which fields of a message can be told from not being there."""

    def __init__(self, message: Descriptor) -> None:
        proto, file = DescriptorProto(), FileDescriptorProto()
        message.CopyToProto(proto)
        message.file.CopyToProto(file)
        self._is_proto2 = file.syntax in ("", "proto2")
        self._optional = frozenset(field.name for field in proto.field if field.proto3_optional)

    def oneof(self, field: FieldDescriptor) -> OneofDescriptor | None:
        """The oneof of a field, if it is one that was written as such."""
        return None if field.name in self._optional else field.containing_oneof

    def has_optional_keyword(self, field: FieldDescriptor) -> bool:
        """Whether a field says that it is optional."""
        is_proto2 = self._is_proto2 and not field.is_repeated and not field.is_required
        return field.name in self._optional or (is_proto2 and field.containing_oneof is None)

    def is_null_when_unset(self, field: FieldDescriptor, config: ProtobufConfig) -> bool:
        """Whether null, and not a default, is what a field that is not set has."""
        if field.message_type is not None and not field.is_repeated:
            return not config.generate_struct_for_nulls
        if self.oneof(field) is not None:
            return True
        return field.name in self._optional or (config.optional_for_proto2 and self.has_optional_keyword(field))


def to_connect_schema(message: Descriptor, config: ProtobufConfig, *, version: int | None = None) -> Schema:
    """The Connect schema of a message; raises DataError. `version` is that of the subject."""
    made = _Reader(message.file.pool, config).root(message)
    return made if version is None else made.but(version=version)


def is_map(field: FieldDescriptor) -> bool:
    """Whether a field holds entries of a map, be they declared as such or only look so."""
    entry = field.message_type
    if entry is None or not field.is_repeated or not entry.name.endswith(names.ENTRY):
        return False
    return [part.name for part in entry.fields if not part.is_repeated] == [names.KEY, names.VALUE]


def union_field_name(oneof: OneofDescriptor, config: ProtobufConfig) -> str:
    """What the field of a struct is called that stands for a oneof."""
    return f"{oneof.name}_{oneof.index}" if config.generate_index_for_unions else str(oneof.name)


class _Reader:
    """Reads one message."""

    def __init__(self, pool: DescriptorPool, config: ProtobufConfig) -> None:
        self._pool = pool
        self._config = config
        self._open: set[str] = set()

    def root(self, message: Descriptor) -> Schema:
        if self._config.wrapper_for_raw_primitives and message.full_name in names.WRAPPERS:
            return names.WRAPPERS[message.full_name]
        return self._struct(message)

    @contextmanager
    def _opened(self, message: Descriptor) -> Iterator[None]:
        if message.full_name in self._open:
            raise DataError(
                f"the Protobuf schema is recursive: the message {message.full_name} holds itself, "
                "which no Connect schema can"
            )
        self._open.add(message.full_name)
        yield
        self._open.remove(message.full_name)

    def _struct(self, message: Descriptor) -> Schema:
        presence = Presence(message)
        fields: list[Field] = []
        with self._opened(message):
            for oneof in message.oneofs:
                members = [field for field in oneof.fields if presence.oneof(field) is not None]
                if self._config.flatten_unions:
                    fields += self._fields(members, presence)
                elif members:
                    fields.append(Field(union_field_name(oneof, self._config), self._union(oneof, members, presence)))
            fields += self._fields([field for field in message.fields if presence.oneof(field) is None], presence)
        return Schema(Type.STRUCT, name=self._name(message.full_name), fields=tuple(fields))

    def _fields(self, fields: Sequence[FieldDescriptor], presence: Presence) -> list[Field]:
        return [Field(str(field.name), self._field(field, presence)) for field in fields]

    def _union(self, oneof: OneofDescriptor, members: Sequence[FieldDescriptor], presence: Presence) -> Schema:
        fields = tuple(self._fields(members, presence))
        if self._config.generalized_sum_type_support:
            parameters = {names.GENERAL_UNION: str(oneof.name)}
            return Schema(Type.STRUCT, name=str(oneof.name), fields=fields, optional=True, parameters=parameters)
        name = f"{names.UNION}.{self._name(oneof.full_name)}"
        return Schema(Type.STRUCT, name=name, fields=fields, optional=True)

    def _field(self, field: FieldDescriptor, presence: Presence) -> Schema:
        made = self._map(field.message_type) if field.message_type and is_map(field) else self._single(field)
        if field.is_repeated and made.type is not Type.MAP:
            made = array(made.as_optional(), optional=True)
        config = self._config
        is_keyword = config.optional_for_nullables and presence.has_optional_keyword(field)
        if is_keyword or not (config.optional_for_nullables or config.wrapper_for_nullables):
            made = made.as_optional()
        return made.but(parameters={**made.parameters, names.TAG: str(field.number)})

    def _map(self, entry: Descriptor) -> Schema:
        presence = Presence(entry)
        key, value = (self._field(part, presence) for part in entry.fields)
        name = entry.full_name if self._config.enhanced_protobuf_schema_support else entry.name
        package, _, simple = str(name).rpartition(".")
        simple = names.map_name(simple)
        return mapping(key, value, optional=True).but(name=f"{package}.{simple}" if package else simple)

    def _single(self, field: FieldDescriptor) -> Schema:
        if field.enum_type is not None:
            return self._enum(field.enum_type)
        if field.message_type is not None:
            return self._message(field, field.message_type).as_optional()
        if field.type in _OTHER_INTEGERS:
            made, kind = _OTHER_INTEGERS[field.type]
            if made.type is Type.INT32 and (small := self._small(field)):
                return small
            return made.but(parameters={names.TYPE: kind})
        if field.type not in _PLAIN:
            raise DataError(f"Unknown Connect schema type: the field {field.full_name} is a group")
        return self._small(field) or _PLAIN[field.type]

    def _small(self, field: FieldDescriptor) -> Schema | None:
        if field.type != FieldDescriptor.TYPE_INT32 and field.type not in _OTHER_INTEGERS:
            return None
        return _SMALL_INTEGERS.get(self._parameters(field).get(names.CONNECT_TYPE, ""))

    def _enum(self, enum: EnumDescriptor) -> Schema:
        key = self._config.enum_key
        parameters = {key: str(enum.name)}
        parameters.update({f"{key}.{value.name}": str(value.number) for value in enum.values})
        made = INT32 if self._config.int_for_enums else STRING
        return made.but(name=self._name(enum.full_name), parameters=parameters, optional=True)

    def _message(self, field: FieldDescriptor, message: Descriptor) -> Schema:
        if message.full_name == names.DECIMAL_MESSAGE:
            return self._decimal(field)
        if message.full_name in _MESSAGES:
            return _MESSAGES[message.full_name]
        if self._config.wrapper_for_nullables and message.full_name in names.WRAPPERS:
            return names.WRAPPERS[message.full_name]
        return self._struct(message)

    def _decimal(self, field: FieldDescriptor) -> Schema:
        parameters = self._parameters(field)
        scale, precision = parameters.get("scale", "0"), parameters.get("precision", "")
        made = decimal(int(scale) if scale.lstrip("-").isdecimal() else 0)
        if not precision.isdecimal():
            return made
        return made.but(parameters={**made.parameters, names.CONNECT_PRECISION: precision})

    def _parameters(self, field: FieldDescriptor) -> Mapping[str, str]:
        """What `(confluent.field_meta)` tells about a field."""
        try:
            extension: Any = self._pool.FindExtensionByName("confluent.field_meta")
        except KeyError:
            return {}
        # The options are of a class that does not know the extension, which is one of this schema's own pool.
        options = GetMessageClass(extension.containing_type).FromString(field.GetOptions().SerializeToString())
        meta: Any = options.Extensions[extension]
        return dict(meta.params)

    def _name(self, full_name: str) -> str:
        return full_name if self._config.enhanced_protobuf_schema_support else full_name.rpartition(".")[2]
