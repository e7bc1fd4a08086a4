"""Print a descriptor as .proto text, in the layout of Confluent's registry."""

from collections.abc import Hashable, Iterator, Mapping, Sequence

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    MethodDescriptorProto,
    OneofDescriptorProto,
    ServiceDescriptorProto,
    SymbolVisibility,
)
from google.protobuf.descriptor_pool import DescriptorPool

from schema_registry.formats.protobuf_fields import FieldPrinter, Numbered, is_plain, local_name, oneof_members
from schema_registry.formats.protobuf_layout import block, indent, option_brackets
from schema_registry.formats.protobuf_options import NO_CHANGES, NO_OPTIONS, Change, OptionPrinter
from schema_registry.formats.protobuf_ranges import RangePrinter
from schema_registry.formats.protobuf_written import Path, Written


def print_file(
    file: FileDescriptorProto,
    pool: DescriptorPool,
    *,
    written: Written | None = None,
    unknown: Mapping[Path, Sequence[str]] = NO_OPTIONS,
    changes: Mapping[Path, Change] = NO_CHANGES,
    normalized: bool = False,
    ignore_extensions: bool = False,
) -> str:
    """The text of a file. With `written`, names and options are as in that text; otherwise names are full names.

    Undefined options are not in the descriptor: `unknown` has them by the paths of the option lists that they belong
    to. `changes` is keyed in the same way.
    """
    options = OptionPrinter(
        pool,
        written=written,
        unknown=unknown,
        changes=changes,
        normalized=normalized,
        ignore_extensions=ignore_extensions,
    )
    return _FilePrinter(file, options, written, normalized=normalized, ignore_extensions=ignore_extensions).text()


class _FilePrinter:
    def __init__(
        self,
        file: FileDescriptorProto,
        options: OptionPrinter,
        written: Written | None,
        *,
        normalized: bool,
        ignore_extensions: bool,
    ) -> None:
        self._file = file
        self._options = options
        self._written = written
        self._normalized = normalized
        self._ignore_extensions = ignore_extensions
        self._ranges = RangePrinter(file.syntax, options, written, normalized=normalized)
        self._fields = FieldPrinter(file, options, written, normalized=normalized)

    def text(self) -> str:
        file = self._file
        sections = [
            self._imports(),
            self._statements(self._options.options(file.options, (8,))),
            self._types(),
            [] if self._ignore_extensions else self._extends(file.extension, (7,), _Siblings(file.message_type)),
            [self._service(service, (6, index)) for index, service in enumerate(file.service)],
        ]
        syntax = self._syntax()
        head = f"{syntax};\n" if syntax else ""
        if file.package:
            head += f"package {file.package};\n"
        # An empty line comes before each section, even if there is no head.
        return head + "".join("\n" + "".join(section) for section in sections if section)

    def _syntax(self) -> str:
        syntax = self._file.syntax or "proto2"
        if syntax == "editions":
            return f'edition = "{Edition.Name(self._file.edition).removeprefix("EDITION_")}"'
        # proto2 is the default, which a text may leave out.
        has_syntax = self._written.has_syntax if self._written else self._file.HasField("syntax")
        if syntax == "proto2" and (self._normalized or not has_syntax):
            return ""
        return f'syntax = "{syntax}"'

    def _imports(self) -> list[str]:
        public, weak = set(self._file.public_dependency), set(self._file.weak_dependency)
        kinds: dict[str, list[str]] = {"": [], "weak ": [], "public ": []}
        for index, name in enumerate(self._file.dependency):
            kinds["public " if index in public else "weak " if index in weak else ""].append(name)
        kinds["option "] = list(self._file.option_dependency)
        if self._normalized:
            kinds = {kind: sorted(names) for kind, names in kinds.items()}
        return [f'import {kind}"{name}";\n' for kind, names in kinds.items() for name in names]

    def _types(self) -> list[str]:
        groups = {local_name(field) for field in self._file.extension if self._fields.is_group(field)}
        return [
            self._message(message, (4, index))
            for index, message in enumerate(self._file.message_type)
            if message.name not in groups
        ] + [self._enum(enum, (5, index)) for index, enum in enumerate(self._file.enum_type)]

    def _statements(self, options: Sequence[str]) -> list[str]:
        return [f"option {option};\n" for option in options]

    def _message(self, message: DescriptorProto, path: Path) -> str:
        return block(f"{_visibility(message)}message {message.name}", self._message_sections(message, path))

    def _message_sections(self, message: DescriptorProto, path: Path) -> list[list[str]]:
        nested = _NestedTypes(message, {local_name(field) for field in message.field if self._fields.is_group(field)})
        extensions = [] if self._ignore_extensions else self._ranges.extensions(message, path)
        return [
            self._ranges.reserved(message, path=path, numbers=9, names=10),
            self._statements(self._options.options(message.options, (*path, 7))),
            [
                text
                for index, field in self._sort(enumerate(message.field))
                if is_plain(message, field)
                for text in self._member(message, (index, field), path=path, nested=nested)
            ],
            self._oneofs(message, path, nested),
            extensions,
            [] if self._ignore_extensions else self._extends(message.extension, (*path, 6), nested.siblings),
            [self._message(message.nested_type[index], (*path, 3, index)) for index in nested.rest()]
            + [self._enum(enum, (*path, 4, index)) for index, enum in enumerate(message.enum_type)],
        ]

    def _member(
        self, message: DescriptorProto, numbered: Numbered, *, path: Path, nested: "_NestedTypes"
    ) -> Iterator[str]:
        index, field = numbered
        if nested.declares_type(field):
            for earlier in nested.take_due():
                yield self._message(message.nested_type[earlier], (*path, 3, earlier))
        yield self._field(field, (*path, 2, index), nested.siblings)

    def _field(self, field: FieldDescriptorProto, path: Path, siblings: "_Siblings") -> str:
        if not self._fields.is_group(field):
            return f"{self._fields.declaration(field, path)};\n"
        owner = path[:-2]
        index = siblings.indexes[local_name(field)]
        sections = self._message_sections(siblings.messages[index], (*owner, 3 if owner else 4, index))
        return block(self._fields.group_declaration(field, path), sections)

    def _oneofs(self, message: DescriptorProto, path: Path, nested: "_NestedTypes") -> list[str]:
        members = oneof_members(message)
        real = [
            (index, oneof, self._sort(iter(members[index])))
            for index, oneof in enumerate(message.oneof_decl)
            if index in members
        ]
        if self._normalized:
            real.sort(key=lambda entry: entry[2][0][1].number)
        return [
            self._oneof(
                oneof,
                (*path, 8, index),
                [text for member in members for text in self._member(message, member, path=path, nested=nested)],
            )
            for index, oneof, members in real
        ]

    def _oneof(self, oneof: OneofDescriptorProto, path: Path, members: list[str]) -> str:
        options = self._statements(self._options.options(oneof.options, (*path, 2)))
        return block(f"oneof {oneof.name}", [options, members])

    def _sort(self, fields: "Iterator[Numbered] | enumerate[FieldDescriptorProto]") -> list[Numbered]:
        return sorted(fields, key=lambda pair: pair[1].number) if self._normalized else list(fields)

    def _extends(self, extensions: Sequence[FieldDescriptorProto], path: Path, siblings: "_Siblings") -> list[str]:
        groups: dict[Hashable, tuple[str, list[Numbered]]] = {}
        for index, field in enumerate(extensions):
            extendee = self._fields.type_name(field.extendee, (*path, index, 2))
            statement = self._written.statement(path, index) if self._written else None
            groups.setdefault(statement or extendee, (extendee, []))[1].append((index, field))
        return [
            block(
                f"extend {extendee}",
                [[self._field(field, (*path, index), siblings) for index, field in self._sort(iter(fields))]],
            )
            for extendee, fields in groups.values()
        ]

    def _enum(self, enum: EnumDescriptorProto, path: Path) -> str:
        values = list(enumerate(enum.value))
        if self._normalized:
            # The first value stays: it is the default.
            values[1:] = sorted(values[1:], key=lambda pair: (pair[1].number, pair[1].name))
        body = [
            *self._ranges.reserved(enum, path=path, numbers=4, names=5),
            *self._statements(self._options.options(enum.options, (*path, 3))),
            *(
                f"{value.name} = {value.number}"
                f"{option_brackets(self._options.options(value.options, (*path, 2, index, 3)))};\n"
                for index, value in values
            ),
        ]
        return block(f"{_visibility(enum)}enum {enum.name}", [body])

    def _service(self, service: ServiceDescriptorProto, path: Path) -> str:
        options = self._statements(self._options.options(service.options, (*path, 3)))
        methods = [self._method(method, (*path, 2, index)) for index, method in enumerate(service.method)]
        return block(f"service {service.name}", [options, methods])

    def _method(self, method: MethodDescriptorProto, path: Path) -> str:
        request = ("stream " if method.client_streaming else "") + self._fields.type_name(method.input_type, (*path, 2))
        reply = ("stream " if method.server_streaming else "") + self._fields.type_name(method.output_type, (*path, 3))
        options = self._statements(self._options.options(method.options, (*path, 4)))
        body = " {\n" + indent("".join(options)) + "}" if options else ""
        return f"rpc {method.name} ({request}) returns ({reply}){body};\n"


