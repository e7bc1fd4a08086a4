"""Record names of schemas, which are part of the subject name in some strategies."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from core_broker.schema_guard.framing import BadFraming, read_message_indexes

RecordName = Callable[[bytes], str]
"""Maps the bytes after a schema id to the name of the record; raises BadFraming if they are invalid."""

_NAMED_TYPES: Final = frozenset({"record", "error", "enum", "fixed"})


class NamelessSchema(ValueError):
    """A schema without a record name, or one that cannot be parsed."""


def avro_name(schema: str) -> str:
    """The full name of an Avro type; an unnamed type has the name of its kind, as in Java."""
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
            raise NamelessSchema("the JSON Schema has no title, which the subject name needs")


def _parse(schema: str) -> Any:
    try:
        return msgspec.json.decode(schema)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise NamelessSchema("the schema is not JSON") from error


def protobuf_names(serialized: str) -> RecordName:
    """The message names of a Protobuf file, from its descriptor in base64."""
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
                raise BadFraming(f"the Protobuf schema has no message with index {index} at this level")
            words.append(messages[index].name)
            messages = messages[index].nested_type
        return ".".join(words)

    return name_of
