"""Print the options of .proto elements, including custom ones."""

import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from schema_registry.formats.protobuf_layout import join_lines
from schema_registry.formats.protobuf_option_text import UnknownSyntax, lay_out
from schema_registry.formats.protobuf_written import Path, Written

_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_ESCAPES |= {character: f"\\{character}" for character in "\\'\""}
_ESCAPES |= {chr(code): f"\\{code:03o}" for code in (*range(0x20), 0x7F) if chr(code) not in _ESCAPES}
_STRING_ESCAPES = str.maketrans(_ESCAPES)
_BYTES_ESCAPES = str.maketrans(_ESCAPES | {chr(code): f"\\{code:03o}" for code in range(0x80, 0x100)})
_SYNTHETIC = frozenset({"map_entry", "uninterpreted_option"})
NO_OPTIONS: Mapping[Path, Sequence[str]] = MappingProxyType({})
Change = Callable[[list[str]], list[str]]
"""Returns the new options of an element, given its present ones."""
NO_CHANGES: Mapping[Path, Change] = MappingProxyType({})
_FLOATS = frozenset({FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE})


class OptionPrinter:
    """Prints the options of one file; options that its imports do not define are left out."""

    def __init__(
        self,
        pool: DescriptorPool,
        *,
        written: Written | None = None,
        unknown: Mapping[Path, Sequence[str]] = NO_OPTIONS,
        changes: Mapping[Path, Change] = NO_CHANGES,
        normalized: bool = False,
        ignore_extensions: bool = False,
    ) -> None:
        self._pool = pool
        self._written = written
        self._unknown = unknown
        self._changes = changes
        self._normalized = normalized
        self._ignore_extensions = ignore_extensions

    def options(self, options: Message, path: Path) -> list[str]:
        """Each option that is set, as `name = value`; message values span several lines."""
        texts: list[str] = []
        if options.ByteSize() or path in self._unknown:
            texts = self._from_text(path) or self._from_descriptor(options, path)
        change = self._changes.get(path)
        return change(texts) if change is not None else texts

    def _from_text(self, path: Path) -> list[str]:
        try:
            return [lay_out(text) for text in self._written.options(path)] if self._written else []
        except UnknownSyntax:
            return []

    def _from_descriptor(self, options: Message, path: Path) -> list[str]:
        named = [
            (field.full_name if field.is_extension else field.name, text)
            for field, value in self._with_extensions(options).ListFields()
            if field.name not in _SYNTHETIC
            and not (self._ignore_extensions and field.is_extension and not field.full_name.startswith("confluent."))
            for text in self._assignments(field, value)
        ]
        named += [
            (text.partition(")")[0].lstrip("(."), text)
            for text in self._unknown.get(path, ())
            if not self._ignore_extensions or text.startswith("(confluent.")
        ]
        if self._normalized:
            named.sort(key=lambda pair: pair[0])
        return [text for _, text in named]

    def _with_extensions(self, options: Message) -> Message:
        """The same options as a message of the file's own pool, which has the extensions that it imports."""
        try:
            descriptor = self._pool.FindMessageTypeByName(options.DESCRIPTOR.full_name)
        except KeyError:
            return options
        return GetMessageClass(descriptor).FromString(options.SerializeToString())

    def _assignments(self, field: FieldDescriptor, value: Any) -> Iterator[str]:
        name = f"({field.full_name})" if field.is_extension else field.name
        if field.name == "features" and not field.is_extension:
            yield from self._features(name, value)
        elif field.is_repeated:
            for element in value:
                yield f"{name} = {self._value(field, element)}"
        else:
            yield f"{name} = {self._value(field, value)}"

    def _features(self, prefix: str, features: Message) -> Iterator[str]:
        for field, value in features.ListFields():
            name = f"{prefix}.({field.full_name})" if field.is_extension else f"{prefix}.{field.name}"
            if field.message_type is not None:
                yield from self._features(name, value)
            else:
                yield f"{name} = {self._value(field, value)}"

    def _value(self, field: FieldDescriptor, value: Any) -> str:
        if field.message_type is not None:
            return "{\n" + self._entries(value) + "}"
        if field.enum_type is not None:
            named = field.enum_type.values_by_number.get(value)
            return named.name if named else str(value)
        return scalar(field, value)

    def _entries(self, message: Message) -> str:
        fields = message.ListFields()
        if self._normalized:
            fields = sorted(fields, key=lambda pair: _key(pair[0]))
        return join_lines([f"{_key(field)}: {self._field_value(field, value)}" for field, value in fields])

    def _field_value(self, field: FieldDescriptor, value: Any) -> str:
        if not field.is_repeated:
            return self._value(field, value)
        elements = self._elements(field, value)
        if self._normalized and len(elements) == 1:
            return elements[0]
        return "[\n" + join_lines(elements) + "]"

    def _elements(self, field: FieldDescriptor, values: Any) -> list[str]:
        entry = field.message_type
        if entry is None or not entry.GetOptions().map_entry:
            return [self._value(field, value) for value in values]
        # The order of a map's entries means nothing, and the library does not keep it.
        pairs: Mapping[Any, Any] = values
        key_field, value_field = entry.fields_by_name["key"], entry.fields_by_name["value"]
        return [
            "{\n"
            + join_lines([f"key: {scalar(key_field, key)}", f"value: {self._value(value_field, pairs[key])}"])
            + "}"
            for key in sorted(pairs)
        ]


def scalar(field: FieldDescriptor, value: Any) -> str:
    """A scalar value, which is neither a message nor an enum value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bytes):
        return f'"{value.decode("latin-1").translate(_BYTES_ESCAPES)}"'
    if field.type in _FLOATS:
        return _number(value, is_single=field.type == FieldDescriptor.TYPE_FLOAT)
    return str(value)


def quote(text: str) -> str:
    """The text as a string literal."""
    return f'"{text.translate(_STRING_ESCAPES)}"'


def _key(field: FieldDescriptor) -> str:
    return f"[{field.full_name}]" if field.is_extension else field.name


def _number(value: float, *, is_single: bool) -> str:
    if math.isnan(value) or math.isinf(value):
        return str(value)
    if value == int(value) and abs(value) < 1e15 and str(value) != "-0.0":
        return str(int(value))
    # The shortest text that is read back as the same number.
    texts = (f"{value:.{digits}g}" for digits in range(6, 10) if is_single)
    return next((text for text in texts if struct.unpack("f", struct.pack("f", float(text)))[0] == value), repr(value))
