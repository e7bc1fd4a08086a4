"""Text and bytes, which need no schema."""

from abc import abstractmethod

import pyarrow as pa
from typing_extensions import override

from schema_registry.serdes.arrow.binary import Rows, take_rows
from schema_registry.serdes.arrow.reading import all_rows, bodies_list, plain, read_each
from schema_registry.serdes.errors import InvalidData, UnknownSchema
from streams.spark.decoding.decoder import NO_SCHEMA_ID, Decoded, Decoder, Part


class SchemalessDecoder(Decoder):
    """A decoder of data without schemas."""

    @override
    def decode(self, values: pa.Array, topic: str, headers: pa.Array | None = None) -> Decoded:
        rows = all_rows(len(values))
        nulls = rows[:0]
        if values.null_count:
            is_null = values.is_null().to_numpy(zero_copy_only=False)
            nulls, rows = rows[is_null], rows[~is_null]
        decoded = Decoded([], [], nulls, [])
        return self._decode_present(take_rows(values, rows), rows, decoded) if len(rows) else decoded

    @abstractmethod
    def _decode_present(self, values: pa.Array, rows: Rows, decoded: Decoded) -> Decoded:
        """Decode values without nulls."""

    @override
    def type_of(self, schema_id: int) -> pa.DataType:
        raise UnknownSchema(f"there is no schema {schema_id}: the data has none")

    @override
    def latest_type(self, topic: str) -> tuple[int, pa.DataType]:
        raise UnknownSchema(f"the topic {topic} has no schema")

    @override
    def can_decode(self, schema_id: int) -> bool:
        return schema_id == NO_SCHEMA_ID


class BytesDecoder(SchemalessDecoder):
    """Bytes as they are."""

    @override
    def _decode_present(self, values: pa.Array, rows: Rows, decoded: Decoded) -> Decoded:
        decoded.parts.append(Part(NO_SCHEMA_ID, rows, values.cast(pa.binary())))
        return decoded

    @override
    def type_of(self, schema_id: int) -> pa.DataType:
        return pa.binary()

    @override
    def latest_type(self, topic: str) -> tuple[int, pa.DataType]:
        return NO_SCHEMA_ID, pa.binary()


class TextDecoder(SchemalessDecoder):
    """Text in UTF-8."""

    def __init__(self, *, is_strict: bool = False) -> None:
        self._is_strict = is_strict

    @override
    def _decode_present(self, values: pa.Array, rows: Rows, decoded: Decoded) -> Decoded:
        try:
            texts = values.cast(pa.string())
        except pa.ArrowInvalid:
            errors = "strict" if self._is_strict else "replace"
            read = read_each(bodies_list(values), lambda data: _text(data, errors), plain(pa.string())).at(rows)
            decoded.bad.extend(read.bad)
            texts, rows = read.data, read.rows
        if len(rows):
            decoded.parts.append(Part(NO_SCHEMA_ID, rows, texts))
        return decoded

    @override
    def type_of(self, schema_id: int) -> pa.DataType:
        return pa.string()

    @override
    def latest_type(self, topic: str) -> tuple[int, pa.DataType]:
        return NO_SCHEMA_ID, pa.string()


def _text(data: bytes, errors: str) -> str:
    try:
        return data.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise InvalidData(f"the data is not text in UTF-8: {error}") from error
