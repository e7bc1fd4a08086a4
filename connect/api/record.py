"""Records on their way between Kafka and another system."""

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
    """The common part of both directions. Transforms change it with `msgspec.structs.replace`."""

    topic: str
    partition: int | None = None
    key_schema: Schema | None = None
    key: Value = None
    value_schema: Schema | None = None
    value: Value = None
    timestamp_ms: int | None = None
    headers: tuple[Header, ...] = ()


class SourceRecord(Record, frozen=True, kw_only=True):
    """A record that a source has read, and its position: after a restart the source continues after the last one."""

    source_partition: Mapping[str, Value]
    """The part of the other system, such as `{"filename": "a.txt"}`. Text, numbers, booleans, null."""
    source_offset: Mapping[str, Value]
    """The position in that part after this record, such as `{"position": 12}`."""


class SinkRecord(Record, frozen=True, kw_only=True):
    """A record for a sink. Transforms may change topic and partition; `original_…` keeps the first ones."""

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
