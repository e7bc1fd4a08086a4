"""Avro data by one schema: Python values as fastavro has them, and Avro's JSON encoding.

Confluent's AvroSerializer and AvroDeserializer use the same library, and agree with this byte for byte. They are not
used here because they resolve the subject and look for rules with every record (22 µs to read one of 15 fields, of
which the library takes 6), do not support Avro's JSON encoding, and let hostile data end the process (see
`avro_bounds`). JSON is read and written by a plan, because fastavro does not return the branch of a union.
"""

import struct
from functools import cached_property
from io import BytesIO
from typing import Any

from fastavro import _read_py, parse_schema, schemaless_reader, schemaless_writer
from fastavro.read import SchemaResolutionError
from fastavro.schema import SchemaParseException

from schema_registry.formats.avro import AvroSchema
from schema_registry.formats.avro_types import Field, Name, Primitive, Record
from schema_registry.serdes import avro_bounds
from schema_registry.serdes.avro_mismatch import Form, Mismatch
from schema_registry.serdes.avro_plan import JsonEncoding
from schema_registry.serdes.avro_reading import Read, reader
from schema_registry.serdes.avro_writing import Write, writer
from schema_registry.serdes.codec import JsonView, Value
from schema_registry.serdes.errors import InvalidData, UnusableSchema

_FAULTS = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    RecursionError,
    SchemaResolutionError,
    TypeError,
    ValueError,
    struct.error,
)
"""What fastavro raises about data that does not fit, depending on where it notices."""


class AvroCodec:
    """Reads and writes data of one Avro schema.

    With a reader's schema, `decode` returns data as that one describes it: fields of its own get their defaults, others
    are left out. Data of the schema `bytes` itself is written without a length, as Confluent's Java serializer does.
    """

    def __init__(self, schema: AvroSchema, *, reader: AvroSchema | None = None) -> None:
        avro_bounds.check(schema.root)
        self._is_bytes = isinstance(schema.root, Primitive) and schema.root.kind == "bytes"
        self._safe_bytes = avro_bounds.safe_bytes(schema.root)
        self._structure = _parsed(schema.structure)
        self._reader = None if reader is None else _parsed(reader.structure)
        self._root = schema.root

    def encode(self, value: Value) -> bytes:
        """The bytes of a value; logical types as Python's (Decimal, datetime, UUID), or as what is stored for them."""
        if self._is_bytes:
            if not isinstance(value, bytes | bytearray | memoryview):
                raise InvalidData(f"the Avro schema asks for bytes, not {type(value).__name__}")
            return bytes(value)
        if self._safe_bytes is not None and avro_bounds.nests_deeper(value, avro_bounds.MAX_VALUE_DEPTH):
            raise InvalidData(f"the value nests deeper than {avro_bounds.MAX_VALUE_DEPTH} levels")
        stream = BytesIO()
        try:
            schemaless_writer(stream, self._structure, value)
        except _FAULTS as error:
            reason = str(error) or type(error).__name__
            raise InvalidData(f"the value does not fit the Avro schema: {reason}") from error
        return stream.getvalue()

    def decode(self, data: bytes, start: int = 0) -> Value:
        """The value of bytes."""
        if self._is_bytes and self._reader is None:
            return data[start:]
        stream = BytesIO(data)
        stream.seek(start)
        is_safe = self._safe_bytes is None or len(data) - start <= self._safe_bytes
        # The library's reader in Python is slower, but knows how deep is too deep.
        read = schemaless_reader if is_safe else _read_py.schemaless_reader
        try:
            return read(stream, self._structure, self._reader)
        except _FAULTS as error:
            reason = str(error) or ("the data ends too soon" if isinstance(error, EOFError) else type(error).__name__)
            raise InvalidData(f"the data does not fit the Avro schema: {reason}") from error

    def encode_json(self, view: JsonView) -> bytes:
        """The bytes of a value in Avro's JSON encoding."""
        try:
            return self._json_writer(view)
        except Mismatch as error:
            place = "/".join(error.path)
            raise InvalidData(f"the JSON does not fit the Avro schema: /{place}: {error.problem}") from error

    def decode_json(self, data: bytes, start: int = 0) -> JsonView:
        """The value of bytes, in Avro's JSON encoding."""
        view = self._json_reader(data, start)
        # Every level takes a byte; a value that can be read might still nest too deep to be written as JSON.
        is_long = self._safe_bytes is not None and len(data) - start > avro_bounds.MAX_VALUE_DEPTH // 2
        if is_long and avro_bounds.nests_deeper(view, avro_bounds.MAX_VALUE_DEPTH):
            raise InvalidData(f"the data nests deeper than {avro_bounds.MAX_VALUE_DEPTH} levels")
        return view

    # Both are made on first use: most callers have no use for JSON.

    @cached_property
    def _json_reader(self) -> Read:
        return reader(JsonEncoding().of(self._root), Form.JSON)

    @cached_property
    def _json_writer(self) -> Write:
        return writer(JsonEncoding().of(self._root), Form.JSON)


def default_bytes(field: Field) -> bytes:
    """The bytes of a field that is left out; it must have a default."""
    return AvroCodec(AvroSchema(Record(name=Name("Default"), fields=[field]), {})).encode_json({})


def _parsed(structure: Any) -> Any:
    try:
        return parse_schema(structure)
    except (SchemaParseException, KeyError, RecursionError) as error:
        raise UnusableSchema(f"fastavro cannot use the schema: {error}") from error
