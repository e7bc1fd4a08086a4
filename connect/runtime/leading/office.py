"""What everything in a worker that decides about connectors shares."""

from dataclasses import dataclass

from connect.api.connector import Connector
from connect.api.engine import EngineFacts
from connect.api.sink import SinkConnector
from connect.api.source import SourceConnector
from connect.runtime.configuration.config_providers import ConfigProviders
from connect.runtime.configuration.connector_config import ConnectorConfig, SinkConnectorConfig, SourceConnectorConfig
from connect.runtime.configuration.plugins import Plugins
from connect.runtime.configuration.validation import definition_class
from connect.runtime.executor import Executor, LastingExecutor
from connect.runtime.models import ConnectorType, TaskId
from connect.runtime.tasks.engine_facts import SinkFacts
from connect.runtime.tasks.exactly_once_source import is_exactly_once
from connect.settings import ConnectSettings
from connect.stores.configs import ConfigStore
from connect.stores.statuses import StatusStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Office:
    """Settings, plugins, the stores and where tasks run."""

    settings: ConnectSettings
    plugins: Plugins
    providers: ConfigProviders
    executor: Executor
    configs: ConfigStore
    statuses: StatusStore
    worker_id: str

    @property
    def lasting(self) -> LastingExecutor | None:
        """The executor, where its tasks outlive the worker that leads."""
        return self.executor if isinstance(self.executor, LastingExecutor) else None

    def understood(self, config: dict[str, str]) -> "Understood":
        """A connector's configuration with its placeholders filled in; ConfigError when it cannot work."""
        resolved = self.providers.resolve(config)
        connector = self.plugins.connector(resolved.get("connector.class", ""))
        settled = definition_class(connector).parse(resolved)
        return Understood(raw=config, resolved=resolved, connector=connector, settled=settled, settings=self.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """A connector's configuration, and what it means."""

    raw: dict[str, str]
    resolved: dict[str, str]
    connector: type[Connector]
    settled: ConnectorConfig
    settings: ConnectSettings

    @property
    def is_exactly_once(self) -> bool:
        """Whether its tasks write in transactions."""
        settled = self.settled
        return isinstance(settled, SourceConnectorConfig) and is_exactly_once(settled, self.settings)

    def facts(self, name: str) -> EngineFacts:
        """What a sink is told whose records an engine carries."""
        assert isinstance(self.settled, SinkConnectorConfig)
        return SinkFacts(TaskId(name, 0), self.settled, self.settings)

    @property
    def type(self) -> ConnectorType:
        """Which way it carries records."""
        return type_of(self.connector)


def type_of(connector: type[Connector]) -> ConnectorType:
    """Which way a connector carries records."""
    if issubclass(connector, SinkConnector):
        return "sink"
    return "source" if issubclass(connector, SourceConnector) else "unknown"
