"""What a schema calls the records that are written with it: the second half of some subjects' names."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from core_broker.schema_guard.framing import BadFraming, read_message_indexes

RecordName = Callable[[bytes], str]
"""From the bytes after a schema id to the name of the record; raises BadFraming when they lead to no message."""

_NAMED_TYPES: Final = frozenset({"record", "error", "enum", "fixed"})


class NamelessSchema(ValueError):
    """A schema that gives its records no name, or that cannot be read."""


def avro_name(schema: str) -> str:
    """The full name of an Avro type; a type that has no name of its own goes by its kind, as in Java."""
    parsed = _parse(schema)
    match parsed:
        case str(name):
            return name
        case list():
            return "union"
        case {"type": str(kind), "name": str(name), **rest} if kind in _NAMED_TYPES:
            namespace = rest.get("namespace")
            return name if "." in name or not isinstance(namespace, str) or not namespace else f"{namespace}.{name}"
        case {"type": str(kind)}:
            return kind
        case _:
            raise NamelessSchema("the Avro schema has no type")


def json_schema_name(schema: str) -> str:
    """The title of a JSON Schema."""
    match _parse(schema):
        case {"title": str(title)} if title:
            return title
        case _:
            raise NamelessSchema("the JSON Schema has no title to name its subject after")


def _parse(schema: str) -> Any:
    try:
        return msgspec.json.decode(schema)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise NamelessSchema("the schema is not JSON") from error


def protobuf_names(serialized: str) -> RecordName:
    """The names of a Protobuf file's messages, from its descriptor in base64."""
    from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
    from google.protobuf.message import DecodeError

    try:
        file = FileDescriptorProto.FromString(base64.b64decode(serialized, validate=True))
    except (binascii.Error, DecodeError, ValueError) as error:
        raise NamelessSchema("the descriptor of the Protobuf schema cannot be read") from error

    def name_of(tail: bytes) -> str:
        words = [file.package] if file.package else []
        messages: Sequence[DescriptorProto] = file.message_type
        for index in read_message_indexes(tail):
            if not 0 <= index < len(messages):
                raise BadFraming(f"the Protobuf schema has no message {index} on that level")
            words.append(messages[index].name)
            messages = messages[index].nested_type
        return ".".join(words)

    return name_of
