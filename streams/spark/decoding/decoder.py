"""Decoders: bytes of many records in, typed columns out."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import pyarrow as pa

from schema_registry.serdes.arrow.binary import Rows

NO_SCHEMA_ID = -1
"""The id of data that names no schema, or one without an id."""


class Part(NamedTuple):
    """Records of one type."""

    schema_id: int
    rows: Rows
    """Where they were, in ascending order."""
    data: pa.Array
    """Their values: structs for records, otherwise plain values."""


class LeftOver(NamedTuple):
    """Records that may well be valid, but whose schema has no columns here: Connect's converters decide."""

    schema_id: int
    rows: Rows
    reason: Exception


class Decoded(NamedTuple):
    """Many decoded records, each in exactly one of these."""

    parts: list[Part]
    bad: list[tuple[int, Exception]]
    nulls: Rows
    left_over: list[LeftOver]


class Decoder(ABC):
    """Decodes keys or values of any topic, in any number of threads; raises ClientError when no registry answers."""

    @abstractmethod
    def decode(self, values: pa.Array, topic: str, headers: pa.Array | None = None) -> Decoded:
        """Decode binary values, which may be null; `headers` (list<struct<key, value>>) may name schemas, too."""

    @abstractmethod
    def type_of(self, schema_id: int) -> pa.DataType:
        """The type of a schema's values, in Protobuf those of its first message; raises SerdeError."""

    @abstractmethod
    def latest_type(self, topic: str) -> tuple[int, pa.DataType]:
        """The latest schema of a topic, by the name of its subject, and the type of its values."""

    @abstractmethod
    def can_decode(self, schema_id: int) -> bool:
        """Whether values of a schema become columns here."""
