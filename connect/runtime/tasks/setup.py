"""The setup of every task: its resolved configuration, its class, converters and error policy."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from connect.api.config import Config
from connect.api.connector import Connector
from connect.api.errors import RetriableError
from connect.runtime.configuration.client_overrides import admin_properties, producer_properties
from connect.runtime.configuration.config_providers import conceal
from connect.runtime.configuration.connector_config import ConnectorConfig
from connect.runtime.configuration.reach import require_reach
from connect.runtime.configuration.validation import definition_class
from connect.runtime.counters import TaskCounters
from connect.runtime.failures.dead_letter import DeadLetters
from connect.runtime.failures.error_policy import ErrorPolicy
from connect.runtime.models import TaskPlan
from connect.runtime.stopping import Stopping
from connect.runtime.tasks.conversion import Conversion, conversion_of
from connect.runtime.tasks.services import TaskServices
from core_broker.client.settings import ClientSettings

OUTAGES: Final = (RetriableError, ConnectionError, TimeoutError)
"""Errors of the other system, not of a record."""


class Work(Protocol):
    """The work of a task; called from the task's thread only."""

    def start(self) -> None:
        """Prepare everything."""

    def turn(self) -> None:
        """Move some records, and commit when it is time."""

    def rest(self) -> None:
        """Spend a moment of a pause."""

    def resume(self) -> None:
        """Continue after a pause."""
        return

    def finish(self) -> None:
        """Make the records durable and commit them: an orderly end."""

    def close(self) -> None:
        """Release everything; also after a failure, at any time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSetup:
    """Everything that the work of one task needs."""

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
    conceal: Callable[[str], str]
    """Removes the connector's secrets from a text."""
    _seen_topics: set[str] = field(default_factory=set)

    def track_topics(self, topics: Iterable[str]) -> None:
        """Add topics to the connector's active topics, unless tracking is disabled."""
        if self.services.settings.topic_tracking_enable:
            for topic in set(topics) - self._seen_topics:
                self._seen_topics.add(topic)
                self.services.statuses.put_topic(topic, self.plan.id)

    def kafka(self, properties: dict[str, str], *, role: str) -> ClientSettings:
        """The client settings of this task; the role is part of the client id."""
        client_id = properties.pop("client.id", f"connector-{role}-{self.plan.id}")
        return self.services.settings.kafka(tuple(properties.items()), client_id=client_id)

    def close(self) -> None:
        """Close the converters and the dead letters."""
        self.conversion.close()
        if self.dead_letters is not None:
            self.dead_letters.close()


def set_up(plan: TaskPlan, services: TaskServices, stopping: Stopping, counters: TaskCounters) -> TaskSetup:
    """Parse the configuration; ConfigError when it is invalid."""
    given = services.providers.resolve(plan.connector_config)
    shown = partial(conceal, secrets=services.secrets_in(plan.connector_config))
    connector = services.plugins.connectors.find(given["connector.class"])
    config = definition_class(connector).parse(given)
    require_reach(given, connector, plugins=services.plugins, settings=services.settings)
    policy = ErrorPolicy(config, task=str(plan.id), counters=counters, stopping=stopping, conceal=shown)
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
        dead_letters=_dead_letters(config, plan, services, stopping, conceal=shown),
        conceal=shown,
    )


def _dead_letters(
    config: ConnectorConfig,
    plan: TaskPlan,
    services: TaskServices,
    stopping: Stopping,
    *,
    conceal: Callable[[str], str],
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
        conceal=conceal,
    )
