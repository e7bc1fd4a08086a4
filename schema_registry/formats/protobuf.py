"""Protobuf schemas: .proto text, or a FileDescriptorProto in base64, compiled by protoc."""

import base64
import binascii
import re
import time
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import count

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from schema_registry.formats import protobuf_limits, protobuf_unknown
from schema_registry.formats.protobuf_builtin import is_builtin
from schema_registry.formats.protobuf_compiler import CompileError, compile_text
from schema_registry.formats.protobuf_fields import default_json_name
from schema_registry.formats.protobuf_option_text import UnknownSyntax, lay_out
from schema_registry.formats.protobuf_options import Change, quote
from schema_registry.formats.protobuf_text import print_file
from schema_registry.formats.protobuf_unknown import Span
from schema_registry.formats.protobuf_written import Path, Written, offsets_of, positions_of
from schema_registry.formats.schema import (
    DEFAULT_LIMITS,
    InvalidSchema,
    Limits,
    References,
    ResolvedReference,
    SchemaType,
)

FILE_NAME = "default"
"""The file name of a schema that Confluent's clients expect."""
_CACHED_SCHEMAS = 512
_CACHED_CHARACTERS = 32_768
"""Longer texts, references included, have a small cache of their own."""
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*", re.ASCII)
_EXPLICIT_MAP_ENTRY = re.compile(r"\boption\s+map_entry\s*=\s*true\s*;", re.ASCII)
_RETRY_SECONDS = 1.0
"""How long to call protoc again while it reports more undefined options."""
_RETRIES_MIN = 20
"""How often to call it again however slow this machine is: far more options than people give one element."""
_MAP_ENTRY_ERROR = "map_entry should not be set explicitly"


class ProtobufSchema:
    """One compiled .proto file with everything that it imports."""

    schema_type = SchemaType.PROTOBUF

    def __init__(
        self,
        file: FileDescriptorProto,
        *,
        dependencies: Sequence[FileDescriptorProto],
        references: References,
        written: Written | None = None,
    ) -> None:
        self.descriptor = file
        """The file, with the name that Confluent's clients expect, without positions and comments."""
        self.dependencies = tuple(dependencies)
        """All imported files, including bundled ones, each before the files that import it."""
        self.references = tuple(references)
        self._unknown = _lay_out_unknown(written) if written is not None else {}
        self.canonical = print_file(file, self.pool, written=written, unknown=self._unknown)
        """The text in Confluent's layout: names and order as the client wrote them, without comments."""

    @cached_property
    def normalized(self) -> str:
        """The text with full names and everything sorted, except messages: records depend on their order."""
        return print_file(self.descriptor, self.pool, unknown=self._unknown, normalized=True)

    @property
    def meaning(self) -> str:
        """The text in normal form; imports are not inline."""
        return self.normalized

    @property
    def name(self) -> str | None:
        """The full name of the first message."""
        return self._full_name(self.descriptor.message_type[0].name) if self.descriptor.message_type else None

    @property
    def field_names(self) -> tuple[str, ...]:
        """The fields of the first message."""
        messages = self.descriptor.message_type
        return tuple(field.name for field in messages[0].field) if messages else ()

    def format(self, style: str) -> str:
        """`serialized`: base64 of the FileDescriptorProto; `ignore_extensions`: without custom options."""
        if style == "serialized":
            return base64.b64encode(self.descriptor.SerializeToString(deterministic=True)).decode()
        if style == "ignore_extensions":
            return print_file(self.descriptor, self.pool, unknown=self._unknown, ignore_extensions=True)
        return self.canonical

    @property
    def descriptor_set(self) -> FileDescriptorSet:
        """The file after everything that it imports."""
        return FileDescriptorSet(file=[*self.dependencies, self.descriptor])

    @cached_property
    def pool(self) -> DescriptorPool:
        """The schema's own pool, so that a process can have several versions of a message."""
        return _make_pool([*self.dependencies, self.descriptor])

    def message_class(self, full_name: str) -> type[Message]:
        """The class of a message; every call returns the same one."""
        try:
            return GetMessageClass(self.pool.FindMessageTypeByName(full_name))
        except KeyError:
            raise InvalidSchema(f"the schema has no message {full_name}") from None

    def message_at(self, indexes: Sequence[int]) -> Descriptor:
        """The message at a record's message indexes; no indexes mean the first message.

        Most clients count the entry types of maps; Java's client does not for schemas that it got as text. No record
        is ever a map entry, so indexes that lead to one, or to nothing, are read the second way.
        """
        path = list(indexes) or [0]
        name = self._name_at(path, counts_entries=True) or self._name_at(path, counts_entries=False)
        if name is None:
            raise InvalidSchema(f"the schema has no message at index {'/'.join(map(str, path))}")
        descriptor: Descriptor = self.pool.FindMessageTypeByName(self._full_name(name))
        return descriptor

    def indexes_of(self, full_name: str) -> tuple[int, ...]:
        """The message indexes of a message in this file, from the outermost message inwards."""
        package = f"{self.descriptor.package}." if self.descriptor.package else ""
        messages: Sequence[DescriptorProto] = self.descriptor.message_type
        indexes = []
        for part in full_name.removeprefix(package).split("."):
            index = next((index for index, message in enumerate(messages) if message.name == part), None)
            if index is None or not full_name.startswith(package):
                raise InvalidSchema(f"the schema has no message {full_name}")
            indexes.append(index)
            messages = messages[index].nested_type
        return tuple(indexes)

    def _full_name(self, name: str) -> str:
        return f"{self.descriptor.package}.{name}" if self.descriptor.package else name

    def _name_at(self, indexes: Sequence[int], *, counts_entries: bool) -> str | None:
        messages: Sequence[DescriptorProto] = self.descriptor.message_type
        names = []
        for index in indexes:
            counted = [message for message in messages if counts_entries or not message.options.map_entry]
            if not 0 <= index < len(counted) or counted[index].options.map_entry:
                return None
            names.append(counted[index].name)
            messages = counted[index].nested_type
        return ".".join(names)


