"""Conversion of configs between the library's classes and ours."""

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry

from core_broker.client.models import Config, Synonym

SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "GROUP_CONFIG",
}
"""Kafka's config sources by their numbers on the wire, including those the library has no name for."""


def changes_of(put: Mapping[str, str], remove: Iterable[str]) -> list[ConfigEntry]:
    """The configs to set, and those to reset to their default, as the library's entries."""
    entries = [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in put.items()]
    # The library requires a value even where the operation has none.
    return [*entries, *(ConfigEntry(key, "", incremental_operation=AlterConfigOpType.DELETE) for key in remove)]


def read_configs(entries: Mapping[str, ConfigEntry]) -> list[Config]:
    """The library's entries as ours, by key."""
    return [_config(entries[key]) for key in sorted(entries)]


def _config(entry: ConfigEntry) -> Config:
    return Config(
        key=entry.name,
        value=entry.value,
        is_default=bool(entry.is_default),
        is_read_only=bool(entry.is_read_only),
        is_sensitive=bool(entry.is_sensitive),
        source=_source(entry),
        synonyms=tuple(_synonyms(entry)),
    )


def _synonyms(entry: ConfigEntry) -> Iterable[Synonym]:
    """The synonyms of a config; the library keeps only the last one of each name, and so may lose the effective one."""
    kept = [Synonym(key=item.name, value=item.value, source=_source(item)) for item in entry.synonyms.values()]
    if kept and kept[0].source != _source(entry):
        yield Synonym(key=entry.name, value=entry.value, source=_source(entry))
    yield from kept


def _source(entry: ConfigEntry) -> str:
    # The library returns numbers, whatever its type hints say.
    number: Any = getattr(entry.source, "value", entry.source)
    return SOURCES.get(number, "UNKNOWN")
