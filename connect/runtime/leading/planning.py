"""Configurations of tasks: what the connector's author gave, as it is stored and compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from connect.api.connector import Connector
from connect.api.errors import ConnectError
from connect.api.sink import SinkConnector
from connect.runtime.configuration.connector_config import ConnectorConfig
from connect.runtime.configuration.plugins import name_of

_RECOGNISED_LENGTH: Final = 6
"""Shorter values may be the same by chance."""
_TOPICS: Final = ("topics", "topics.regex")


def planned(
    given: Sequence[Mapping[str, str]],
    connector: type[Connector],
    *,
    settled: ConnectorConfig,
    raw: Mapping[str, str],
    resolved: Mapping[str, str],
) -> list[dict[str, str]]:
    """The tasks as they are stored: what was filled in is a placeholder again, and what every task has is added."""
    if len(given) > settled.tasks_max and settled.tasks_max_enforce:
        raise ConnectError(
            f"The connector {raw.get('name', '')} has generated {len(given)} tasks, which is greater than "
            f"{settled.tasks_max}, the maximum number of tasks it is configured to create. This behaviour should be "
            "considered a bug and is disallowed. If necessary, it can be permitted by reconfiguring the connector "
            "with 'tasks.max.enforce' set to false; however, this option is deprecated."
        )
    added = {"task.class": _task_class_name(connector)}
    if issubclass(connector, SinkConnector):
        added |= {key: raw[key] for key in _TOPICS if raw.get(key)}
    return [{**_with_placeholders(config, raw, resolved), **added} for config in given]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Which tasks end, and which begin."""

    ending: frozenset[int]
    beginning: frozenset[int]


def difference(running: Mapping[int, object], wanted: Mapping[int, object], *, all_at_once: bool) -> Difference:
    """What must change so that the tasks that run are those that are wanted.

    `all_at_once`: whatever runs ends before any of the others begins, if anything changes at all.
    """
    changed = {number for number, what in wanted.items() if running.get(number) != what}
    ending = {number for number in running if number not in wanted or number in changed}
    if all_at_once and (changed or ending):
        return Difference(ending=frozenset(running), beginning=frozenset(wanted))
    return Difference(ending=frozenset(ending), beginning=frozenset(changed))


def _task_class_name(connector: type[Connector]) -> str:
    """What Kafka Connect calls it, so that its workers can run the tasks that ours have planned."""
    task_class = getattr(connector, "task_class", None)
    if task_class is None:
        return name_of(connector)
    return getattr(task_class, "java_name", "") or f"{task_class.__module__}.{task_class.__qualname__}"


def _with_placeholders(
    config: Mapping[str, str], raw: Mapping[str, str], resolved: Mapping[str, str]
) -> dict[str, str]:
    """Secrets do not go to the topic: where a value is one that was filled in, its placeholder is stored instead."""
    filled = {key: text for key, text in resolved.items() if raw.get(key) != text}
    by_value = {text: raw[key] for key, text in filled.items() if len(text) >= _RECOGNISED_LENGTH}
    return {key: raw[key] if filled.get(key) == text else by_value.get(text, text) for key, text in config.items()}
