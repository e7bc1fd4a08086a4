"""Configurations of tasks as they are stored: without secrets, and with what every task has."""

from collections.abc import Mapping, Sequence
from typing import Final

from connect.api.connector import Connector
from connect.api.errors import ConnectError
from connect.api.sink import SinkConnector
from connect.runtime.configuration.plugins import name_of
from connect.runtime.leading.services import ParsedConnector
from connect.stores.configs import Config

_RECOGNISED_LENGTH: Final = 6
"""Shorter values may be the same by chance."""
_TOPICS: Final = ("topics", "topics.regex")


def stored_task_configs(given: Sequence[Mapping[str, str]], parsed: ParsedConnector) -> list[Config]:
    """What a connector planned, with placeholders for what was filled in; ConnectError when it is too much."""
    settled, raw = parsed.settled, parsed.raw
    if len(given) > settled.tasks_max and settled.tasks_max_enforce:
        raise ConnectError(
            f"The connector {raw.get('name', '')} has generated {len(given)} tasks, which is greater than "
            f"{settled.tasks_max}, the maximum number of tasks it is configured to create. This behaviour should be "
            "considered a bug and is disallowed. If necessary, it can be permitted by reconfiguring the connector "
            "with 'tasks.max.enforce' set to false; however, this option is deprecated."
        )
    added = {"task.class": _task_class_name(parsed.connector)}
    if issubclass(parsed.connector, SinkConnector):
        added |= {key: raw[key] for key in _TOPICS if raw.get(key)}
    # Secrets do not go to the topic: where a value is one that was filled in, its placeholder is stored instead.
    filled = {key: text for key, text in parsed.resolved.items() if raw.get(key) != text}
    by_value = {text: raw[key] for key, text in filled.items() if len(text) >= _RECOGNISED_LENGTH}
    return [
        {key: raw[key] if filled.get(key) == text else by_value.get(text, text) for key, text in config.items()} | added
        for config in given
    ]


def _task_class_name(connector: type[Connector]) -> str:
    """What Kafka Connect calls it, so that its workers can run the tasks that ours have planned."""
    task_class = getattr(connector, "task_class", None)
    if task_class is None:
        return name_of(connector)
    return getattr(task_class, "java_name", "") or f"{task_class.__module__}.{task_class.__qualname__}"
