"""The base classes of transforms and predicates: small changes to single records."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, TypeVar

from connect.api.config import Config
from connect.api.record import Record

R = TypeVar("R", bound=Record)


class Transform(ABC):
    """Changes a record, or drops it. Does no I/O; may be called from one thread at a time."""

    config_class: ClassVar[type[Config]] = Config
    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names in configurations, Kafka Connect's class name first: dead letters carry it in a header."""
    config: Config
    """The options as `config_class` reads them: annotate it with that class."""

    def __init__(self, config: Mapping[str, str]) -> None:
        """`config` holds the keys below `transforms.<alias>.`, without that prefix; raises ConfigError."""
        self.config = self.config_class.parse(config)

    @abstractmethod
    def apply(self, record: R) -> R | None:
        """The changed record, the same one, or None to drop it; raises DataError for a record that does not fit."""

    def close(self) -> None:
        """Release everything; called once."""


class Predicate(ABC):
    """Decides whether a transform sees a record."""

    config_class: ClassVar[type[Config]] = Config
    aliases: ClassVar[tuple[str, ...]] = ()
    config: Config

    def __init__(self, config: Mapping[str, str]) -> None:
        """`config` holds the keys below `predicates.<alias>.`, without that prefix; raises ConfigError."""
        self.config = self.config_class.parse(config)

    @abstractmethod
    def test(self, record: Record) -> bool:
        """Whether the predicate matches this record."""

    def close(self) -> None:
        """Release everything; called once."""
