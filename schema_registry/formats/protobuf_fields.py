"""Print fields as .proto text: label, type, name, number, options."""

from collections.abc import Iterator, Sequence

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from schema_registry.formats.protobuf_layout import option_brackets
from schema_registry.formats.protobuf_options import OptionPrinter, quote
from schema_registry.formats.protobuf_written import Path, Written

Numbered = tuple[int, FieldDescriptorProto]
"""A field and its index among its siblings."""

_TYPE_NAMES = {number: name.removeprefix("TYPE_").lower() for name, number in FieldDescriptorProto.Type.items()}
_LABEL_NAMES = {number: name.removeprefix("LABEL_").lower() for name, number in FieldDescriptorProto.Label.items()}


class FieldPrinter:
    """Prints the fields of one file."""

    def __init__(
        self, file: FileDescriptorProto, options: OptionPrinter, written: Written | None, *, normalized: bool
    ) -> None:
        self._syntax = file.syntax or "proto2"
        self._options = options
        self._written = written
        self._normalized = normalized
        prefix = f".{file.package}" if file.package else ""
        self._map_entries = dict(map_entries(file.message_type, prefix))

    def declaration(self, field: FieldDescriptorProto, path: Path) -> str:
        """The field without its semicolon."""
        entry = self._map_entries.get(field.type_name)
        kind = self._map_type(entry, path) if entry else self._label(field) + self._type(field, path)
        return f"{kind} {field.name} = {field.number}{option_brackets(self._field_options(field, path))}"

    def group_declaration(self, field: FieldDescriptorProto, path: Path) -> str:
        """A group without its body."""
        options = option_brackets(self._field_options(field, path))
        return f"{self._label(field)}group {local_name(field)} = {field.number}{options}"

    def is_group(self, field: FieldDescriptorProto) -> bool:
        """Whether the field is a group, which declares its own message."""
        return field.type == FieldDescriptorProto.TYPE_GROUP and self._syntax != "editions"

    def type_name(self, full_name: str, path: Path) -> str:
        """The type's name as the client wrote it, or else the full name."""
        as_written = self._written.type_name(path) if self._written else None
        return as_written if as_written and is_name_of(as_written, full_name) else full_name

    def _type(self, field: FieldDescriptorProto, path: Path) -> str:
        if field.type_name:
            return self.type_name(field.type_name, (*path, 6))
        return _TYPE_NAMES[field.type]

    def _map_type(self, entry: DescriptorProto, path: Path) -> str:
        key, value = (next(field for field in entry.field if field.number == number) for number in (1, 2))
        as_written = self._written.map_value((*path, 6)) if self._written else None
        full_name = value.type_name or _TYPE_NAMES[value.type]
        name = as_written if as_written and is_name_of(as_written, full_name) else full_name
        return f"map<{_TYPE_NAMES[key.type]}, {name}>"

    def _label(self, field: FieldDescriptorProto) -> str:
        label = explicit_label(field, self._syntax)
        return f"{label} " if label else ""

    def _field_options(self, field: FieldDescriptorProto, path: Path) -> list[str]:
        options = self._options.options(field.options, (*path, 8))
        if field.HasField("default_value"):
            options.append(f"default = {_default(field)}")
        if field.HasField("json_name") and field.json_name != default_json_name(field.name):
            options.append(f"json_name = {quote(field.json_name)}")
        if self._normalized:
            options.sort(key=lambda option: option.partition(" = ")[0].strip("()"))
        return options


def explicit_label(field: FieldDescriptorProto, syntax: str) -> str | None:
    """The label of a field in the text: required in proto2, otherwise only where it has a meaning."""
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return "repeated"
    if field.proto3_optional:
        return "optional"
    if syntax != "proto2" or field.HasField("oneof_index"):
        return None
    return _LABEL_NAMES[field.label]


def default_json_name(name: str) -> str:
    """The JSON name of a field that has none of its own."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def is_plain(message: DescriptorProto, field: FieldDescriptorProto) -> bool:
    """Whether the field is outside every oneof of the text."""
    return not field.HasField("oneof_index") or field.proto3_optional or field.oneof_index >= len(message.oneof_decl)


def oneof_members(message: DescriptorProto) -> dict[int, list[Numbered]]:
    """The fields of each oneof, by its index."""
    members: dict[int, list[Numbered]] = {}
    for index, field in enumerate(message.field):
        if not is_plain(message, field):
            members.setdefault(field.oneof_index, []).append((index, field))
    return members


def is_name_of(name: str, full_name: str) -> bool:
    """Whether a name can be short for the full name."""
    return f".{full_name}".endswith(f".{name.removeprefix('.')}")


def local_name(field: FieldDescriptorProto) -> str:
    """The last part of the name of the field's type."""
    return field.type_name.rpartition(".")[2]


def map_entries(messages: Sequence[DescriptorProto], prefix: str) -> Iterator[tuple[str, DescriptorProto]]:
    """The entry types of map fields, by full name with a leading dot."""
    for message in messages:
        name = f"{prefix}.{message.name}"
        if message.options.map_entry:
            yield name, message
        yield from map_entries(message.nested_type, name)


def _default(field: FieldDescriptorProto) -> str:
    if field.type == FieldDescriptorProto.TYPE_STRING:
        return quote(field.default_value)
    # protoc returns bytes already escaped.
    return f'"{field.default_value}"' if field.type == FieldDescriptorProto.TYPE_BYTES else field.default_value
