"""The services of a worker's control plane, and the parsed configuration of a connector."""

from dataclasses import dataclass

from connect.api.backoff import Backoff
from connect.api.connector import Connector
from connect.api.engine import EngineFacts
from connect.api.sink import SinkConnector
from connect.api.source import SourceConnector
from connect.runtime.configuration.config_providers import ConfigProviders, conceal
from connect.runtime.configuration.connector_config import ConnectorConfig, SinkConnectorConfig, SourceConnectorConfig
from connect.runtime.configuration.plugins import Plugins
from connect.runtime.configuration.reach import require_reach
from connect.runtime.configuration.secrets import ConfigSecrets
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
    """Settings, plugins, the stores and the executor."""

    settings: ConnectSettings
    plugins: Plugins
    providers: ConfigProviders
    executor: Executor
    configs: ConfigStore
    statuses: StatusStore
    worker_id: str

    @property
    def secrets(self) -> ConfigSecrets:
        """Finds secrets in configurations."""
        return ConfigSecrets(self.plugins, self.providers)

    def conceal(self, name: str, text: str) -> str:
        """A text about a connector without its secrets."""
        desired = self.configs.desired(name)
        return text if desired is None else conceal(text, self.secrets.concealing(desired.config))

    @property
    def lasting(self) -> LastingExecutor | None:
        """The executor, if its tasks outlive the leader."""
        return self.executor if isinstance(self.executor, LastingExecutor) else None

    def parse(self, config: Config) -> "ParsedConnector":
        """Parse a connector's configuration and resolve its placeholders; ConfigError when it is invalid."""
        resolved = self.providers.resolve(config)
        connector = self.plugins.connectors.find(resolved.get("connector.class", ""))
        common = definition_class(connector).parse(resolved)
        require_reach(resolved, connector, plugins=self.plugins, settings=self.settings)
        return ParsedConnector(
            raw=config, resolved=resolved, connector=connector, common=common, settings=self.settings
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedConnector:
    """A connector's configuration, parsed."""

    raw: Config
    resolved: Config
    connector: type[Connector]
    common: ConnectorConfig
    """Options that every connector has."""
    settings: ConnectSettings

    @property
    def traits(self) -> Traits:
        """How its tasks are managed."""
        common = self.common
        backoff = Backoff(common.errors_restart_delay_ms / 1000, common.errors_restart_delay_max_ms / 1000)
        return Traits(
            is_exactly_once=isinstance(common, SourceConnectorConfig) and is_exactly_once(common, self.settings),
            restarts=RestartPolicy(
                limit=common.errors_restart_max, backoff=backoff, reset_seconds=common.errors_restart_reset_ms / 1000
            ),
        )

    def facts(self, name: str) -> EngineFacts:
        """The facts for a sink whose records an engine moves."""
        assert isinstance(self.common, SinkConnectorConfig)
        return SinkFacts(TaskId(name, 0), self.common, self.settings)

    @property
    def type(self) -> ConnectorType:
        """Whether it is a source or a sink."""
        return connector_type(self.connector)


def connector_type(connector: type[Connector]) -> ConnectorType:
    """Whether a connector is a source or a sink."""
    if issubclass(connector, SinkConnector):
        return "sink"
    return "source" if issubclass(connector, SourceConnector) else "unknown"