def parse(
    text: str, references: References = (), *, limits: Limits = DEFAULT_LIMITS, strict: bool = True
) -> ProtobufSchema:
    """Compile a schema; raises InvalidSchema with protoc's errors.

    Results are shared between callers. `strict` changes nothing: protoc has no lenient mode.
    """
    del strict
    size = len(text) + sum(len(reference.text) for reference in references)
    cached = _parse_short if size <= _CACHED_CHARACTERS else _parse_long
    return cached(text.removeprefix("\ufeff"), tuple(references), limits)


def is_serialized(text: str) -> bool:
    """Whether a schema is a descriptor in base64, as Confluent's clients send it, instead of text."""
    return _parse_serialized(text) is not None


def with_options(schema: ProtobufSchema, changes: Mapping[Path, Change]) -> str:
    """The text of a schema with changed options, by the paths of the option lists."""
    known = _compile_references(schema.references, DEFAULT_LIMITS)
    compiled = _compile_any(schema.canonical, known=known, limits=DEFAULT_LIMITS)
    unknown = _lay_out_unknown(compiled.written)
    return print_file(compiled.file, schema.pool, written=compiled.written, unknown=unknown, changes=changes)


def _parse(text: str, references: tuple[ResolvedReference, ...], limits: Limits) -> ProtobufSchema:
    if not text.strip():
        raise InvalidSchema("the schema is empty")
    if len(references) > protobuf_limits.MAX_REFERENCES:
        raise InvalidSchema(f"the schema has more than {protobuf_limits.MAX_REFERENCES} references")
    protobuf_limits.check_length(sum(len(reference.text) for reference in references), limits)
    compiled = _compile_any(text, known=_compile_references(references, limits), limits=limits)
    return ProtobufSchema(
        compiled.file, dependencies=compiled.dependencies, references=references, written=compiled.written
    )


_parse_short = lru_cache(maxsize=_CACHED_SCHEMAS)(_parse)
_parse_long = lru_cache(maxsize=8)(_parse)


def _lay_out_unknown(written: Written) -> dict[Path, list[str]]:
    return {path: [lay_out(text) for text in texts] for path, texts in written.unknown_options.items()}


class _Compiled:
    """The result of compiling one text."""

    def __init__(self, text: str, files: FileDescriptorSet, unknown: Sequence[Span] = ()) -> None:
        *self.dependencies, self.file = files.file
        self.written = Written(text, self.file.source_code_info, unknown)
        self.file.ClearField("source_code_info")
        for dependency in self.dependencies:
            dependency.ClearField("source_code_info")
        for message in self.file.message_type:
            _drop_json_names(message)
        for field in self.file.extension:
            field.ClearField("json_name")


class _Known:
    """Compiled references. Equal if the references are equal, so that it can be a key of caches."""

    def __init__(self, references: tuple[ResolvedReference, ...], files: Sequence[FileDescriptorProto]) -> None:
        self.references = references
        self.files = FileDescriptorSet(file=files)
        names = {file.name for file in files}
        self.own_name = FILE_NAME
        while self.own_name in names:
            self.own_name += "_"

    def __hash__(self) -> int:
        return hash(self.references)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and self.references == other.references


def _compile_references(references: Sequence[ResolvedReference], limits: Limits) -> _Known:
    files: dict[str, FileDescriptorProto] = {}
    for index, reference in enumerate(references):
        if reference.name not in files and not is_builtin(reference.name):
            known = _Known(tuple(references[:index]), list(files.values()))
            files[reference.name] = _compile_reference(reference, known, limits)
    return _Known(tuple(references), list(files.values()))


@lru_cache(maxsize=_CACHED_SCHEMAS)
def _compile_reference(reference: ResolvedReference, known: _Known, limits: Limits) -> FileDescriptorProto:
    try:
        file = _compile_any(reference.text, known=known, limits=limits).file
    except InvalidSchema as error:
        raise InvalidSchema(f"{reference.name}: {error}") from None
    file.name = reference.name
    return file


