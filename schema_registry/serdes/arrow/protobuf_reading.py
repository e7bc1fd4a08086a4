"""Data of one Protobuf message as columns."""

from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

from schema_registry.formats.protobuf import ProtobufSchema
from schema_registry.formats.schema import InvalidSchema
from schema_registry.serdes.arrow.binary import Doubt, taken
from schema_registry.serdes.arrow.extraction import Extract, extracted
from schema_registry.serdes.arrow.protobuf_columns import column_extract, column_plan, column_type, symbols_of
from schema_registry.serdes.arrow.protobuf_walk import FlatMessages, flat_messages
from schema_registry.serdes.arrow.reading import Bad, Read, SchemaReader, all_rows, bodies_list, merged
from schema_registry.serdes.errors import InvalidData, NotFramed
from schema_registry.serdes.protobuf import ProtobufCodec


def protobuf_reader(schema: ProtobufSchema, indexes: tuple[int, ...]) -> SchemaReader:
    """What reads data of a message; raises SerdeError."""
    try:
        message = schema.message_at(indexes)
    except InvalidSchema as error:
        raise NotFramed(str(error)) from error
    plan = column_plan(message)
    type_, extract = column_type(plan), column_extract(plan)
    flat = flat_messages(message, type_, symbols_of)
    return ProtobufReader(type_, extract, ProtobufCodec(schema, message=message.full_name), flat)


class ProtobufReader:
    """Reads data of one message."""

    def __init__(
        self, type_: pa.DataType, extract: Extract, codec: ProtobufCodec, flat: FlatMessages | None = None
    ) -> None:
        self.type = type_
        self._extract = extract
        self._codec = codec
        self._flat = flat

    def read(self, bodies: pa.Array) -> Read:
        """Read messages."""
        if self._flat is None or not len(bodies):
            return self._by_protobuf(bodies)
        try:
            data, is_done = self._flat.read(bodies)
        except (pa.ArrowInvalid, Doubt):
            return self._by_protobuf(bodies)
        if is_done.all():
            return Read(data, all_rows(len(bodies)), [])
        others = np.flatnonzero(~is_done)
        rest = self._by_protobuf(taken(bodies, others))
        bad = [(int(others[row]), error) for row, error in rest.bad]
        return merged(Read(data, np.flatnonzero(is_done), []), Read(rest.data, others[rest.rows], bad))

    def _by_protobuf(self, bodies: pa.Array) -> Read:
        records = bodies_list(bodies)
        parse: Any = self._codec.message_class.FromString
        try:
            return extracted(list(map(parse, records)), range(len(records)), self._extract)
        except DecodeError:
            return self._one_by_one(records)

    def _one_by_one(self, records: list[bytes]) -> Read:
        messages: list[Any] = []
        rows: list[int] = []
        bad: Bad = []
        for row, record in enumerate(records):
            try:
                messages.append(self._codec.decode(record))
                rows.append(row)
            except InvalidData as error:
                bad.append((row, error))
        read = extracted(messages, rows, self._extract)
        return read._replace(bad=bad + read.bad)
