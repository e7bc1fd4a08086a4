"""Records on their way between Kafka and the other side."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from connect.api.data import Schema, Value


class Header(NamedTuple):
    """A header of a record; several may have the same key."""

    key: str
    value: Value
    schema: Schema | None = None


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What a record has on either way. Transforms change it with `msgspec.structs.replace`."""

    topic: str
    partition: int | None = None
    key_schema: Schema | None = None
    key: Value = None
    value_schema: Schema | None = None
    value: Value = None
    timestamp_ms: int | None = None
    headers: tuple[Header, ...] = ()


class SourceRecord(Record, frozen=True, kw_only=True):
    """A record that a source has read, and where: after a restart the source goes on behind the last such place."""

    source_partition: Mapping[str, Value]
    """Which part of the other side, such as `{"filename": "a.txt"}`. Text, numbers, booleans, null."""
    source_offset: Mapping[str, Value]
    """How far that part has been read with this record, such as `{"position": 12}`."""


class SinkRecord(Record, frozen=True, kw_only=True):
    """A record for a sink. What transforms may have changed (topic, partition) is kept as `original_…`."""

    offset: int
    timestamp_type: str = "CreateTime"
    """CreateTime, LogAppendTime, or empty when the record has no time."""
    original_topic: str
    original_partition: int
    original_offset: int

    @property
    def place(self) -> tuple[str, int]:
        """The topic and partition that the record was read from."""
        return self.original_topic, self.original_partition
