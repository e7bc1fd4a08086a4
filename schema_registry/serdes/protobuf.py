"""Protobuf data by one message of one schema.

Confluent's serializers need a generated class, and its deserializer returns only that class, whatever the data names.
Here the classes come from the schema, of any message in it; messages of generated classes are written as well. To
register the files behind a generated class, Confluent's ProtobufSerializer is the tool.
"""

from collections.abc import Mapping

from google.protobuf import json_format
from google.protobuf.message import DecodeError, EncodeError, Message

from schema_registry.formats.protobuf import ProtobufSchema
from schema_registry.formats.schema import InvalidSchema
from schema_registry.serdes.codec import JsonView, Value
from schema_registry.serdes.errors import InvalidData, UnusableSchema

_FAULTS = (
    ArithmeticError,
    AttributeError,
    DecodeError,
    EncodeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    json_format.Error,
)


class ProtobufCodec:
    """Reads and writes one message of a schema, the first one unless another is named.

    The JSON view is Protobuf's own mapping, as in Confluent's REST proxy: names in camel case, and the defaults of
    fields without presence that are not set.
    """

    def __init__(self, schema: ProtobufSchema, *, message: str | None = None) -> None:
        name = message or schema.name
        if name is None:
            raise UnusableSchema("the Protobuf schema has no message")
        try:
            self.message_class: type[Message] = schema.message_class(name)
            """The class of the messages that `decode` returns."""
            self.message_indexes = schema.indexes_of(name)
        except InvalidSchema as error:
            raise UnusableSchema(str(error)) from error
        self._name = name
        self._is_well_known = name.startswith("google.protobuf.")  # some of these are not objects in JSON
        self._pool = schema.pool

    def encode(self, value: Value) -> bytes:
        """The bytes of a message, of this or a generated class, or of a mapping as JSON would have it."""
        if not isinstance(value, Message):
            return self.encode_json(value)
        if value.DESCRIPTOR.full_name != self._name:
            raise InvalidData(f"expected a message {self._name}, not {value.DESCRIPTOR.full_name}")
        try:
            return value.SerializeToString()
        except _FAULTS as error:
            raise InvalidData(f"the message {self._name} cannot be written: {error}") from error

    def decode(self, data: bytes, start: int = 0) -> Value:
        """The message of bytes."""
        try:
            return self.message_class.FromString(data[start:] if start else data)
        except _FAULTS as error:
            raise InvalidData(f"the data is not a message {self._name}: {error}") from error

    def encode_json(self, view: JsonView) -> bytes:
        """The bytes of a message in Protobuf's JSON mapping."""
        try:
            if not isinstance(view, Mapping) and not self._is_well_known:
                raise TypeError(f"expected an object, not {type(view).__name__}")
            message = json_format.ParseDict(view, self.message_class(), descriptor_pool=self._pool)
            return message.SerializeToString()
        except _FAULTS as error:
            raise InvalidData(f"the JSON does not fit the message {self._name}: {error}") from error

    def decode_json(self, data: bytes, start: int = 0) -> JsonView:
        """The message of bytes, in Protobuf's JSON mapping."""
        message = self.decode(data, start)
        try:
            return json_format.MessageToDict(
                message, always_print_fields_with_no_presence=True, descriptor_pool=self._pool
            )
        except _FAULTS as error:
            raise InvalidData(f"the message {self._name} cannot be written as JSON: {error}") from error
