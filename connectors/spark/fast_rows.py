"""Rows of whole batches at once, for sinks without transforms and with common converters.

Anything that this cannot convert, bad records included, is left to `record_rows`, which is the authority: it converts
records as every other sink does, and says what is wrong with them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from connect.api.errors import DataError
from connect.remote.pipeline import ConverterChoice, RemotePipeline
from connectors.spark.config import SparkSinkConfig
from connectors.spark.metadata import column_name, place_columns
from connectors.spark.naming import TableNames
from connectors.spark.raw_records import headers_of
from connectors.spark.record_rows import key_columns, value_key_columns
from connectors.spark.rows import DELETED, Columns, Rows, flat, merged
from streams.errors import WrongOption
from streams.formats.frames import schema_ids
from streams.spark.decoding.decoder import Decoded, Decoder, Part
from streams.spark.decoding.opening import open_decoder
from streams.spark.decoding.spec import DecoderSpec, Format
from streams.spark.topics.fetching import RawBatch

_FORMATS: Final[Mapping[str, Format]] = {
    "io.confluent.connect.avro.AvroConverter": Format.AVRO,
    "io.confluent.connect.protobuf.ProtobufConverter": Format.PROTOBUF,
    "io.confluent.connect.json.JsonSchemaConverter": Format.JSON_SCHEMA,
    "org.apache.kafka.connect.json.JsonConverter": Format.JSON,
    "org.apache.kafka.connect.storage.StringConverter": Format.STRING,
    "org.apache.kafka.connect.converters.ByteArrayConverter": Format.BYTES,
}
_HARMLESS_HEADERS: Final = (
    "org.apache.kafka.connect.storage.SimpleHeaderConverter",
    "org.apache.kafka.connect.storage.StringConverter",
    "org.apache.kafka.connect.converters.ByteArrayConverter",
)
"""Converters that accept any header."""
_REGISTRY: Final = ("schema.registry.", "basic.auth.", "bearer.auth.", "ssl.", "proxy.", "max.schemas")
"""Options about access to the registry, not about the meaning of data."""
_NO_SCHEMA: Final = "schemas.enable"
Indices = np.ndarray[Any, np.dtype[np.int64]]


class FastRows:
    """Converts records of any topic; for one thread."""

    def __init__(
        self, config: SparkSinkConfig, names: TableNames, *, key: Decoder, value: Decoder, is_guessed: bool = False
    ) -> None:
        self._config = config
        self._is_guessed = is_guessed
        self._names = names
        self._key = key
        self._value = value

    @classmethod
    def of(cls, pipeline: RemotePipeline, config: SparkSinkConfig, names: TableNames) -> Self | None:
        """The fast way for a sink; None if there is none."""
        key, value = _decoder_of(pipeline.key_converter, is_key=True), _decoder_of(pipeline.value_converter)
        if pipeline.has_transforms or key is None or value is None:
            return None
        if pipeline.header_converter.name not in _HARMLESS_HEADERS:
            return None
        try:
            is_guessed = value.format is Format.JSON
            return cls(config, names, key=open_decoder(key), value=open_decoder(value), is_guessed=is_guessed)
        except WrongOption:
            return None  # The converter may well accept the option.

    def rows(self, raw: RawBatch, *, topic: str, partition: int) -> tuple[list[Rows], Indices]:
        """Rows of a batch of one partition, and the records that are left."""
        values = self._value.decode(raw.values, topic, raw.headers)
        keys = self._key.decode(raw.keys, topic, raw.headers)
        left = np.zeros(len(raw.offsets), dtype=bool)
        for decoded in (keys, values):
            left[[row for row, _ in decoded.bad]] = True
            for some in decoded.left_over:
                left[some.rows] = True
        metadata = self._metadata(raw, topic, partition)
        made: list[Rows] = []
        for data, indices, key in self._groups(values, keys, left):
            try:
                made.append(self._rows(topic, data, key, indices, metadata))
            except (DataError, pa.ArrowException):
                left[indices] = True
        return made, np.flatnonzero(left)

    def _groups(
        self, values: Decoded, keys: Decoded, left: "np.ndarray[Any, np.dtype[np.bool_]]"
    ) -> Iterator[tuple[pa.Array | None, Indices, pa.Array | None]]:
        """Values of one type (None: there is no value) with keys of one type, and the rows of these records."""
        needs_key = self._config.pk_mode == "record_key" or "key" in self._config.metadata
        for part in self._value_parts(values, left):
            chosen = part.rows if part.rows.size == 0 or not left[part.rows].any() else part.rows[~left[part.rows]]
            if not needs_key:
                yield _take(part, chosen), chosen, None
                continue
            for key in [*keys.parts, Part(-1, keys.nulls, pa.nulls(len(keys.nulls)))]:
                both = chosen if len(key.rows) == len(left) else np.intersect1d(chosen, key.rows, assume_unique=True)
                if both.size:
                    yield _take(part, both), both, _take(key, both)

    def _value_parts(self, values: Decoded, left: "np.ndarray[Any, np.dtype[np.bool_]]") -> list[Part]:
        parts = [part for part in values.parts if part.rows.size]
        if not values.nulls.size:
            return parts
        if self._config.deletes or self._config.behavior_on_null_values == "write":
            return [*parts, Part(-1, values.nulls, None)]
        if self._config.behavior_on_null_values == "fail":
            left[values.nulls] = True
        return parts

    def _rows(
        self, topic: str, data: pa.Array | None, key: pa.Array | None, indices: Indices, metadata: Columns
    ) -> Rows:
        config = self._config
        value = {} if data is None else flat(data, config.value_column)
        own_key: Columns = {}
        if config.pk_mode == "record_key":
            assert key is not None
            own_key = key_columns(key, config)
        elif config.pk_mode == "record_value":
            own_key = value_key_columns(value, config)
        is_all = len(indices) == len(next(iter(metadata.values()), indices))
        chosen = pa.array(indices)
        some_metadata: Columns = {}  # In the order of the configuration.
        for name in config.metadata:
            column = key if name == "key" else metadata.get(column_name(name))
            if column is not None and not pa.types.is_null(column.type):
                is_whole = is_all or name == "key"
                some_metadata[column_name(name)] = column if is_whole else column.take(chosen)
        columns = merged(own_key, value, some_metadata)
        if config.deletes:
            columns[DELETED] = pa.repeat(pa.scalar(data is None), len(indices))
        return Rows(self._names.of(topic), columns, indices, tuple(own_key), self._is_guessed and data is not None)

    def _metadata(self, raw: RawBatch, topic: str, partition: int) -> Columns:
        wanted = self._config.metadata
        columns = place_columns(
            wanted, topic=topic, partition=partition, offsets=raw.offsets, timestamps_ms=raw.timestamps_ms
        )
        if "headers" in wanted:
            columns[column_name("headers")] = headers_of(raw)
        if "schema_id" in wanted:
            columns[column_name("schema_id")] = schema_ids(raw.values).cast(pa.int32())
        return columns


def _take(part: Part, indices: Indices) -> pa.Array | None:
    """The values of some records of a part."""
    if part.data is None or len(indices) == len(part.rows):
        return part.data
    return part.data.take(pa.array(np.searchsorted(part.rows, indices)))


def _decoder_of(choice: ConverterChoice, *, is_key: bool = False) -> DecoderSpec | None:
    found = _FORMATS.get(choice.name)
    if found is None:
        return None
    options = dict(choice.options)
    if found is Format.JSON:
        is_plain = options.pop(_NO_SCHEMA, "true").strip().lower() == "false"
        return DecoderSpec(format=found, is_key=is_key) if is_plain and not options else None
    if not found.needs_registry:
        return DecoderSpec(format=found, is_key=is_key) if not options else None
    if any(not key.startswith(_REGISTRY) for key in options):
        return None
    return DecoderSpec.of(found.value, options, is_key=is_key)
