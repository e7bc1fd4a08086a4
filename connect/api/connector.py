"""What sources and sinks have in common: a connector plans the work that its tasks do."""

from abc import ABC
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Protocol

from connect.api.config import Config, Problem


class ConnectorContext(Protocol):
    """What a connector may ask of the worker."""

    @property
    def name(self) -> str:
        """The connector's name."""

    def request_reconfiguration(self) -> None:
        """Plan the tasks anew: the other side has changed, a table has come for instance. From any thread."""

    def fail(self, error: Exception) -> None:
        """The connector cannot go on. From any thread."""

    def wait(self, seconds: float) -> bool:
        """Sleep, or less when the connector is told to stop; True when it is."""


class Connector(ABC):
    """Plans the work; runs in the worker, never touches records. SourceConnector and SinkConnector say which way."""

    config_class: ClassVar[type[Config]]
    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names in configurations, Kafka Connect's class names for instance."""
    version: ClassVar[str] = "1.0"
    tasks_limit: ClassVar[int | None] = 1
    """Most tasks that make sense; None when there may be as many as `tasks.max` says."""

    def __init__(self, config: Config, context: ConnectorContext) -> None:
        self.config = config
        self.context = context

    def start(self) -> None:
        """Begin to watch the other side, where that is needed; must return soon."""

    def task_configs(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """The configuration of each task; the same one for `tasks_limit` tasks unless overridden."""
        count = tasks_max if self.tasks_limit is None else min(tasks_max, self.tasks_limit)
        return [dict(self.config.given)] * count

    def stop(self) -> None:
        """Leave nothing open; must return soon."""

    @classmethod
    def validate(cls, config: Config) -> Iterable[Problem]:
        """What is wrong with a configuration whose every value is right by itself; may ask the other side."""
        return ()

    @classmethod
    def advise(cls, config: Config) -> Iterable[Problem]:
        """What works, but probably not as it was meant: a warning, never an error."""
        return ()
