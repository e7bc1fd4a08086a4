"""What a worker knows about an engine's sink."""

from collections.abc import Mapping

from typing_extensions import override

from connect.api.engine import EngineFacts, TopicChoice
from connect.runtime.configuration.client_overrides import (
    admin_properties,
    consumer_group,
    consumer_properties,
    producer_properties,
)
from connect.runtime.configuration.connector_config import SinkConnectorConfig
from connect.runtime.failures.redrive_topic import redrive_topic
from connect.runtime.models import TaskId
from connect.settings import ConnectSettings


class SinkFacts(EngineFacts):
    """The facts of one task, from its resolved configuration and the worker's settings."""

    def __init__(self, task: TaskId, config: SinkConnectorConfig, settings: ConnectSettings) -> None:
        self._task_id = task
        self._config = config
        self._settings = settings

    @property
    @override
    def connector(self) -> str:
        return self._task_id.connector

    @property
    @override
    def group(self) -> str:
        return consumer_group(self._settings, self._config.given, connector=self.connector)

    @property
    @override
    def topics(self) -> TopicChoice:
        return topic_choice(self._config, self.connector)

    @property
    @override
    def consumer_properties(self) -> Mapping[str, str]:
        given = consumer_properties(self._settings, self._config.given)
        given.pop("group.id", None)
        return self._client_properties(given, role="consumer")

    @property
    @override
    def producer_properties(self) -> Mapping[str, str]:
        return self._client_properties(producer_properties(self._settings, self._config.given), role="producer")

    @property
    @override
    def admin_properties(self) -> Mapping[str, str]:
        return self._client_properties(admin_properties(self._settings, self._config.given), role="admin")

    @property
    @override
    def engine_properties(self) -> Mapping[str, str]:
        return {f"spark.{key}": text for key, text in self._settings.spark_properties}

    def _client_properties(self, given: dict[str, str], *, role: str) -> dict[str, str]:
        client_id = given.pop("client.id", f"connector-{role}-{self._task_id}")
        client = self._settings.kafka(tuple(given.items()), client_id=client_id)
        return {key: str(value) for key, value in client.configuration().items()}


def topic_choice(config: SinkConnectorConfig, connector: str) -> TopicChoice:
    """The topics of a sink: those it names or matches, and the one with redriven dead letters."""
    return TopicChoice(names=config.topics, pattern=config.topics_regex or None, redriven=redrive_topic(connector))
