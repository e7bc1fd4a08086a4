"""The elements of a compiled .proto file: messages, fields by number, oneofs, enums, services."""

from collections.abc import Iterator

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)

from deploy.schema_diff import Element

_REPEATED = FieldDescriptorProto.LABEL_REPEATED
_REQUIRED = FieldDescriptorProto.LABEL_REQUIRED


def file_elements(file: FileDescriptorProto) -> Iterator[tuple[str, Element]]:
    """Everything in a file, by what makes it the same in another version: a field is its number, not its name."""
    yield "", Element(kind="package", name="package", shown=file.package or "(none)", path="#/package")
    for name in file.dependency:
        yield name, Element(kind="import", name=name, shown="", path="#/import")
    for message in file.message_type:
        yield from _message(message, prefix="", path="#")
    for enum in file.enum_type:
        yield from _enum(enum, prefix="", path="#")
    for service in file.service:
        yield from _service(service)


def _message(message: DescriptorProto, *, prefix: str, path: str) -> Iterator[tuple[str, Element]]:
    name, path = f"{prefix}{message.name}", f"{path}/{message.name}"
    yield name, Element(kind="message", name=name, shown="", path=path)
    entries = {entry.name: entry for entry in message.nested_type if entry.options.map_entry}
    for field in message.field:
        oneof = ""
        if field.HasField("oneof_index") and not field.proto3_optional:
            oneof = f" in oneof {message.oneof_decl[field.oneof_index].name}"
        shown = f"{_type(field, entries)} = {field.number}{oneof}"
        key, full = f"{name}.{field.number}", f"{name}.{field.name}"
        yield key, Element(kind="field", name=full, shown=shown, path=f"{path}/{field.number}")
    for nested in message.nested_type:
        if not nested.options.map_entry:
            yield from _message(nested, prefix=f"{name}.", path=path)
    for enum in message.enum_type:
        yield from _enum(enum, prefix=f"{name}.", path=path)


def _type(field: FieldDescriptorProto, entries: dict[str, DescriptorProto]) -> str:
    entry = entries.get(field.type_name.rpartition(".")[2])
    if entry is not None and field.label == _REPEATED:
        key, value = entry.field
        return f"map<{_type(key, {})}, {_type(value, {})}>"
    scalar = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    shown = field.type_name.removeprefix(".") or scalar
    label = {_REPEATED: "repeated ", _REQUIRED: "required "}.get(field.label, "")
    if field.proto3_optional:
        label = "optional "
    return label + shown


def _enum(enum: EnumDescriptorProto, *, prefix: str, path: str) -> Iterator[tuple[str, Element]]:
    name, path = f"{prefix}{enum.name}", f"{path}/{enum.name}"
    yield name, Element(kind="enum", name=name, shown="", path=path)
    for value in enum.value:
        full = f"{name}.{value.name}"
        yield full, Element(kind="value", name=full, shown=str(value.number), path=f"{path}/{value.number}")


def _service(service: ServiceDescriptorProto) -> Iterator[tuple[str, Element]]:
    for method in service.method:
        name = f"{service.name}.{method.name}"
        streams = ("stream " if method.client_streaming else "", "stream " if method.server_streaming else "")
        types = (method.input_type.removeprefix("."), method.output_type.removeprefix("."))
        shown = f"({streams[0]}{types[0]}) → ({streams[1]}{types[1]})"
        yield name, Element(kind="method", name=name, shown=shown, path=f"#/{name}")
