"""The base classes of converters: from the bytes in a topic to data, and back."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from connect.api.config import Config
from connect.api.data import Schema, Value

SchemaAndValue = tuple[Schema | None, Value]
RawHeader = tuple[str, bytes | None]


class Converter(ABC):
    """Reads and writes keys or values of any number of topics. Called from one thread at a time.

    Raise DataError for a record that cannot be read or written, RetriableError when a registry does not answer.
    """

    config_class: ClassVar[type[Config]] = Config
    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names in configurations, Kafka Connect's class name first: dead letters carry it in a header."""

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        """`config` holds the keys below `key.converter.` or `value.converter.`, without that prefix."""

    @abstractmethod
    def to_connect(self, topic: str, data: bytes | None, headers: Sequence[RawHeader] = ()) -> SchemaAndValue:
        """Bytes of a record as a schema (None without one) and a value."""

    @abstractmethod
    def from_connect(self, topic: str, schema: Schema | None, value: Value) -> bytes | None:
        """A value as the bytes of a record; None makes a tombstone."""

    def close(self) -> None:
        """Release everything; called once."""


class HeaderConverter(ABC):
    """Reads and writes headers of records."""

    config_class: ClassVar[type[Config]] = Config
    aliases: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: Mapping[str, str]) -> None:
        """`config` holds the keys below `header.converter.`, without that prefix."""

    @abstractmethod
    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        """Bytes of a header as a schema and a value."""

    @abstractmethod
    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Value) -> bytes | None:
        """A header's value as bytes."""

    def close(self) -> None:
        """Release everything; called once."""