def _compile_any(text: str, *, known: _Known, limits: Limits) -> _Compiled:
    """Compile .proto text or a serialized descriptor."""
    serialized = _parse_serialized(text)
    if serialized is not None:
        text = _print_serialized(serialized, known=known, limits=limits)
    return _compile(text, known=known, limits=limits)


def _compile(text: str, *, known: _Known, limits: Limits) -> _Compiled:
    protobuf_limits.check_text(text, limits)
    try:
        files, unknown = _run_protoc(text, known=known)
    except InvalidSchema as error:
        if _MAP_ENTRY_ERROR not in str(error):
            raise
        return _compile(_restore_maps(text, known=known), known=known, limits=limits)
    protobuf_limits.check_file(files.file[-1], limits)
    return _Compiled(text, _with_option_imports(files, known), unknown)


def _run_protoc(text: str, *, known: _Known) -> tuple[FileDescriptorSet, list[Span]]:
    """The descriptors of a text, and the undefined options in it, which were hidden from protoc."""
    seen = text
    unknown: list[Span] = []
    deadline = time.monotonic() + _RETRY_SECONDS
    for run in count():
        if run > _RETRIES_MIN and time.monotonic() > deadline:
            break
        try:
            return compile_text(seen, name=known.own_name, dependencies=known.files), unknown
        except CompileError as error:
            # protoc reports only one undefined option of each element, so several runs may be needed.
            more = _find_unknown_options(text, error)
            if set(more) <= set(unknown):
                raise
            unknown = sorted({*unknown, *more})
            seen = protobuf_unknown.blank_out(text, unknown)
    raise InvalidSchema("the schema has too many undefined options")


def _find_unknown_options(text: str, error: CompileError) -> list[Span]:
    found = protobuf_unknown.find_spans(text, offsets_of(text, protobuf_unknown.positions_in(error.errors)))
    try:
        for begin, end in found:
            lay_out(text[begin:end])
    except UnknownSyntax:
        raise error from None
    return found


def _with_option_imports(files: FileDescriptorSet, known: _Known) -> FileDescriptorSet:
    """Add the files that are imported only for their options (edition 2024), which protoc leaves out."""
    *dependencies, file = files.file
    if not file.option_dependency:
        return files
    present = {dependency.name for dependency in dependencies}
    imported = _compile_imports(file.option_dependency, known)
    missing = [dependency for dependency in imported if dependency.name not in present]
    return FileDescriptorSet(file=[*dependencies, *missing, file])


def _compile_imports(names: Sequence[str], known: _Known) -> list[FileDescriptorProto]:
    """These files and everything that they import."""
    imports = "".join(f"import {quote(name)};" for name in names)
    files = compile_text(f'syntax = "proto3";{imports}', name=known.own_name, dependencies=known.files)
    return list(files.file[:-1])


def _restore_maps(text: str, *, known: _Known) -> str:
    """Put maps back into a text in which their entry types are explicit, as Java's client prints it."""
    positions = positions_of(text, [match.start() for match in _EXPLICIT_MAP_ENTRY.finditer(text)])
    plain = _EXPLICIT_MAP_ENTRY.sub(lambda match: re.sub(r"\S", " ", match[0]), text)
    compiled = _Compiled(plain, compile_text(plain, name=known.own_name, dependencies=known.files))
    for path in compiled.written.messages_at(positions):
        message = compiled.file.message_type[path[1]]
        for index in path[3::2]:
            message = message.nested_type[index]
        message.options.map_entry = True
    return print_file(compiled.file, _make_pool([*compiled.dependencies, compiled.file]))


def _parse_serialized(text: str) -> FileDescriptorProto | None:
    """The descriptor, if the text is one in base64."""
    if not _BASE64.fullmatch(text):
        return None
    try:
        file = FileDescriptorProto.FromString(base64.b64decode(text))
    except (binascii.Error, DecodeError):
        return None
    return file if file.ByteSize() else None


def _print_serialized(file: FileDescriptorProto, *, known: _Known, limits: Limits) -> str:
    """The text of a descriptor that a client sent; protoc then checks it like any other text."""
    protobuf_limits.check_file(file, limits)
    dependencies = _compile_imports([*file.dependency, *file.option_dependency], known)
    file.name = known.own_name
    file.ClearField("source_code_info")
    try:
        return print_file(file, _make_pool([*dependencies, file]))
    except (KeyError, StopIteration) as error:
        raise InvalidSchema(f"not a valid file descriptor: {error}") from None


def _make_pool(files: Sequence[FileDescriptorProto]) -> DescriptorPool:
    pool = DescriptorPool()
    try:
        for file in files:
            pool.AddSerializedFile(file.SerializeToString())
    except TypeError as error:
        raise InvalidSchema(f"not a valid file descriptor: {error}") from None
    return pool


def _drop_json_names(message: DescriptorProto) -> None:
    """Remove the JSON names that are the default ones."""
    for field in message.field:
        if field.json_name == default_json_name(field.name):
            field.ClearField("json_name")
    for field in message.extension:
        field.ClearField("json_name")
    for nested in message.nested_type:
        _drop_json_names(nested)
