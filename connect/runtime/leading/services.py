"""What everything that leads or shows connectors shares, and what a connector's configuration means."""

from dataclasses import dataclass

from connect.api.backoff import Backoff
from connect.api.connector import Connector
from connect.api.engine import EngineFacts
from connect.api.sink import SinkConnector
from connect.api.source import SourceConnector
from connect.runtime.configuration.config_providers import ConfigProviders
from connect.runtime.configuration.connector_config import ConnectorConfig, SinkConnectorConfig, SourceConnectorConfig
from connect.runtime.configuration.plugins import Plugins
from connect.runtime.configuration.validation import definition_class
from connect.runtime.executor import Executor, LastingExecutor
from connect.runtime.leading.plan import RestartPolicy, Traits
from connect.runtime.models import ConnectorType, TaskId
from connect.runtime.tasks.engine_facts import SinkFacts
from connect.runtime.tasks.exactly_once_source import is_exactly_once
from connect.settings import ConnectSettings
from connect.stores.configs import Config, ConfigStore
from connect.stores.statuses import StatusStore


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderServices:
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

    def parse(self, config: Config) -> "ParsedConnector":
        """A connector's configuration with its placeholders filled in; ConfigError when it cannot work."""
        resolved = self.providers.resolve(config)
        connector = self.plugins.connectors.find(resolved.get("connector.class", ""))
        settled = definition_class(connector).parse(resolved)
        return ParsedConnector(
            raw=config, resolved=resolved, connector=connector, settled=settled, settings=self.settings
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedConnector:
    """A connector's configuration, and what it means."""

    raw: Config
    resolved: Config
    connector: type[Connector]
    settled: ConnectorConfig
    """Options that every connector has."""
    settings: ConnectSettings

    @property
    def traits(self) -> Traits:
        """How its tasks are handled."""
        settled = self.settled
        backoff = Backoff(settled.errors_restart_delay_ms / 1000, settled.errors_restart_delay_max_ms / 1000)
        return Traits(
            is_exactly_once=isinstance(settled, SourceConnectorConfig) and is_exactly_once(settled, self.settings),
            restarts=RestartPolicy(
                limit=settled.errors_restart_max, backoff=backoff, reset_seconds=settled.errors_restart_reset_ms / 1000
            ),
        )

    def facts(self, name: str) -> EngineFacts:
        """What a sink whose records an engine carries must know."""
        assert isinstance(self.settled, SinkConnectorConfig)
        return SinkFacts(TaskId(name, 0), self.settled, self.settings)

    @property
    def type(self) -> ConnectorType:
        """Which way it carries records."""
        return connector_type(self.connector)


def connector_type(connector: type[Connector]) -> ConnectorType:
    """Which way a connector carries records."""
    if issubclass(connector, SinkConnector):
        return "sink"
    return "source" if issubclass(connector, SourceConnector) else "unknown"
