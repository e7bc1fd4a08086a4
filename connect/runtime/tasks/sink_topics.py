"""Which topics a sink reads: those it names or matches, and the one by which dead letters come back."""

from collections.abc import Iterable

from connect.api.engine import TopicChoice
from connect.runtime.configuration.connector_config import SinkConnectorConfig
from connect.runtime.failures.redrive_topic import redrive_topic

REFRESH_SECONDS = 5.0
"""How often it is looked for topics that have come."""


class SinkTopics:
    """What a sink's configuration says of topics."""

    def __init__(self, config: SinkConnectorConfig, connector: str) -> None:
        self._choice = topic_choice(config, connector)
        self.may_change = self._choice.pattern is not None
        """Whether topics may come that are meant."""
        self.needs_all = self.may_change or bool(config.errors_deadletterqueue_topic_name.strip())
        """Whether all topics of the cluster must be known to choose."""

    def chosen(self, known: Iterable[str]) -> list[str]:
        """The topics to read, given those that there are."""
        return self._choice.chosen(known)


def topic_choice(config: SinkConnectorConfig, connector: str) -> TopicChoice:
    """What a sink's configuration says of topics, for wherever they are read."""
    return TopicChoice(names=config.topics, pattern=config.topics_regex or None, redriven=redrive_topic(connector))
