"""The common part of sources and sinks: a connector plans the work that its tasks do."""

from abc import ABC
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Protocol

from connect.api.config import Config, Problem


class ConnectorContext(Protocol):
    """The worker, as a connector sees it."""

    @property
    def name(self) -> str:
        """The connector's name."""

    def request_reconfiguration(self) -> None:
        """Have the tasks planned again, because the other system has changed: there is a new table. Thread-safe."""

    def fail(self, error: Exception) -> None:
        """Report that the connector cannot continue. Thread-safe."""

    def wait(self, seconds: float) -> bool:
        """Sleep, but only until the connector is asked to stop; True when it is."""


class Connector(ABC):
    """Plans the work; runs in the worker and never touches records. Derive from SourceConnector or SinkConnector."""

    config_class: ClassVar[type[Config]]
    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names in configurations, Kafka Connect's class names for instance."""
    version: ClassVar[str] = "1.0"
    tasks_limit: ClassVar[int | None] = 1
    """The most tasks that make sense; None for as many as `tasks.max` allows."""

    def __init__(self, config: Config, context: ConnectorContext) -> None:
        self.config = config
        self.context = context

    def start(self) -> None:
        """Start watching the other system, where that is needed; must return soon."""

    def task_configs(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """The configuration of each task; the same one for `tasks_limit` tasks unless overridden."""
        count = tasks_max if self.tasks_limit is None else min(tasks_max, self.tasks_limit)
        return [dict(self.config.given)] * count

    def stop(self) -> None:
        """Release everything; must return soon."""

    @classmethod
    def validate(cls, config: Config) -> Iterable[Problem]:
        """Problems of a configuration whose values are each valid by themselves; may connect to the other system."""
        return ()

    @classmethod
    def advise(cls, config: Config) -> Iterable[Problem]:
        """Warnings: options that work, but probably not as the user intended."""
        return ()
