"""Which table a topic's records go to."""

import re
from collections.abc import Mapping
from typing import Final

_OTHERS = re.compile(r"[^a-z0-9_]")
_LENGTH_MAX: Final = 128


class TableNames:
    """The table of each topic, by a template and by what was said of single topics."""

    def __init__(self, template: str, by_topic: Mapping[str, str]) -> None:
        self._template = template
        self._names = dict(by_topic)

    def of(self, topic: str) -> str:
        """The table of a topic."""
        name = self._names.get(topic)
        if name is None:
            name = self._names[topic] = self._template.lower().replace("${topic}", plain(topic))
        return name


def plain(topic: str) -> str:
    """A topic's name as part of the name of a table."""
    return _OTHERS.sub("_", topic.lower())[:_LENGTH_MAX]