class _Siblings:
    """Messages with the same parent, also by name."""

    def __init__(self, messages: Sequence[DescriptorProto]) -> None:
        self.messages = messages
        self.indexes = {message.name: index for index, message in enumerate(messages)}


class _NestedTypes:
    """Decides where nested messages are printed, so that their indexes, which records contain, stay the same.

    They are printed after the fields. But some fields declare a type themselves (a map its entry, a group its message),
    and these types count as well: a message that comes before such a type must be printed before the field.
    """

    def __init__(self, message: DescriptorProto, groups: set[str]) -> None:
        self.siblings = _Siblings(message.nested_type)
        entries = {nested.name for nested in message.nested_type if nested.options.map_entry}
        self._declared = {local_name(field) for field in message.field} & (groups | entries)
        self._early: list[list[int]] = []
        self._late: list[int] = []
        for index, nested in enumerate(message.nested_type):
            if nested.name in self._declared:
                self._early.append(self._late)
                self._late = []
            elif nested.name not in entries:
                self._late.append(index)
        self._early.reverse()

    def declares_type(self, field: FieldDescriptorProto) -> bool:
        """Whether the field itself declares a type."""
        return bool(field.type_name) and local_name(field) in self._declared

    def take_due(self) -> list[int]:
        """The messages to print before the next field that declares a type."""
        return self._early.pop() if self._early else []

    def rest(self) -> list[int]:
        """The messages to print after all fields."""
        return [index for early in reversed(self._early) for index in early] + self._late


_VISIBILITY_WORDS = {SymbolVisibility.VISIBILITY_LOCAL: "local ", SymbolVisibility.VISIBILITY_EXPORT: "export "}


def _visibility(owner: DescriptorProto | EnumDescriptorProto) -> str:
    """The visibility keyword of a type, since edition 2024."""
    return _VISIBILITY_WORDS.get(owner.visibility, "")
