"""Text and bytes, which need no schema."""

from abc import abstractmethod

import numpy as np
import pyarrow as pa
from typing_extensions import override

from schema_registry.serdes.arrow.binary import Rows, taken
from schema_registry.serdes.arrow.reading import Bad, bodies_list
from schema_registry.serdes.errors import InvalidData, UnknownSchema
from streams.spark.decoding.decoder import NO_SCHEMA_ID, Decoded, Decoder, Part


class SchemalessDecoder(Decoder):
    """What decoders of data without schemas share."""

    @override
    def decode(self, values: pa.Array, topic: str, headers: pa.Array | None = None) -> Decoded:
        rows = np.arange(len(values), dtype=np.int64)
        nulls = rows[:0]
        if values.null_count:
            is_null = values.is_null().to_numpy(zero_copy_only=False)
            nulls, rows = rows[is_null], rows[~is_null]
        decoded = Decoded([], [], nulls, [])
        return self._decode_present(taken(values, rows), rows, decoded) if len(rows) else decoded

    @abstractmethod
    def _decode_present(self, values: pa.Array, rows: Rows, decoded: Decoded) -> Decoded:
        """Decode values that are all there."""

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
            texts, rows, bad = self._one_by_one(values, rows)
            decoded.bad.extend(bad)
        if len(rows):
            decoded.parts.append(Part(NO_SCHEMA_ID, rows, texts))
        return decoded

    def _one_by_one(self, values: pa.Array, rows: Rows) -> tuple[pa.Array, Rows, Bad]:
        texts: list[str] = []
        good: list[int] = []
        bad: Bad = []
        for row, data in zip(rows.tolist(), bodies_list(values), strict=True):
            try:
                texts.append(data.decode("utf-8", "strict" if self._is_strict else "replace"))
                good.append(row)
            except UnicodeDecodeError as error:
                bad.append((row, InvalidData(f"the data is no text in UTF-8: {error}")))
        return pa.array(texts, type=pa.string()), np.array(good, dtype=np.int64), bad

    @override
    def type_of(self, schema_id: int) -> pa.DataType:
        return pa.string()

    @override
    def latest_type(self, topic: str) -> tuple[int, pa.DataType]:
        return NO_SCHEMA_ID, pa.string()
