"""The codec of keys and of values by their formats."""

from collections.abc import Sequence
from typing import Any

from streams.formats.delimited_codec import DelimitedCodec
from streams.formats.json_codec import JsonCodec
from streams.formats.kafka_codec import KafkaCodec
from streams.formats.layout import Layout
from streams.formats.parts import PartCodec
from streams.formats.registry import Schemas
from streams.formats.schema_codec import SchemaCodec


def codec_of(layout: Layout, schemas: Schemas) -> PartCodec:
    """The codec of keys or values; raises FormatError if the format cannot hold the columns."""
    if not layout.columns and layout.is_key:
        return NoneCodec()
    match layout.format.name:
        case "JSON":
            return JsonCodec(layout)
        case "KAFKA":
            return KafkaCodec(layout)
        case "DELIMITED":
            return DelimitedCodec(layout)
        case "NONE":
            return NoneCodec()
        case "AVRO" | "PROTOBUF" | "PROTOBUF_NOSR" | "JSON_SR":
            return SchemaCodec(layout, schemas)


class NoneCodec:
    """Nothing: there are no columns."""

    def encode(self, values: Sequence[Any]) -> bytes | None:  # noqa: ARG002 - there are none
        """No bytes."""
        return None

    def decode(self, data: bytes) -> Sequence[Any] | None:  # noqa: ARG002 - whatever is there does not matter
        """No values."""
        return []
