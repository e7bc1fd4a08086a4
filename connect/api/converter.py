"""How converters are written: bytes of a topic to data, and back."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from connect.api.config import Config
from connect.api.data import Schema, Value

SchemaAndValue = tuple[Schema | None, Value]
RawHeader = tuple[str, bytes | None]


class Converter(ABC):
    """Reads and writes keys or values of one topic or more. May be called from one thread at a time.

    A record that cannot be read or written raises DataError; a registry that does not answer RetriableError.
    """

    config_class: ClassVar[type[Config]] = Config
    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names in configurations, Kafka Connect's class name first: it is told in headers of dead letters."""

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        """`config` holds what is below `key.converter.` or `value.converter.`, without that prefix."""

    @abstractmethod
    def to_connect(self, topic: str, data: bytes | None, headers: Sequence[RawHeader] = ()) -> SchemaAndValue:
        """Bytes of a record as a schema (None without one) and a value."""

    @abstractmethod
    def from_connect(self, topic: str, schema: Schema | None, value: Value) -> bytes | None:
        """A value as the bytes of a record; None makes a tombstone."""

    def close(self) -> None:
        """Leave nothing open."""


class HeaderConverter(ABC):
    """Reads and writes headers of records."""

    config_class: ClassVar[type[Config]] = Config
    aliases: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: Mapping[str, str]) -> None:
        """`config` holds what is below `header.converter.`, without that prefix."""

    @abstractmethod
    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        """Bytes of a header as a schema and a value."""

    @abstractmethod
    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Value) -> bytes | None:
        """A header's value as bytes."""

    def close(self) -> None:
        """Leave nothing open."""
