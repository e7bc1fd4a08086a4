"""What every task begins with: its configuration with placeholders filled in, its class, converters and policy."""

from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from connect.api.config import Config
from connect.api.connector import Connector
from connect.api.errors import RetriableError
from connect.api.sink import SinkConnector
from connect.runtime.configuration.client_overrides import admin_properties, producer_properties
from connect.runtime.configuration.config_providers import conceal
from connect.runtime.configuration.connector_config import ConnectorConfig, SinkConnectorConfig, SourceConnectorConfig
from connect.runtime.counters import TaskCounters
from connect.runtime.failures.dead_letter import DeadLetters
from connect.runtime.failures.error_policy import ErrorPolicy
from connect.runtime.models import TaskPlan
from connect.runtime.stopping import Stopping
from connect.runtime.tasks.conversion import Conversion, conversion_of
from connect.runtime.tasks.services import TaskServices
from core_broker.client.settings import ClientSettings

OUTAGES: Final = (RetriableError, ConnectionError, TimeoutError)
"""Errors about the other side, not about a record."""


class Work(Protocol):
    """What a task does between its first and its last moment; called from the task's thread alone."""

    def start(self) -> None:
        """Make everything ready."""

    def turn(self) -> None:
        """Carry some records, and commit when it is time."""

    def rest(self) -> None:
        """Be paused for a moment."""

    def resume(self) -> None:
        """Go on after having been paused."""
        return

    def finish(self) -> None:
        """Make durable what was carried, and commit it: the end in good order."""

    def close(self) -> None:
        """Leave nothing open; also after a failure, at any moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSetup:
    """All that the work of one task needs."""

    plan: TaskPlan
    services: TaskServices
    stopping: Stopping
    counters: TaskCounters
    connector: type[Connector]
    config: ConnectorConfig
    """Options that every connector has."""
    task_config: Config
    """The connector's own options, as planned for this task."""
    conversion: Conversion
    policy: ErrorPolicy
    dead_letters: DeadLetters | None

    def kafka(self, properties: dict[str, str], *, role: str) -> ClientSettings:
        """How this task reaches the cluster; the role is part of the client's name."""
        client_id = properties.pop("client.id", f"connector-{role}-{self.plan.id}")
        return self.services.settings.kafka(tuple(properties.items()), client_id=client_id)

    def close(self) -> None:
        """Leave nothing open."""
        self.conversion.close()
        if self.dead_letters is not None:
            self.dead_letters.close()


def set_up(plan: TaskPlan, services: TaskServices, stopping: Stopping, counters: TaskCounters) -> TaskSetup:
    """Read the configuration; ConfigError when it cannot work."""
    given = services.providers.resolve(plan.connector_config)
    connector = services.plugins.connectors.find(given["connector.class"])
    kind = SinkConnectorConfig if issubclass(connector, SinkConnector) else SourceConnectorConfig
    config = kind.parse(given)
    policy = ErrorPolicy(config, task=str(plan.id), counters=counters, stopping=stopping)
    return TaskSetup(
        plan=plan,
        services=services,
        stopping=stopping,
        counters=counters,
        connector=connector,
        config=config,
        task_config=connector.config_class.parse(services.providers.resolve(plan.task_config)),
        conversion=conversion_of(config, services.plugins, services.settings),
        policy=policy,
        dead_letters=_dead_letters(config, plan, services, stopping),
    )


def _dead_letters(
    config: ConnectorConfig, plan: TaskPlan, services: TaskServices, stopping: Stopping
) -> DeadLetters | None:
    if not config.errors_deadletterqueue_topic_name.strip():
        return None
    settings, name = services.settings, f"connector-dlq-producer-{plan.id}"
    producer = producer_properties(settings, config.given)
    return DeadLetters(
        config,
        task=plan.id,
        producer=settings.kafka(tuple(producer.items()), client_id=name),
        admin=settings.kafka(tuple(admin_properties(settings, config.given).items()), client_id=name),
        stopping=stopping,
        conceal=partial(conceal, secrets=services.providers.secrets(plan.connector_config)),
    )
