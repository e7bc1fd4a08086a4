"""What the bytes of records seem to be: for PRINT, which shows topics that no statement describes."""

import struct
from collections.abc import Callable
from typing import Final

import msgspec

from schema_registry.client.errors import ClientError
from schema_registry.formats.avro import AvroSchema
from schema_registry.formats.json_schema import JsonSchema
from schema_registry.formats.protobuf import ProtobufSchema
from schema_registry.formats.schema import InvalidSchema
from schema_registry.serdes.avro_mismatch import Form
from schema_registry.serdes.avro_reading import Read, reader
from schema_registry.serdes.framing import read_frame, read_message_indexes
from schema_registry.serdes.protobuf import ProtobufCodec
from streams.formats.avro_schemas import avro_plan
from streams.formats.errors import SchemasMissing
from streams.formats.registry import Schemas

Show = Callable[[bytes], str]
"""The text of data that is of a format; raises ValueError if it is not."""

NO_DATA: Final = "¯\\_(ツ)_/¯ - no data processed"
UNRECOGNIZED: Final = "UNRECOGNIZED_BYTES"
_FAULTS: Final = (ValueError, ClientError, SchemasMissing, RecursionError, ArithmeticError)
_MOMENT_MAX: Final = 1 << 43
"""Milliseconds since 1970, some three hundred years of them: what is beyond is no window."""
_SHOWN_SPACE: Final = "\t\n\r"
_READERS_MAX: Final = 100
_encode: Final = msgspec.json.Encoder(decimal_format="number").encode


class _NotThis(ValueError):
    """The data is not of this format."""


class FormatGuess:
    """What the keys or the values of a topic seem to be: fewer formats are left with each that is seen.

    Not for several threads at a time.
    """

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._avro_readers: dict[int | str, Read] = {}
        self._formats: dict[str, Show] = {
            "AVRO": self._avro,
            "PROTOBUF": self._protobuf,
            "JSON_SR": self._json_schema,
            "JSON": _json,
            "SESSION(KAFKA_STRING)": _session,
            "HOPPING(KAFKA_STRING)": _windowed,
            "TUMBLING(KAFKA_STRING)": _windowed,
            "KAFKA_INT": _number(">i"),
            "KAFKA_BIGINT": _number(">q"),
            "KAFKA_DOUBLE": _number(">d"),
            "KAFKA_STRING": _text,
        }
        self._left: list[str] | None = None

    @property
    def names(self) -> str:
        """The formats that are still possible, such as `JSON or KAFKA_STRING`."""
        if self._left is None:
            return NO_DATA
        return " or ".join(self._left) or UNRECOGNIZED

    def text(self, data: bytes | None) -> str:
        """A key or a value as text."""
        if data is None:
            return "<null>"
        found: dict[str, str] = {}
        for name, show in self._formats.items():
            try:
                found[name] = show(data)
            except _FAULTS:
                continue
        if self._left is None:
            self._left = list(found)
        elif common := [name for name in self._left if name in found]:
            self._left = common
        else:  # A topic of several formats: what is said about it is what came last.
            self._left = list(found)
        return found[self._left[0]] if self._left else repr(data)[2:-1]

    def _avro(self, data: bytes) -> str:
        frame = read_frame(data)
        read = self._avro_readers.get(frame.schema)
        if read is None:
            schema = self._schemas.reading(frame.schema)
            if not isinstance(schema, AvroSchema):
                raise _NotThis
            if len(self._avro_readers) >= _READERS_MAX:
                self._avro_readers.clear()
            read = self._avro_readers[frame.schema] = reader(avro_plan(schema), Form.TYPED)
        return _encode(read(data, frame.start)).decode()

    def _protobuf(self, data: bytes) -> str:
        frame = read_frame(data)
        schema = self._schemas.reading(frame.schema)
        if not isinstance(schema, ProtobufSchema):
            raise _NotThis
        indexes, start = read_message_indexes(frame)
        try:
            message = schema.message_at(indexes)
        except InvalidSchema as error:
            raise _NotThis from error
        view = ProtobufCodec(schema, message=str(message.full_name)).decode_json(data, start)
        return _encode(view).decode()

    def _json_schema(self, data: bytes) -> str:
        frame = read_frame(data)
        if not isinstance(self._schemas.reading(frame.schema), JsonSchema):
            raise _NotThis
        return _json(data[frame.start :])


def _json(data: bytes) -> str:
    msgspec.json.decode(data)
    return data.decode().strip()


def _text(data: bytes) -> str:
    text = data.decode()
    if not all(character.isprintable() or character in _SHOWN_SPACE for character in text):
        raise _NotThis
    return text


def _number(form: str) -> Show:
    number = struct.Struct(form)

    def show(data: bytes) -> str:
        if len(data) != number.size or _is_text(data):  # Numbers that look like text are too large to be true.
            raise _NotThis
        return str(number.unpack(data)[0])

    return show


def _is_text(data: bytes) -> bool:
    try:
        _text(data)
    except ValueError:
        return False
    return True


def _windowed(data: bytes) -> str:
    if len(data) <= 8:
        raise _NotThis
    return f"[{_text(data[:-8])}@{_moment(data[-8:])}/-]"


def _session(data: bytes) -> str:
    if len(data) <= 16:
        raise _NotThis
    end, start = _moment(data[-16:-8]), _moment(data[-8:])
    if end < start:
        raise _NotThis
    return f"[{_text(data[:-16])}@{start}/{end}]"


def _moment(data: bytes) -> int:
    moment = int.from_bytes(data, "big", signed=True)
    if not 0 <= moment < _MOMENT_MAX:
        raise _NotThis
    return moment
