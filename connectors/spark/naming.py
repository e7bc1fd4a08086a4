"""Names of tables."""

import re
from collections.abc import Mapping
from typing import Final

_OTHERS = re.compile(r"[^a-z0-9_]")
_LENGTH_MAX: Final = 128


class TableNames:
    """The table of each topic: by name for single topics, else by a template."""

    def __init__(self, template: str, by_topic: Mapping[str, str]) -> None:
        self._template = template
        self._names = dict(by_topic)

    def of(self, topic: str) -> str:
        """The table of a topic."""
        name = self._names.get(topic)
        if name is None:
            plain = _OTHERS.sub("_", topic.lower())[:_LENGTH_MAX]
            name = self._names[topic] = self._template.lower().replace("${topic}", plain)
        return name
