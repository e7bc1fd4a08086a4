"""Which topics a sink reads: those it names or matches, and the one by which dead letters come back."""

import re
from collections.abc import Iterable

from connect.runtime.configuration.connector_config import SinkConnectorConfig
from connect.runtime.failures.redrive_topic import redrive_topic

REFRESH_SECONDS = 5.0
"""How often it is looked for topics that have come."""


class SinkTopics:
    """What a sink's configuration says of topics."""

    def __init__(self, config: SinkConnectorConfig, connector: str) -> None:
        self._config = config
        self._redriven = redrive_topic(connector)
        self._pattern = re.compile(config.topics_regex) if config.topics_regex else None
        self.may_change = self._pattern is not None
        """Whether topics may come that are meant."""
        self.needs_all = self.may_change or bool(config.errors_deadletterqueue_topic_name.strip())
        """Whether all topics of the cluster must be known to choose."""

    def chosen(self, known: Iterable[str]) -> list[str]:
        """The topics to read, given those that there are."""
        names = set(known)
        own = self._config.topics if self._pattern is None else self._matching(names)
        return [*sorted(own), *({self._redriven} & names)]

    def _matching(self, names: Iterable[str]) -> list[str]:
        assert self._pattern is not None
        own = (name for name in names if not name.startswith("__") and name != self._redriven)
        return [name for name in own if self._pattern.fullmatch(name)]
