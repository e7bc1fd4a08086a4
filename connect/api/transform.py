"""How transforms and predicates are written: small changes to single records."""

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
    """Other names in configurations, Kafka Connect's class name first: it is told in headers of dead letters."""

    def __init__(self, config: Mapping[str, str]) -> None:
        """`config` holds what is below `transforms.<alias>.`, without that prefix; raises ConfigError."""

    @abstractmethod
    def apply(self, record: R) -> R | None:
        """The changed record, the same one, or None to drop it; raises DataError for a record that does not fit."""

    def close(self) -> None:
        """Leave nothing open."""


class Predicate(ABC):
    """Decides whether a transform sees a record."""

    config_class: ClassVar[type[Config]] = Config
    aliases: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: Mapping[str, str]) -> None:
        """`config` holds what is below `predicates.<alias>.`, without that prefix; raises ConfigError."""

    @abstractmethod
    def test(self, record: Record) -> bool:
        """Whether the record is meant."""

    def close(self) -> None:
        """Leave nothing open."""
