"""Limits on the size of .proto files."""

import re

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto

from schema_registry.formats.schema import InvalidSchema, Limits

MAX_REFERENCES = 500
_CHARACTERS_PER_ELEMENT = 100
_SEMICOLONS_PER_ELEMENT = 1.2
_SEMICOLONS_BESIDES = 200
_MARKS_PER_ELEMENT = 3
"""Commas and colons, which separate the elements of options and of reserved ranges."""
_NO_CODE = re.compile(
    r"""//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'?"""
)
_NO_BRACE = re.compile(r"[^{}<>]+")


def check_text(text: str, limits: Limits) -> None:
    """Refuse a text that is obviously too large or nested too deeply, before protoc reads it."""
    if "\0" in text:
        raise InvalidSchema("the schema contains a NUL character")
    check_length(len(text), limits)
    code = _NO_CODE.sub(" ", text)
    # Every field and every value ends with a semicolon, but so do some statements that do not count as elements.
    if code.count(";") > _SEMICOLONS_PER_ELEMENT * limits.max_elements + _SEMICOLONS_BESIDES:
        raise _too_many(limits)
    if code.count(",") + code.count(":") > _MARKS_PER_ELEMENT * limits.max_elements + _SEMICOLONS_BESIDES:
        raise InvalidSchema("the schema has too many options and reserved numbers")
    depth = 0
    for brace in _NO_BRACE.sub("", code):
        depth += 1 if brace in "{<" else -1
        if depth > limits.max_depth:
            raise InvalidSchema(f"the schema is nested deeper than {limits.max_depth} levels")


def check_length(characters: int, limits: Limits) -> None:
    """Refuse texts that are longer than the maximum number of elements could need."""
    allowed = limits.max_elements * _CHARACTERS_PER_ELEMENT
    if characters > allowed:
        raise InvalidSchema(f"the schema is longer than {allowed} characters")


def check_file(file: FileDescriptorProto, limits: Limits) -> None:
    """Refuse a file with too many messages, fields and values."""
    count = len(file.extension) + sum(map(_values, file.enum_type))
    count += sum(1 + len(service.method) for service in file.service)
    pending = [(message, 1) for message in file.message_type]
    while pending:
        message, depth = pending.pop()
        count += _elements(message)
        if depth > limits.max_depth:
            raise InvalidSchema(f"the schema is nested deeper than {limits.max_depth} levels")
        pending.extend((nested, depth + 1) for nested in message.nested_type)
    if count > limits.max_elements:
        raise _too_many(limits)


def _elements(message: DescriptorProto) -> int:
    own = 1 + len(message.field) + len(message.extension) + len(message.extension_range)
    reserved = len(message.reserved_range) + len(message.reserved_name)
    return own + reserved + sum(map(_values, message.enum_type))


def _values(enum: EnumDescriptorProto) -> int:
    return 1 + len(enum.value) + len(enum.reserved_range) + len(enum.reserved_name)


def _too_many(limits: Limits) -> InvalidSchema:
    return InvalidSchema(f"the schema has more than {limits.max_elements} messages, fields and values")
